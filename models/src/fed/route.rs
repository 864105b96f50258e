//! Who is heard: specialist and generalist weighed by how familiar an input looks (science §8.3), or by the specialist's
//! confidence (FedPrism §4.6). Native code and exported graphs share these functions.
use crate::nn::Features;

/// How two streams are weighed. Router state never leaves the board.
#[derive(Clone, Debug, PartialEq)]
pub enum Router {
    /// Familiarity (science §8.3): how well the input fits what the board has seen.
    Familiarity {
        /// log π_i.
        log_prior: Vec<f32>,
        /// Share ε of unfamiliar inputs expected.
        epsilon: f32,
        /// Training features of the specialist's first stream; empty to do without.
        gallery: Gallery,
    },
    /// FedPrism's own rule: λ(x) = max softmax(z_specialist / T).
    Confidence {
        /// Temperature T.
        temperature: f32,
    },
    /// λ = 1 always: the specialist alone.
    Specialist,
}

/// What the board's own training inputs look like to its model.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Gallery {
    /// Width of a feature.
    pub width: usize,
    /// L2-normalised features, row by row.
    pub rows: Vec<f32>,
    /// Mean of the leave-one-out fifth-largest cosine.
    pub mean: f32,
    /// Its standard deviation.
    pub deviation: f32,
}

/// Which stream an answer comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decider {
    /// The board's personal model.
    Specialist,
    /// The shared model.
    Generalist,
}

/// An answer, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    /// p = λ·p_specialist + (1−λ)·p_generalist.
    pub probabilities: Vec<f32>,
    /// λ: the specialist's weight, and the score of familiarity.
    pub weight: f32,
    /// What the specialist says.
    pub specialist: Vec<f32>,
    /// What the generalist says.
    pub generalist: Vec<f32>,
    /// The specialist when λ·p_specialist\[ŷ\] ≥ (1−λ)·p_generalist\[ŷ\].
    pub decided_by: Decider,
    /// λ < ½.
    pub unfamiliar: bool,
}

impl Routed {
    /// The class answered: the first of the most probable ones.
    pub fn class(&self) -> usize {
        argmax(&self.probabilities)
    }
}

/// Index of the largest value; of equal ones the first.
///
/// ```
/// assert_eq!(models::fed::argmax(&[0.2, 0.5, 0.5]), 1);
/// ```
pub fn argmax(values: &[f32]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// Neighbour whose cosine is looked at: the fifth.
const NEIGHBOUR: usize = 5;

impl Gallery {
    /// The gallery of a board's training features. Below two samples there is nothing to compare with: empty.
    pub fn of(features: &Features) -> Self {
        let (width, rows) = (features.width, normalised(features));
        if features.len() < 2 {
            return Self::default();
        }
        let row = |i: usize| &rows[i * width..(i + 1) * width];
        let near: Vec<f64> = (0..features.len())
            .map(|i| {
                f64::from(nearness(
                    row(i),
                    rows.chunks_exact(width).enumerate().filter(|(j, _)| *j != i).map(|(_, r)| r),
                ))
            })
            .collect();
        let mean = near.iter().sum::<f64>() / near.len() as f64;
        let variance = near.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / near.len() as f64;
        Self { width, rows, mean: mean as f32, deviation: libm::sqrt(variance) as f32 }
    }

    /// κ(x): the standardised fifth-largest cosine to the gallery; nothing where there is no gallery or no spread in it.
    pub fn kappa(&self, feature: &[f32]) -> Option<f32> {
        if self.rows.is_empty() || feature.len() != self.width || self.deviation <= 0.0 {
            return None;
        }
        let unit = unit(feature);
        Some((nearness(&unit, self.rows.chunks_exact(self.width)) - self.mean) / self.deviation)
    }
}

fn normalised(features: &Features) -> Vec<f32> {
    (0..features.len()).flat_map(|i| unit(features.row(i))).collect()
}

fn unit(feature: &[f32]) -> Vec<f32> {
    let norm = libm::sqrtf(feature.iter().map(|x| x * x).sum()).max(f32::MIN_POSITIVE);
    feature.iter().map(|x| x / norm).collect()
}

/// The fifth-largest cosine (the smallest one where there are fewer).
fn nearness<'a>(feature: &[f32], others: impl Iterator<Item = &'a [f32]>) -> f32 {
    let mut best = [f32::NEG_INFINITY; NEIGHBOUR];
    let mut found = 0;
    for other in others {
        let cosine: f32 = feature.iter().zip(other).map(|(a, b)| a * b).sum();
        found += 1;
        let at = best.partition_point(|b| *b >= cosine);
        if at < NEIGHBOUR {
            best[at..].rotate_right(1);
            best[at] = cosine;
        }
    }
    best[NEIGHBOUR.min(found).max(1) - 1]
}

