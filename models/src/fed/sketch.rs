//! Prototypes small enough to remember one per client.
use crate::params::ModelCard;
use crate::tensor::rng::{Key, Purpose};

/// Values up to which a prototype is kept as it is.
const KEPT: usize = 4096;
/// Values up to which that of a network is that was brought along: nothing is known of its layers.
const KEPT_OF_IMPORTED: usize = 256;

/// The prototype of a model's layer as it is remembered.
pub(super) fn remembered(values: Vec<f32>, card: &ModelCard, seed: u64) -> Vec<f32> {
    let width = if card.imported().is_some() { KEPT_OF_IMPORTED } else { KEPT };
    sketch_to(width, values, seed)
}

/// A count sketch (Charikar, Chen, Farach-Colton 2002): every coordinate is added with a random sign to a random one of 4096 sums.
/// Linear, and inner products come out right on average with a relative error near 1/64. Shorter vectors stay exact.
///
/// ```
/// let short = models::fed::sketch::sketch(vec![1.0, 2.0], 7);
/// assert_eq!(short, [1.0, 2.0]);
/// assert_eq!(models::fed::sketch::sketch(vec![1.0; 100_000], 7).len(), 4096);
/// ```
pub fn sketch(values: Vec<f32>, seed: u64) -> Vec<f32> {
    sketch_to(KEPT, values, seed)
}

fn sketch_to(width: usize, values: Vec<f32>, seed: u64) -> Vec<f32> {
    if values.len() <= width {
        return values;
    }
    let mut stream = Key::new(seed, Purpose::Projection).stream();
    let mut sums = vec![0.0; width];
    for value in values {
        let draw = stream.below(2 * width);
        sums[draw / 2] += if draw.is_multiple_of(2) { value } else { -value };
    }
    sums
}
