//! How good answers are.
use super::{Metrics, loss};

/// Loss and accuracy of logits `[n, classes]`; of equal logits the first class is the answer.
pub fn metrics(logits: &[f32], labels: &[u16], classes: usize) -> Metrics {
    let mut right = vec![0u32; classes];
    let mut seen = vec![0u32; classes];
    let mut sum = 0.0;
    for (z, &label) in logits.chunks_exact(classes.max(1)).zip(labels) {
        let label = usize::from(label);
        sum += loss::log_sum_exp(z) - f64::from(z[label]);
        seen[label] += 1;
        right[label] += u32::from(argmax(z) == label);
    }
    let samples = labels.len() as u32;
    let shares: Vec<f64> = right
        .iter()
        .zip(&seen)
        .filter(|(_, n)| **n > 0)
        .map(|(r, n)| f64::from(*r) / f64::from(*n))
        .collect();
    let mean = |sum: f64, n: usize| if n == 0 { 0.0 } else { sum / n as f64 };
    Metrics {
        loss: mean(sum, labels.len()),
        accuracy: mean(f64::from(right.iter().sum::<u32>()), labels.len()),
        balanced: mean(shares.iter().sum(), shares.len()),
        samples,
    }
}

/// The first of the largest.
fn argmax(z: &[f32]) -> usize {
    let mut best = 0;
    for (i, v) in z.iter().enumerate() {
        if *v > z[best] {
            best = i;
        }
    }
    best
}
