//! What a board learned for itself: the method's state, and the update that waits to be sent. Pure: state in, state out.
use crate::secret::Secret;
use crate::train::Workshop;
use models::fed::erased::{AnyMethod, method};
use models::fed::{Down, FedError, Predictor, Site};
use models::id::{ClientId, RoundId};
use models::nn::Trainer;
use models::params::ModelSpec;
use models::round::Pending;
use models::wire::{Adopt, Reject, Task, seal_update};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Everything that a board learned. Of it only `pending` ever leaves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Personal {
    /// The method; empty before the first task.
    pub method: String,
    /// Its hyper-parameters, encoded.
    pub hyper: Vec<u8>,
    /// The run's root seed.
    pub seed: u64,
    /// The method's state after the last round or model taken over.
    pub learned: Secret,
    /// The method's state after adaptation to this board's data: what answers. Empty until then.
    pub adapted: Secret,
    /// Rounds this board trained in.
    pub rounds: u32,
    /// Passes over its data that this board made in them.
    pub epochs: u32,
    /// Version of the model taken over.
    pub held: Option<u32>,
    /// The update that the host has not confirmed.
    pub pending: Option<Pending>,
    /// Milliseconds that one pass over one sample took, by the last round.
    pub pace_ms: f32,
}

/// Why a step of learning failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// The method failed.
    #[error(transparent)]
    Method(#[from] FedError),
    /// The update can't be written.
    #[error("the update can't be written: {0}")]
    Seal(Reject),
    /// There is nothing yet.
    #[error("this board has no model yet: take part in a round or let it receive one with `edge-client run`")]
    NoModel,
}

/// Where learning happens.
#[derive(Clone, Debug)]
pub struct Place {
    /// The model.
    pub spec: Arc<ModelSpec>,
    /// The board.
    pub client: ClientId,
}

impl Place {
    /// Where the data are.
    pub fn of(workshop: &Workshop) -> Self {
        Self { spec: Arc::clone(workshop.spec()), client: workshop.client() }
    }

    fn site(&self, seed: u64, round: RoundId) -> Site {
        Site { seed, round, client: self.client }
    }
}

type Parts = Vec<Arc<[f32]>>;

impl Personal {
    /// Trains for a round. Gives the new state, which holds the update, and the training loss.
    ///
    /// # Errors
    /// [`LearnError`]; the old state stands.
    pub fn fit(
        &self,
        task: &Task,
        parts: Parts,
        at: &Place,
        trainer: &mut dyn Trainer,
    ) -> Result<(Self, f64), LearnError> {
        let method = method(&task.method)?;
        let before = self.state_for(method, &task.hyper, at)?;
        let site = at.site(task.seed, task.round);
        let down = Down { parts, task: task.body.to_vec() };
        let sent = method.fit(&task.hyper, before.expose(), down, site, trainer)?;
        let sealed = seal_update(task.round, task.codec, &at.spec, &sent.up).map_err(LearnError::Seal)?;
        let pending = Some(Pending { round: task.round, sealed });
        let learned = Secret::new(sent.client);
        let next = Self {
            pending,
            learned,
            rounds: self.rounds + 1,
            epochs: self.epochs + task.epochs,
            ..self.under(method, &task.hyper, task.seed)
        };
        Ok((next, sent.loss))
    }

    /// Takes a model over and adapts it.
    ///
    /// # Errors
    /// [`LearnError`]; the old state stands.
    pub fn adopt(
        &self,
        offer: &Adopt,
        parts: Parts,
        at: &Place,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, LearnError> {
        let method = method(&offer.method)?;
        let before = self.state_for(method, &offer.hyper, at)?;
        let site = at.site(offer.seed, RoundId(offer.version));
        let down = Down { parts, task: offer.body.to_vec() };
        let learned = method.adopt(&offer.hyper, before.expose(), down, site, trainer)?;
        let taken = Self {
            learned: Secret::new(learned),
            held: Some(offer.version),
            ..self.under(method, &offer.hyper, offer.seed)
        };
        taken.personalize(at, trainer)
    }

    /// Makes the board right about its own world, from what it has and the data it has now.
    ///
    /// # Errors
    /// [`LearnError`]; the old state stands.
    pub fn personalize(&self, at: &Place, trainer: &mut dyn Trainer) -> Result<Self, LearnError> {
        if self.learned.expose().is_empty() {
            return Err(LearnError::NoModel);
        }
        let site = at.site(self.seed, RoundId(self.held.unwrap_or(self.rounds)));
        let adapted = method(&self.method)?.adapt(&self.hyper, self.learned.expose(), site, trainer)?;
        Ok(Self { adapted: Secret::new(adapted), ..self.clone() })
    }

    /// How the board answers: by its adapted state, or before there is one by what it learned.
    ///
    /// # Errors
    /// [`LearnError::NoModel`], or what the method says.
    pub fn predictor(&self, spec: &Arc<ModelSpec>) -> Result<Predictor, LearnError> {
        let state = [&self.adapted, &self.learned].into_iter().find(|s| !s.expose().is_empty());
        let state = state.ok_or(LearnError::NoModel)?;
        Ok(method(&self.method)?.predictor(&self.hyper, state.expose(), spec)?)
    }

    /// The state to go on from: this board's own, or a new one where it has none of this method.
    fn state_for(&self, wanted: &dyn AnyMethod, hyper: &[u8], at: &Place) -> Result<Secret, LearnError> {
        match self.method == wanted.name() && !self.learned.expose().is_empty() {
            true => Ok(self.learned.clone()),
            false => Ok(Secret::new(wanted.enroll(hyper, &at.spec)?)),
        }
    }

    fn under(&self, method: &dyn AnyMethod, hyper: &[u8], seed: u64) -> Self {
        Self { method: method.name().into(), hyper: hyper.to_vec(), seed, ..self.clone() }
    }
}
