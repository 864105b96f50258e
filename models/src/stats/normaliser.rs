//! Making statistics comparable without asking any client for its own (methods §6, mode `public`).
use super::{Samples, Statistic, measured};
use crate::tensor::rng::{Key, Stream};
use serde::{Deserialize, Serialize};

/// Pseudo-clients drawn.
const CLIENTS: u64 = 100;
/// Dirichlet concentration of their class shares.
const ALPHA: f64 = 0.5;
/// Normalised values stay within this many deviations.
const CLIP: f32 = 3.0;

/// Mean and standard deviation per coordinate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Normaliser {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations.
    pub deviation: Vec<f32>,
}

impl Normaliser {
    /// Of some statistics; a coordinate that never varies gets deviation 1.
    pub fn of(all: &[Vec<f32>]) -> Self {
        let (width, n) = (all.first().map_or(0, Vec::len), all.len().max(1) as f64);
        let mean = |d: usize| all.iter().map(|s| f64::from(s[d])).sum::<f64>() / n;
        let spread = |d: usize| {
            let (m, square) = (mean(d), |v: f64| v * v);
            libm::sqrt(all.iter().map(|s| square(f64::from(s[d]) - m)).sum::<f64>() / n)
        };
        let deviation = (0..width).map(spread).map(|s| if s > 1e-9 { s as f32 } else { 1.0 });
        Self { mean: (0..width).map(|d| mean(d) as f32).collect(), deviation: deviation.collect() }
    }

    /// `(s − mean) / deviation`, kept within ±3.
    ///
    /// ```
    /// use models::stats::Normaliser;
    /// let normaliser = Normaliser { mean: vec![1.0, 0.0], deviation: vec![2.0, 1.0] };
    /// assert_eq!(normaliser.apply(&[2.0, 9.0]), [0.5, 3.0]);
    /// ```
    pub fn apply(&self, statistic: &[f32]) -> Vec<f32> {
        let parts = statistic.iter().zip(&self.mean).zip(&self.deviation);
        parts.map(|((s, m), d)| ((s - m) / d).clamp(-CLIP, CLIP)).collect()
    }
}

/// The public normaliser: mean and deviation over 100 pseudo-clients, each a subsample of the host's auxiliary data with class
/// shares from a Dirichlet 0.5 and between 50 samples and all of them (at most 5000).
pub fn public(kind: Statistic, auxiliary: &Samples, width: usize, key: Key) -> Normaliser {
    let one = |i| measured(kind, &pseudo_client(auxiliary, &mut key.step(i).stream()), width, key.seed);
    Normaliser::of(&(0..CLIENTS).map(one).collect::<Vec<_>>())
}

/// A pseudo-client's samples.
fn pseudo_client(auxiliary: &Samples, stream: &mut Stream) -> Samples {
    let (least, most) = (auxiliary.len().min(50), auxiliary.len().min(5000));
    let wanted = (least + stream.below(most - least + 1)) as f64;
    let shares = dirichlet(auxiliary.classes, stream);
    let mut chosen = Vec::new();
    for (class, share) in shares.iter().enumerate() {
        let mut members: Vec<usize> =
            (0..auxiliary.len()).filter(|&i| usize::from(auxiliary.labels[i]) == class).collect();
        stream.shuffle(&mut members);
        members.truncate((share * wanted).round() as usize);
        chosen.extend(members);
    }
    auxiliary.select(&chosen)
}

fn dirichlet(classes: usize, stream: &mut Stream) -> Vec<f64> {
    let draws: Vec<f64> = (0..classes).map(|_| gamma(ALPHA, stream)).collect();
    let total: f64 = draws.iter().sum();
    draws.iter().map(|d| d / total).collect()
}

/// Marsaglia and Tsang (2000), boosted for a shape below one.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        return gamma(shape + 1.0, stream) * libm::pow(1.0 - stream.unit64(), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    loop {
        let x = stream.normal();
        let v = libm::pow(1.0 + x / libm::sqrt(9.0 * d), 3.0);
        let u = 1.0 - stream.unit64();
        if v > 0.0 && libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}
