//! A trainer that its owner gave a ceiling: how much of the model may change at all.
use super::{ClassCounts, Features, Job, Loss, Metrics, Proximal, Split, TrainError, Trained, Trainer};
use crate::params::{Backbone, Mask, ModelSpec, Params, UpdateMode};
use std::sync::Arc;

/// A trainer that changes nothing beyond an update mode, whatever a method asks for: in rounds, in personal parts and in adaptation alike.
/// Everything else is as it was; with `full` nothing is different at all.
#[derive(Clone, Debug)]
pub struct Limited<T> {
    trainer: T,
    mode: UpdateMode,
    trains: Mask,
}

impl<T: Trainer> Limited<T> {
    /// The same trainer under this ceiling. As many last layers as the model has, or more, are no ceiling.
    pub fn new(trainer: T, mode: UpdateMode) -> Self {
        let mode = mode.of(trainer.spec());
        let trains = mode.mask(trainer.spec());
        Self { trainer, mode, trains }
    }

    /// The trainer without a ceiling.
    pub fn into_inner(self) -> T {
        self.trainer
    }
}

impl<T: Trainer> Trainer for Limited<T> {
    fn spec(&self) -> &Arc<ModelSpec> {
        self.trainer.spec()
    }

    fn mode(&self) -> UpdateMode {
        self.mode
    }

    fn counts(&self) -> &ClassCounts {
        self.trainer.counts()
    }

    fn samples(&self, split: Split) -> usize {
        self.trainer.samples(split)
    }

    fn train(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError> {
        let trains = job.trains.and(&self.trains);
        if trains.is_empty() {
            let loss = self.trainer.evaluate(start, job.conditioning, Split::Train)?.loss;
            return Ok(Trained { params: start.clone(), loss, visits: 0 });
        }
        let pulled = job.loss.proximal.map(|p| p.on.and(&trains));
        let proximal = job.loss.proximal.zip(pulled.as_ref()).map(|(p, on)| Proximal { on, ..p });
        let loss = Loss { proximal, ..job.loss };
        self.trainer.train(start, &Job { trains: &trains, loss, ..*job })
    }

    fn evaluate(
        &mut self,
        params: &Params,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Metrics, TrainError> {
        self.trainer.evaluate(params, conditioning, split)
    }

    fn features(
        &mut self,
        backbone: &Backbone,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Features, TrainError> {
        self.trainer.features(backbone, conditioning, split)
    }

    fn gradient(&mut self, params: &Params, conditioning: &[f32]) -> Result<Vec<f32>, TrainError> {
        self.trainer.gradient(params, conditioning)
    }

    fn visit(&self, look: &mut dyn FnMut(&[f32], u16)) {
        self.trainer.visit(look);
    }
}