impl Router {
    /// Familiarity with a gallery of training features.
    pub fn familiarity(log_prior: Vec<f32>, epsilon: f32, gallery: Gallery) -> Self {
        Self::Familiarity { log_prior, epsilon, gallery }
    }

    /// Familiarity from probabilities alone.
    pub fn from_prior(log_prior: Vec<f32>, epsilon: f32) -> Self {
        Self::familiarity(log_prior, epsilon, Gallery::default())
    }

    /// λ(x), from the streams' log-probabilities and the specialist's feature.
    ///
    /// Familiarity: `λ = sigmoid( log((1−ε)/ε) + log F + ½ clip(κ+1, −4, 1) )` with `F = C Σ_c π(c) G_c`. With ε = ½, no
    /// gallery and a generalist that knows nothing (G = 1/C), F = 1 and λ = ½:
    /// ```
    /// use models::fed::Router;
    /// let router = Router::from_prior(vec![0.9_f32.ln(), 0.1_f32.ln()], 0.5);
    /// let even = [0.5_f32.ln(); 2];
    /// assert!((router.weight(&even, &even, &[]) - 0.5).abs() < 1e-6);
    /// // A generalist sure of the class that this board has: F = 1.8, λ = 1.8/2.8.
    /// let sure = [0.0, -100.0];
    /// assert!((router.weight(&even, &sure, &[]) - 1.8 / 2.8).abs() < 1e-5);
    /// ```
    /// Confidence: `λ = max softmax(z/T)`, never below 1/C.
    pub fn weight(&self, specialist: &[f32], generalist: &[f32], feature: &[f32]) -> f32 {
        match self {
            Self::Specialist => 1.0,
            Self::Confidence { temperature } => sharpest(specialist, *temperature),
            Self::Familiarity { log_prior, epsilon, gallery } => {
                let known: f32 = log_prior.iter().zip(generalist).map(|(r, g)| libm::expf(r + g)).sum();
                let familiarity = libm::logf((log_prior.len() as f32 * known).max(f32::MIN_POSITIVE));
                let near = gallery.kappa(feature).map_or(0.0, |k| 0.5 * (k + 1.0).clamp(-4.0, 1.0));
                sigmoid(libm::logf((1.0 - epsilon) / epsilon) + familiarity + near)
            }
        }
    }

    /// The answer to one input.
    pub fn route(&self, specialist: &[f32], generalist: &[f32], feature: &[f32]) -> Routed {
        let weight = self.weight(specialist, generalist, feature);
        let exp = |log: &[f32]| log.iter().map(|l| libm::expf(*l)).collect::<Vec<f32>>();
        let (specialist, generalist) = (exp(specialist), exp(generalist));
        let probabilities: Vec<f32> =
            specialist.iter().zip(&generalist).map(|(s, g)| weight * s + (1.0 - weight) * g).collect();
        let answer = argmax(&probabilities);
        let own = weight * specialist[answer] >= (1.0 - weight) * generalist[answer];
        let decided_by = if own { Decider::Specialist } else { Decider::Generalist };
        Routed { probabilities, weight, specialist, generalist, decided_by, unfamiliar: weight < 0.5 }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// `max softmax(z/T)`; log-probabilities differ from logits by a shift, which softmax doesn't see.
fn sharpest(log_probabilities: &[f32], temperature: f32) -> f32 {
    let top = log_probabilities.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    1.0 / log_probabilities.iter().map(|l| libm::expf((l - top) / temperature)).sum::<f32>()
}
