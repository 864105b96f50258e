//! The client's data statistics (Client-Conditional, arXiv 2603.11307; methods §6): what a network may be conditioned on.
//!
//! Everything here is computed on the board from its training data. The statistics themselves are private: whoever sees an
//! update of the layer that a constant input feeds can divide them out of it.
mod normaliser;
mod samples;
mod spectrum;

pub use normaliser::{Normaliser, public};
pub use samples::Samples;
pub use spectrum::{label_block, spectrum};

use crate::tensor::rng::{Key, Purpose};
use serde::{Deserialize, Serialize};

/// What a network is conditioned on.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Nothing.
    #[default]
    None,
    /// The paper's: the PCA spectrum of pixels and labels. Blind to a permutation of the labels and to right-angle turns.
    V1,
    /// Half spectrum, half label-aware block.
    V2,
    /// A random vector per client: a control that carries identity and no information.
    Random,
    /// The client's true cluster: a control.
    ClusterId,
}

impl Statistic {
    /// Whether it is measured on data (and needs a normaliser).
    pub fn is_measured(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }
}

/// Added to an eigenvalue before its logarithm.
const FLOOR: f64 = 1e-6;

/// The statistic of a client before normalisation, `width` numbers: logarithms of eigenvalues (v1), or half of them and half
/// the label-aware block (v2). `seed` fixes the block's projections for all clients of a run. Controls give zeros.
pub fn measured(kind: Statistic, samples: &Samples, width: usize, seed: u64) -> Vec<f32> {
    let log = |values: Vec<f64>| values.into_iter().map(|v| libm::log(v + FLOOR) as f32);
    match kind {
        Statistic::V1 => log(spectrum(samples, width)).collect(),
        Statistic::V2 => {
            let block = label_block(samples, width - width / 2, seed);
            log(spectrum(samples, width / 2)).chain(block).collect()
        }
        Statistic::None | Statistic::Random | Statistic::ClusterId => vec![0.0; width],
    }
}

/// The control `random`: a standard normal vector that stands for a client's identity.
pub fn random(width: usize, seed: u64, client: crate::id::ClientId) -> Vec<f32> {
    let mut stream = Key { client: client.0, ..Key::new(seed, Purpose::Control) }.stream();
    (0..width).map(|_| stream.normal() as f32).collect()
}

/// The control `cluster_id`: one-hot of a cluster.
///
/// ```
/// assert_eq!(models::stats::one_hot(3, 1), [0.0, 1.0, 0.0]);
/// ```
pub fn one_hot(width: usize, index: usize) -> Vec<f32> {
    (0..width).map(|i| f32::from(u8::from(i == index))).collect()
}

#[cfg(test)]
mod tests;
