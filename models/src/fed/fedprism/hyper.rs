//! FedPrism's hyper-parameters.
use crate::fed::FedError;
use crate::fed::adapt::Adaptation;
use crate::fed::streams::{AlphaRule, Rules};
use crate::fed::training::{Training, within};
use serde::{Deserialize, Serialize};

/// Its hyper-parameters (methods §4.7).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyper {
    /// Number of clusters (K).
    pub clusters: u16,
    /// Clusters in a board's mix (m); 0: all.
    pub top: u16,
    /// Rounds between clusterings (c).
    pub recluster: u32,
    /// Temperature of the assignment (τ).
    pub tau: f32,
    /// α before the first round (a₀).
    pub alpha: f32,
    /// Temperature of the router (T).
    pub temperature: f32,
    /// The personal parts.
    pub streams: Rules,
    /// Local training of a round, its shared phase.
    pub train: Training,
    /// What each board does with the assembled model after the last round.
    pub adapt: Adaptation,
}

impl Default for Hyper {
    fn default() -> Self {
        Self {
            clusters: 5,
            top: 0,
            recluster: 10,
            tau: 0.1,
            alpha: 0.5,
            temperature: 1.0,
            streams: Rules::default(),
            train: Training::default(),
            adapt: Adaptation::default(),
        }
    }
}

impl Hyper {
    /// These hyper-parameters at matched budget (methods §4.4): one epoch of the shared phase goes to P, and the specialist gets
    /// one of its own.
    #[must_use]
    pub fn matched(self) -> Self {
        let shared = self.train.epochs.saturating_sub(u32::from(self.streams.private_delta)).max(1);
        let streams = Rules { private_epochs: 1, specialist_epochs: 1, ..self.streams };
        Self { train: self.train.epochs(shared), streams, ..self }
    }

    /// Clusters in a mix.
    pub fn width(&self) -> usize {
        usize::from(if self.top == 0 { self.clusters } else { self.top })
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self) -> Result<(), FedError> {
        within("clusters", self.clusters, 1..=60, "must be 1 to 60")?;
        within("top", self.top, 0..=60, "must be at most 60 (0: all)")?;
        within("recluster", self.recluster, 1..=100_000, "must be at least 1")?;
        within("tau", self.tau, 1e-4..=100.0, "must be 0.0001 to 100")?;
        within("alpha", self.alpha, 0.0..=1.0, "must be 0 to 1")?;
        within("temperature", self.temperature, 0.01..=100.0, "must be 0.01 to 100")?;
        let choice = self.streams.alpha_rule == AlphaRule::Choice;
        within("alpha_rule", u8::from(choice), 0..=0, "must not be \"choice\" (that is cpct's)")?;
        self.streams.check()?;
        self.train.check()?;
        self.adapt.check()
    }
}
