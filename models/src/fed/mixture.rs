//! The personal mixture (science §5 step 7d): convex weights over a few candidates' probabilities, by expectation
//! maximisation on the validation slice.

/// Steps.
const STEPS: usize = 50;
/// Pseudo-counts of each candidate.
const PSEUDO: f64 = 4.0;

/// Weights `w` that maximise `Σ_j log Σ_k w_k p_k(y_j | x_j) + 4 Σ_k log w_k`, from equal ones by 50 EM steps:
/// `q_jk ∝ w_k p_k(y_j)`, then `w_k = (Σ_j q_jk + 4) / (n + 4K)`. `likelihoods[k][j]` is `p_k(y_j | x_j)`.
///
/// Without a validation sample the weights stay equal; two candidates, the second always sure and right, the first
/// never: w_1 = 4/(n + 8).
/// ```
/// use models::fed::mixture::weights;
/// assert_eq!(weights(&[vec![], vec![]]), [0.5, 0.5]);
/// let w = weights(&[vec![0.0; 8], vec![1.0; 8]]);
/// assert!((w[0] - 0.25).abs() < 1e-6 && (w[1] - 0.75).abs() < 1e-6);
/// ```
pub fn weights(likelihoods: &[Vec<f32>]) -> Vec<f32> {
    let candidates = likelihoods.len();
    let samples = likelihoods.first().map_or(0, Vec::len);
    let mut w = vec![1.0 / candidates as f64; candidates];
    for _ in 0..STEPS {
        let mut counts = vec![PSEUDO; candidates];
        for j in 0..samples {
            let joint: Vec<f64> = w.iter().zip(likelihoods).map(|(w, p)| w * f64::from(p[j])).collect();
            let total: f64 = joint.iter().sum();
            let even = 1.0 / candidates as f64;
            counts.iter_mut().zip(&joint).for_each(|(c, q)| *c += if total > 0.0 { q / total } else { even });
        }
        let total = samples as f64 + PSEUDO * candidates as f64;
        w.iter_mut().zip(&counts).for_each(|(w, c)| *w = c / total);
    }
    w.iter().map(|&w| w as f32).collect()
}
