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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Preprocessing;

    fn card(arch: &str) -> ModelCard {
        let (labels, preprocessing) = (vec!["a".into(), "b".into()], Preprocessing::none(1));
        ModelCard { arch: arch.into(), input: [1, 8, 8], labels, statistics: 0, preprocessing }
    }

    fn update(of: u64) -> Vec<f32> {
        let mut stream = Key::new(of, Purpose::Control).stream();
        (0..9000).map(|_| stream.normal() as f32).collect()
    }

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn of_a_network_that_was_brought_along_256_numbers_are_remembered() {
        let own = card(&format!("onnx:{}", crate::id::Hash::of(b"net")));
        let [a, b] = [1, 2].map(update);
        let both: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let short = |values: &[f32], seed| remembered(values.to_vec(), &own, seed);
        assert_eq!((short(&a, 7).len(), remembered(a.clone(), &card("cc28"), 7).len()), (256, 4096));
        assert_eq!(short(&a, 7), short(&a, 7));
        assert_ne!(short(&a, 7), short(&a, 8), "the run's seed draws it");
        for ((a, b), sum) in short(&a, 7).iter().zip(short(&b, 7)).zip(short(&both, 7)) {
            assert!((a + b - sum).abs() < 1e-3, "it is linear");
        }
        // Unbiased: over many seeds the mean inner product is the vectors' own, to some standard errors.
        let mean = (0..64).map(|seed| dot(&short(&a, seed), &short(&both, seed))).sum::<f32>() / 64.0;
        let own = dot(&a, &both);
        let error = (dot(&a, &a) * dot(&both, &both) / 256.0 / 64.0).sqrt();
        assert!((mean - own).abs() < 5.0 * error, "{mean} for {own}, error {error}");
    }
}
