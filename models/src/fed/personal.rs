//! A private head on a shared backbone: what FedPer's and pFedKDH's boards keep, and do alike.
use super::adapt::{Adaptation, Setting};
use super::training::{Training, unconditioned};
use super::{Down, FedError, Kept, Method, Predictor, Site};
use crate::nn::Trainer;
use crate::params::{Backbone, Head, HeadScope, ModelSpec, Params, Whole};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A board's state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Client {
    /// Its own head, as the last round left it.
    pub head: Option<Kept<HeadScope>>,
    /// The model it answers with.
    pub model: Option<Kept<Whole>>,
}

impl Client {
    /// Its own head, or the one that came (the initial one).
    ///
    /// # Errors
    /// [`FedError::Parts`].
    pub fn head_or<M: Method>(
        &self,
        down: &Down<M::Task>,
        index: usize,
        spec: &Arc<ModelSpec>,
    ) -> Result<Head, FedError> {
        match &self.head {
            Some(own) => Ok(own.0.clone()),
            None => down.part::<M, _>(index, spec),
        }
    }

    /// After a round: the trained head, and the model of its own round.
    pub fn after(end: &Params, start: &Backbone) -> Self {
        let head = end.head();
        Self { model: Some(Params::join(start, &head).into()), head: Some(head.into()) }
    }

    /// Takes a backbone over, with its own head or the one that came.
    ///
    /// # Errors
    /// [`FedError::Parts`].
    pub fn adopted<M: Method>(&self, down: &Down<M::Task>, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        let model = Params::join(&down.part::<M, _>(0, spec)?, &self.head_or::<M>(down, 1, spec)?);
        Ok(Self { model: Some(model.into()), head: self.head.clone() })
    }

    /// The model, adapted; its own head stays what the rounds made of it.
    ///
    /// # Errors
    /// [`FedError::NoModel`], [`FedError::Train`].
    pub fn adapted(
        &self,
        train: Training,
        how: Adaptation,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, FedError> {
        let neutral = unconditioned(trainer.spec());
        let setting = Setting { train, how, newcomer: self.head.is_none(), conditioning: &neutral, site };
        let model = setting.run(self.model.as_ref().ok_or(FedError::NoModel)?, trainer)?;
        Ok(Self { model: Some(model.into()), head: self.head.clone() })
    }

    /// One network.
    ///
    /// # Errors
    /// [`FedError::NoModel`].
    pub fn predictor(&self) -> Result<Predictor, FedError> {
        let model = self.model.as_ref().ok_or(FedError::NoModel)?;
        Ok(Predictor::single(model, &unconditioned(model.spec())))
    }
}
