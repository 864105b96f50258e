//! The personal mixture (science §5 step 7d): convex weights over a few candidates' probabilities, by expectation
//! maximisation on the validation slice.

/// Steps.
const STEPS: usize = 50;
/// Pseudo-counts of the candidate that is right when nothing is known.
const FAVOURITE: f64 = 8.0;
/// Pseudo-counts of every other candidate.
const OTHER: f64 = 1.0;

/// Weights `w` that maximise `Σ_j log Σ_k w_k p_k(y_j | x_j) + Σ_k c_k log w_k`, from `c/Σc` by 50 EM steps:
/// `q_jk ∝ w_k p_k(y_j)`, then `w_k = (Σ_j q_jk + c_k) / (n + Σc)`. `likelihoods[k][j]` is `p_k(y_j | x_j)`; c is 8 for the candidate
/// `favourite` and 1 for the others. The source has 4 for each, which gives a board with five validation samples nearly equal weights,
/// a stale head's among them: a favourite was worth about a point where such boards are many (`docs/results`).
///
/// Without a validation sample the weights are c/Σc; two candidates, the second always sure and right, the first never: w_1 = 8/(n + 9).
/// ```
/// use models::fed::mixture::weights;
/// let close = |w: &[f32], v: [f32; 2]| w.iter().zip(v).all(|(w, v)| (w - v).abs() < 1e-6);
/// assert!(close(&weights(&[vec![], vec![]], 0), [8.0 / 9.0, 1.0 / 9.0]));
/// assert!(close(&weights(&[vec![0.0; 7], vec![1.0; 7]], 0), [0.5, 0.5]));
/// ```
pub fn weights(likelihoods: &[Vec<f32>], favourite: usize) -> Vec<f32> {
    let samples = likelihoods.first().map_or(0, Vec::len);
    let pseudo: Vec<f64> =
        (0..likelihoods.len()).map(|k| if k == favourite { FAVOURITE } else { OTHER }).collect();
    let believed: f64 = pseudo.iter().sum();
    let mut w: Vec<f64> = pseudo.iter().map(|c| c / believed).collect();
    for _ in 0..STEPS {
        let mut counts = pseudo.clone();
        for j in 0..samples {
            let joint: Vec<f64> = w.iter().zip(likelihoods).map(|(w, p)| w * f64::from(p[j])).collect();
            let total: f64 = joint.iter().sum();
            counts.iter_mut().zip(&joint).zip(&w).for_each(|((c, q), w)| {
                *c += if total > 0.0 { q / total } else { *w };
            });
        }
        w.iter_mut().zip(&counts).for_each(|(w, c)| *w = c / (samples as f64 + believed));
    }
    w.iter().map(|&w| w as f32).collect()
}
