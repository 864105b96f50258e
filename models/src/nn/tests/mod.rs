//! Networks against finite differences, against PyTorch, and against themselves on other threads.
mod golden;
mod gradients;
mod heads;
mod memory;
mod modes;
mod threads;

use super::data::Source;
use super::engine::{Batch, Fan, Setup, Targets, Training};
use super::optim::Sgd;
use super::*;
use crate::params::{ModelCard, Preprocessing};
use crate::tensor::rng::{Key, Purpose, Stream};

/// A card for `arch`.
fn card(arch: &str, input: [usize; 3], classes: usize, statistics: usize) -> ModelCard {
    let labels = (0..classes).map(|c| c.to_string()).collect();
    ModelCard { arch: arch.into(), input, labels, statistics, preprocessing: Preprocessing::none(input[0]) }
}

fn stream(step: u64) -> Stream {
    Key::new(5, Purpose::Test).step(step).stream()
}

/// Normal numbers.
fn normal(stream: &mut Stream, n: usize, scale: f64) -> Vec<f32> {
    (0..n).map(|_| (scale * stream.normal()) as f32).collect()
}

/// Samples of a network with what they should answer.
struct Samples {
    inputs: Vec<f32>,
    labels: Vec<u16>,
    conditioning: Vec<f32>,
    picks: Vec<usize>,
}

impl Samples {
    fn random(graph: &Graph, classes: usize, n: usize) -> Self {
        let mut stream = stream(1);
        Self {
            inputs: normal(&mut stream, n * graph.input().len(), 1.0),
            labels: (0..n).map(|_| stream.below(classes) as u16).collect(),
            conditioning: normal(&mut stream, graph.statistics(), 1.0),
            picks: (0..n).collect(),
        }
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            source: Source::ready(&self.inputs),
            picks: &self.picks,
            targets: Targets { labels: &self.labels, prior: None, teacher: None },
            conditioning: &self.conditioning,
            dropout: Key::new(3, Purpose::Dropout),
            share: 1.0 / self.picks.len() as f64,
        }
    }
}

const SGD: Sgd = Sgd { rate: 0.05, momentum: 0.9, weight_decay: 0.0 };
