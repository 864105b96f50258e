//! How a board trains for a round: hyper-parameters that every method has.
use super::FedError;
use crate::nn::head::HeadJob;
use crate::nn::{Job, LearningRate, Loss};
use crate::params::{Mask, ModelSpec};
use crate::tensor::rng::Key;
use serde::{Deserialize, Serialize};

/// Local training of one round (methods §1.3): SGD, shuffled every epoch, momentum starting at zero.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Passes over the board's training samples (E).
    pub epochs: u32,
    /// Samples per step (B).
    pub batch: u32,
    /// Step size (η).
    pub rate: LearningRate,
    /// Momentum.
    pub momentum: f32,
}

impl Default for Training {
    /// The defaults of science §9.3.
    fn default() -> Self {
        Self { epochs: 2, batch: 16, rate: LearningRate(0.015), momentum: 0.9 }
    }
}

impl Training {
    /// Refuses what can't be trained with.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self) -> Result<(), FedError> {
        within("train.epochs", self.epochs, 1..=1000, "must be 1 to 1000")?;
        within("train.batch", self.batch, 1..=65_536, "must be 1 to 65536")?;
        within("train.rate", self.rate.0, 1e-9..=10.0, "must be positive and at most 10")?;
        within("train.momentum", self.momentum, 0.0..=0.999, "must be 0 to 0.999")
    }

    /// These settings for another number of epochs.
    #[must_use]
    pub fn epochs(self, epochs: u32) -> Self {
        Self { epochs, ..self }
    }

    /// These settings at half the step size, for fine-tuning.
    #[must_use]
    pub fn half_rate(self) -> Self {
        Self { rate: LearningRate(self.rate.0 / 2.0), ..self }
    }

    /// The job these settings describe.
    pub fn job<'a>(&self, trains: &'a Mask, order: Key, loss: Loss<'a>, conditioning: &'a [f32]) -> Job<'a> {
        let Self { epochs, batch, rate, momentum } = *self;
        Job { trains, epochs, batch: batch as usize, rate, momentum, order, loss, conditioning }
    }

    /// The same for a head on cached features.
    pub fn head_job(&self, order: Key) -> HeadJob<'static> {
        let Self { epochs, batch, rate, momentum } = *self;
        HeadJob { epochs, batch: batch as usize, rate, momentum, order, prior: None }
    }
}

/// Refuses `value` outside of `range`; a number that is not finite is always outside.
///
/// # Errors
/// [`FedError::Hyper`].
pub fn within<T: PartialOrd + Copy + std::fmt::Debug>(
    name: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
    must: &'static str,
) -> Result<(), FedError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(FedError::Hyper { name, value: format!("{value:?}"), must })
    }
}

/// What a network is conditioned on where a method says nothing about its client: zeros, as many as it takes.
pub fn unconditioned(spec: &ModelSpec) -> Vec<f32> {
    vec![0.0; spec.card().statistics]
}
