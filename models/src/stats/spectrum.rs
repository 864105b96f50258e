//! The spectrum of a client's data, and the block that sees labels.
use super::Samples;
use crate::tensor::rng::{Key, Purpose, Stream};
use nalgebra::{DMatrix, SymmetricEigen};

/// Dimensions of the projected sample in the label-aware block (ψ).
const PROJECTED: usize = 64;

/// Statistic v1: the `l` largest eigenvalues of the sample covariance of `Z = [pixels || onehot(y)]`, columns centred, divided by
/// n − 1, in descending order and padded with zeros. Taken from the n × n Gram matrix where that is the smaller one.
///
/// Two samples (0 | class 0) and (1 | class 1) differ by (1, −1, 1), so the only eigenvalue is 3/2:
/// ```
/// use models::stats::{Samples, spectrum};
/// let data = Samples { width: 1, classes: 2, values: vec![0.0, 1.0], labels: vec![0, 1] };
/// let s = spectrum(&data, 3);
/// assert!((s[0] - 1.5).abs() < 1e-9 && s[1].abs() < 1e-9 && s[2] == 0.0);
/// ```
pub fn spectrum(samples: &Samples, l: usize) -> Vec<f64> {
    let n = samples.len();
    if n < 2 {
        return vec![0.0; l];
    }
    let z = centred(samples);
    let moments = if n < z.ncols() { &z * z.transpose() } else { z.transpose() * &z };
    let mut values: Vec<f64> =
        SymmetricEigen::new(moments / (n - 1) as f64).eigenvalues.iter().copied().collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values.iter_mut().for_each(|v| *v = v.max(0.0));
    values.resize(l, 0.0);
    values
}

/// `[pixels || onehot]`, each column minus its mean.
fn centred(samples: &Samples) -> DMatrix<f64> {
    let (d, classes) = (samples.width, samples.classes);
    let entry = |i: usize, j: usize| match j.checked_sub(d) {
        None => f64::from(samples.row(i)[j]),
        Some(class) => f64::from(u8::from(usize::from(samples.labels[i]) == class)),
    };
    let mut z = DMatrix::from_fn(samples.len(), d + classes, entry);
    for mut column in z.column_iter_mut() {
        let mean = column.mean();
        column.add_scalar_mut(-mean);
    }
    z
}

/// The label-aware block of statistic v2: `R vec(E[ψ(x) onehot(y)ᵀ])`, with ψ a seeded random projection of the pixels to 64
/// dimensions and R a second one to `l`. It changes when labels are permuted or inputs turned.
pub fn label_block(samples: &Samples, l: usize, seed: u64) -> Vec<f32> {
    let key = Key::new(seed, Purpose::Projection);
    let (mut psi, mut last) = (key.step(1).stream(), key.step(2).stream());
    let sums = class_means(samples);
    let mut joint = Vec::with_capacity(PROJECTED * samples.classes);
    for _ in 0..PROJECTED {
        let direction = normal(&mut psi, samples.width);
        joint.extend(sums.chunks_exact(samples.width.max(1)).map(|mean| dot(&direction, mean)));
    }
    (0..l).map(|_| dot(&normal(&mut last, joint.len()), &joint) as f32).collect()
}

/// E[x · 1(y = c)] for each class.
fn class_means(samples: &Samples) -> Vec<f64> {
    let mut sums = vec![0.0; samples.width * samples.classes];
    for i in 0..samples.len() {
        let at = usize::from(samples.labels[i]) * samples.width;
        sums[at..at + samples.width].iter_mut().zip(samples.row(i)).for_each(|(s, x)| *s += f64::from(*x));
    }
    sums.iter_mut().for_each(|s| *s /= samples.len().max(1) as f64);
    sums
}

/// A random direction of expected length one.
fn normal(stream: &mut Stream, width: usize) -> Vec<f64> {
    let scale = 1.0 / libm::sqrt(width.max(1) as f64);
    (0..width).map(|_| stream.normal() * scale).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
