//! Prototypes small enough to remember one per client.
use crate::tensor::rng::{Key, Purpose};

/// Values up to which a prototype is kept as it is.
const KEPT: usize = 4096;

/// A count sketch (Charikar, Chen, Farach-Colton 2002): every coordinate is added with a random sign to a random one of 4096 sums.
/// Linear, and inner products come out right on average with a relative error near 1/64. Shorter vectors stay exact.
///
/// ```
/// let short = models::fed::sketch::sketch(vec![1.0, 2.0], 7);
/// assert_eq!(short, [1.0, 2.0]);
/// assert_eq!(models::fed::sketch::sketch(vec![1.0; 100_000], 7).len(), 4096);
/// ```
pub fn sketch(values: Vec<f32>, seed: u64) -> Vec<f32> {
    if values.len() <= KEPT {
        return values;
    }
    let mut stream = Key::new(seed, Purpose::Projection).stream();
    let mut sums = vec![0.0; KEPT];
    for value in values {
        let draw = stream.below(2 * KEPT);
        sums[draw / 2] += if draw.is_multiple_of(2) { value } else { -value };
    }
    sums
}
