//! A network in training on random data: what a bench times.
use super::data::Source;
use super::engine::{Batch, Fan, Targets, Training};
use super::graph::{Graph, Op};
use super::optim::Sgd;
use super::{arch, init};
use crate::params::{ModelCard, Preprocessing, SpecError};
use crate::tensor::rng::{Key, Purpose};

/// Steps of training on one random batch.
#[derive(Debug)]
pub struct Bench {
    training: Training,
    inputs: Vec<f32>,
    labels: Vec<u16>,
    conditioning: Vec<f32>,
    picks: Vec<usize>,
    flops: f64,
}

impl Bench {
    /// A network of this name on its usual input (`input` overrides it) and ten classes, in batches of `batch`.
    ///
    /// Call it, and [`Bench::step`], inside `pool.install` to use a pool (`threads` above 1).
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn new(arch: &str, batch: usize, threads: usize) -> Result<Self, SpecError> {
        let input = match arch {
            "cc32" | "cc32-gn" | "kdhcnn" => [3, 32, 32],
            "dw64" | "res64" => [3, 64, 64],
            "har1d" => [6, 1, 64],
            _ => [1, 28, 28],
        };
        let labels = (0..10).map(|c| c.to_string()).collect();
        let preprocessing = Preprocessing::none(input[0]);
        let card = ModelCard { arch: arch.into(), input, labels, statistics: 0, preprocessing };
        let (graph, spec) = arch::build(&card)?;
        let start = init(&graph, &spec, 0);
        let sgd = Sgd { rate: 0.01, momentum: 0.9, weight_decay: 0.0 };
        let fan = if threads > 1 { Fan::Pool } else { Fan::Inline };
        let trains = vec![true; graph.entries().len()];
        let training = Training::new(&graph, start.values(), (&trains, true), sgd, batch, fan);
        let mut stream = Key::new(0, Purpose::Test).stream();
        Ok(Self {
            inputs: (0..batch * graph.input().len()).map(|_| stream.unit() * 2.0 - 1.0).collect(),
            labels: (0..batch).map(|i| (i % 10) as u16).collect(),
            conditioning: vec![],
            picks: (0..batch).collect(),
            flops: flops(&graph) * batch as f64,
            training,
        })
    }

    /// One step of SGD with momentum; returns the loss before it.
    pub fn step(&mut self) -> f64 {
        self.training.step(&Batch {
            source: Source::ready(&self.inputs),
            picks: &self.picks,
            targets: Targets { labels: &self.labels, prior: None, teacher: None },
            conditioning: &self.conditioning,
            dropout: Key::new(0, Purpose::Dropout),
            share: 1.0 / self.picks.len() as f64,
        })
    }

    /// Floating-point operations that a step's convolutions and linear layers take as they are written: two per multiplication,
    /// three passes, without the input gradient of the first layer. The engine does with fewer (Winograd).
    pub fn flops(&self) -> f64 {
        self.flops
    }
}

/// Operations of one sample.
fn flops(graph: &Graph) -> f64 {
    let mut total = 0.0;
    let mut first = true;
    for node in graph.nodes() {
        let Some(entry) = node.entries.first().map(|&e| &graph.entries()[e]) else { continue };
        let pixels = match node.op {
            Op::Conv2d(_) => node.dims.pixels(),
            Op::Linear { .. } => 1,
            _ => continue,
        };
        let passes = if std::mem::replace(&mut first, false) { 2.0 } else { 3.0 };
        total += 2.0 * passes * (entry.shape.len() * pixels) as f64;
    }
    total
}
