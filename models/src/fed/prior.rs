//! The board's log prior (balanced softmax; science §5).
use crate::nn::ClassCounts;

/// `r_i(c) = log((n_ic + ½) / (n_i + ½C))`: how often each class occurs on this board, never sent. `exp r` sums to one.
///
/// Three samples of one class, one of the other: (3.5/5, 1.5/5).
/// ```
/// use models::{fed::prior::log_prior, nn::ClassCounts};
/// let r = log_prior(&ClassCounts(vec![3, 1]));
/// assert!((r[0] - 0.7_f32.ln()).abs() < 1e-6 && (r[1] - 0.3_f32.ln()).abs() < 1e-6);
/// ```
pub fn log_prior(counts: &ClassCounts) -> Vec<f32> {
    let total = f64::from(counts.total()) + 0.5 * counts.0.len() as f64;
    counts.0.iter().map(|&n| libm::log((f64::from(n) + 0.5) / total) as f32).collect()
}
