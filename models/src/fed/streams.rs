//! The personal parts of FedPrism on a board (methods §4.2–4.4): the share α of the global part, the private delta P, and a
//! specialist that the federation never touches.
use super::training::{Training, within};
use super::{FedError, Kept, Site, local};
use crate::nn::{Loss, Proximal, Split, Trainer};
use crate::params::{Mask, Params, Whole};
use crate::tensor::rng::Purpose;
use serde::{Deserialize, Serialize};

/// How α moves after a round.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlphaRule {
    /// Towards the part that the trained model is nearer to.
    #[default]
    Distance,
    /// Towards the part with the lower training loss.
    Loss,
    /// Down its gradient.
    Gradient,
    /// Not at all: the board chooses between the two by a test (science §5 step 2).
    Choice,
}

/// Which personal parts there are, and how they are trained.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// A private delta P.
    pub private_delta: bool,
    /// Epochs of its own phase (E_p).
    pub private_epochs: u32,
    /// L2 penalty on it.
    pub private_decay: f32,
    /// A specialist trained from scratch.
    pub specialist: bool,
    /// Its epochs in a round (E_L); 0: as many as the shared phase.
    pub specialist_epochs: u32,
    /// How α moves.
    pub alpha_rule: AlphaRule,
    /// By how much (η_a).
    pub alpha_rate: f32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            private_delta: true,
            private_epochs: 1,
            private_decay: 1e-4,
            specialist: true,
            specialist_epochs: 0,
            alpha_rule: AlphaRule::Distance,
            alpha_rate: 0.05,
        }
    }
}

impl Rules {
    /// Refuses what can't be trained with.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self) -> Result<(), FedError> {
        within("private_epochs", self.private_epochs, 0..=1000, "must be at most 1000")?;
        within("private_decay", self.private_decay, 0.0..=100.0, "must be 0 to 100")?;
        within("specialist_epochs", self.specialist_epochs, 0..=1000, "must be at most 1000")?;
        within("alpha_rate", self.alpha_rate, 0.0..=1.0, "must be 0 to 1")
    }

    /// Epochs of a round beside the shared phase of `shared` epochs.
    pub fn extra_epochs(&self, shared: u32) -> u32 {
        let specialist = if self.specialist { self.own_epochs(shared) } else { 0 };
        specialist + if self.private_delta { self.private_epochs } else { 0 }
    }

    fn own_epochs(&self, shared: u32) -> u32 {
        if self.specialist_epochs == 0 { shared } else { self.specialist_epochs }
    }
}

/// The personal parts.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Streams {
    /// α: the global part's share of the start.
    pub alpha: f32,
    /// P, as a change of the whole model.
    pub private: Option<Kept<Whole>>,
    /// L.
    pub specialist: Option<Kept<Whole>>,
}

/// What a round had to do with.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// The global part, complete with a head.
    pub global: &'a Params,
    /// The board's mix, complete with a head.
    pub mix: &'a Params,
    /// The model before the first round, where a specialist is trained.
    pub initial: Option<&'a Params>,
    /// The cluster part it belongs to most.
    pub nearest: &'a Params,
    /// Where shared training ended.
    pub end: &'a Params,
    /// Training settings of the shared phase.
    pub train: Training,
    /// Entries that the private delta may change.
    pub personal: &'a Mask,
    /// What the network is conditioned on.
    pub conditioning: &'a [f32],
    /// Whose data, and when.
    pub site: Site,
}

impl Streams {
    /// Before the first round: α = a₀, P = 0, no specialist.
    pub fn new(alpha: f32) -> Self {
        Self { alpha, private: None, specialist: None }
    }

    /// `α w_G + (1−α) M + P`; exactly w_G where the mix is the global part and P is not there.
    pub fn assembled(&self, global: &Params, mix: &Params) -> Params {
        self.with_private(&global.mixed_with(mix, self.alpha))
    }

