//! Initial weights: Kaiming-uniform with a = √5, the common framework default (methods §2.1).
use super::graph::{Graph, Op};
use crate::params::{ModelSpec, Params};
use crate::tensor::rng::{Key, Purpose};
use std::sync::Arc;

/// Weights and biases uniform in ±1/√fan_in; norms start at weight 1, bias 0, mean 0, variance 1.
///
/// Each entry has a stream of its own, keyed by the seed and the entry's number: two networks with the same first layers
/// start those alike.
///
/// # Panics
/// If `spec` is not this graph's.
pub fn init(graph: &Graph, spec: &Arc<ModelSpec>, seed: u64) -> Params {
    let mut values = vec![0.0; graph.len()];
    for node in graph.nodes() {
        let Some(&first) = node.entries.first() else { continue };
        let fan_in = graph.entries()[first].shape.extents()[1..].iter().product::<usize>();
        let bound = 1.0 / (fan_in.max(1) as f32).sqrt();
        let norm = matches!(node.op, Op::BatchNorm { .. } | Op::GroupNorm { .. });
        for (which, &entry) in node.entries.iter().enumerate() {
            let place = &mut values[graph.entries()[entry].range.clone()];
            if norm {
                place.fill(if which == 0 || which == 3 { 1.0 } else { 0.0 });
                continue;
            }
            let mut stream = Key::new(seed, Purpose::Init).step(entry as u64).stream();
            place.iter_mut().for_each(|w| *w = bound * (2.0 * stream.unit() - 1.0));
        }
    }
    Params::new(Arc::clone(spec), values)
        .expect("the specification is this graph's, and the values are finite")
}
