//! Adaptation on the board after training, which any method can be followed by (science §1): one rule.
//!
//! EA: head-only epochs on cached features. Fine-tuning: whole-net epochs at half the step size. w50: the midpoint in weight
//! space of EA's network and the one fine-tuned from it.
use super::training::{Training, within};
use super::{FedError, Site};
use crate::nn::{Features, Loss, Split, Trainer, head};
use crate::params::{Head, Mask, Params};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};

/// What follows the last round.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapt {
    /// Nothing: the model answers as it came.
    #[default]
    None,
    /// Head-only epochs.
    Ea,
    /// Whole-net epochs.
    Finetune,
    /// Halfway from EA to fine-tuned.
    W50,
}

/// How long adaptation takes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptation {
    /// What is done.
    pub kind: Adapt,
    /// Head-only epochs of a board that took part.
    pub epochs: u32,
    /// Head-only epochs of a board that never took part.
    pub newcomer_epochs: u32,
    /// Whole-net epochs, at half the step size.
    pub finetune_epochs: u32,
}

impl Default for Adaptation {
    fn default() -> Self {
        Self { kind: Adapt::None, epochs: 5, newcomer_epochs: 10, finetune_epochs: 4 }
    }
}

impl Adaptation {
    /// Refuses what would take forever.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self) -> Result<(), FedError> {
        within("adapt.epochs", self.epochs, 0..=1000, "must be at most 1000")?;
        within("adapt.newcomer_epochs", self.newcomer_epochs, 0..=1000, "must be at most 1000")?;
        within("adapt.finetune_epochs", self.finetune_epochs, 0..=1000, "must be at most 1000")
    }

    /// Head-only epochs for a board that took part, or didn't.
    pub fn head_epochs(&self, newcomer: bool) -> u32 {
        if newcomer { self.newcomer_epochs } else { self.epochs }
    }
}

/// What is adapted, and where.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The board's training settings.
    pub train: Training,
    /// How long.
    pub how: Adaptation,
    /// Whether the board never took part.
    pub newcomer: bool,
    /// What the network is conditioned on.
    pub conditioning: &'a [f32],
    /// Whose data, and when.
    pub site: Site,
}

impl Setting<'_> {
    /// Adapts `start` as asked. The prior, where there is one, is in the head's bias already.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn run(&self, start: &Params, trainer: &mut dyn Trainer) -> Result<Params, FedError> {
        match self.how.kind {
            Adapt::None => Ok(start.clone()),
            Adapt::Ea => self.head_only(start, trainer),
            Adapt::Finetune => self.finetune(start, trainer),
            Adapt::W50 => {
                let head_only = self.head_only(start, trainer)?;
                self.halfway(&head_only, trainer)
            }
        }
    }

    /// EA: the head of `start` trained on its own features, everything below untouched.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn head_only(&self, start: &Params, trainer: &mut dyn Trainer) -> Result<Params, FedError> {
        let backbone = start.backbone();
        let features = trainer.features(&backbone, self.conditioning, Split::Train)?;
        Ok(Params::join(&backbone, &self.head_on(&features, &start.head())?))
    }

    /// EA on features that are there already.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn head_on(&self, features: &Features, start: &Head) -> Result<Head, FedError> {
        let how = self.train.epochs(self.how.head_epochs(self.newcomer));
        Ok(head::fit(features, start, &how.head_job(self.site.key(Purpose::Adapt)))?)
    }

    /// Fine-tuning of the whole network.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn finetune(&self, start: &Params, trainer: &mut dyn Trainer) -> Result<Params, FedError> {
        let everything = Mask::all(trainer.spec());
        let how = self.train.epochs(self.how.finetune_epochs).half_rate();
        let job = how.job(&everything, self.site.key(Purpose::Private), Loss::default(), self.conditioning);
        Ok(trainer.train(start, &job)?.params)
    }

    /// w50: halfway from `adapted` to what fine-tuning makes of it; the private delta at gain 1/2, learned after federation.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn halfway(&self, adapted: &Params, trainer: &mut dyn Trainer) -> Result<Params, FedError> {
        Ok(adapted.mixed_with(&self.finetune(adapted, trainer)?, 0.5))
    }
}