    /// `shared + P`.
    pub fn with_private(&self, shared: &Params) -> Params {
        with_private(shared, self.private.as_ref(), 1.0)
    }

    /// The gradient rule's step, taken once before the round on all training samples: `α ← clip(α − η ⟨∇CE, w_G − M⟩)`.
    /// (The source moves α at every batch; the mean gradient is what a trainer lets out.) Other rules leave α.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn before(
        &mut self,
        rules: &Rules,
        at: &Round<'_>,
        trainer: &mut dyn Trainer,
    ) -> Result<(), FedError> {
        if rules.alpha_rule == AlphaRule::Gradient {
            let gradient = trainer.gradient(&self.assembled(at.global, at.mix), at.conditioning)?;
            let away = at.global.minus(at.mix);
            let slope: f64 =
                gradient.iter().zip(away.values()).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
            self.alpha = (self.alpha - rules.alpha_rate * slope as f32).clamp(0.0, 1.0);
        }
        Ok(())
    }

    /// The personal parts after the shared phase: P's own phase on what the shared part became, the specialist's epochs, α's
    /// step.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn after(&self, rules: &Rules, at: &Round<'_>, trainer: &mut dyn Trainer) -> Result<Self, FedError> {
        let private = match rules.private_delta {
            true => Some(self.private_phase(rules, at, trainer)?.into()),
            false => None,
        };
        let specialist = match rules.specialist {
            true => Some(self.own_phase(rules, at, trainer)?.into()),
            false => None,
        };
        let alpha =
            (self.alpha + rules.alpha_rate * direction(rules.alpha_rule, at, trainer)?).clamp(0.0, 1.0);
        Ok(Self { alpha, private, specialist })
    }

    /// P after `private_epochs` on CE + L2, everything shared fixed.
    fn private_phase(
        &self,
        rules: &Rules,
        at: &Round<'_>,
        trainer: &mut dyn Trainer,
    ) -> Result<Params, FedError> {
        let shared = with_private(at.end, self.private.as_ref(), -1.0);
        let proximal = Some(Proximal { anchor: &shared, mu: rules.private_decay, on: at.personal });
        let loss = Loss { proximal, ..Loss::default() };
        let train = at.train.epochs(rules.private_epochs);
        let job = train.job(at.personal, at.site.key(Purpose::Private), loss, at.conditioning);
        let end = trainer.train(at.end, &job)?.params;
        Ok(Params::zeros(end.spec()).plus(&end.minus(&shared), 1.0))
    }

    /// The specialist after its epochs; the first time from the initial model.
    fn own_phase(
        &self,
        rules: &Rules,
        at: &Round<'_>,
        trainer: &mut dyn Trainer,
    ) -> Result<Params, FedError> {
        let start = self.specialist.as_ref().map(|s| &s.0).or(at.initial).unwrap_or(at.global);
        let train = at.train.epochs(rules.own_epochs(at.train.epochs));
        Ok(local::alone(start, train, at.conditioning, at.site, trainer)?.0)
    }
}

fn with_private(model: &Params, private: Option<&Kept<Whole>>, scale: f32) -> Params {
    let zero = |p: &Kept<Whole>| p.minus(&Params::zeros(p.spec()));
    private.map_or_else(|| model.clone(), |p| model.plus(&zero(p), scale))
}

/// +1 towards the global part, −1 towards the clusters.
fn direction(rule: AlphaRule, at: &Round<'_>, trainer: &mut dyn Trainer) -> Result<f32, FedError> {
    let global_is_better = match rule {
        AlphaRule::Gradient | AlphaRule::Choice => return Ok(0.0),
        AlphaRule::Distance => at.end.distance(at.global) < at.end.distance(at.nearest),
        AlphaRule::Loss => {
            let mut loss = |model| trainer.evaluate(model, at.conditioning, Split::Train).map(|m| m.loss);
            loss(at.global)? < loss(at.mix)?
        }
    };
    Ok(if global_is_better { 1.0 } else { -1.0 })
}
