//! The one numeric capability a method may ask for. A trainer owns its data; nothing of them comes out but what is
//! named here, and none of these types has a form on the wire.
use crate::id::ClientId;
use crate::params::{Backbone, Mask, ModelSpec, Params, SpecError, UpdateMode};
use crate::tensor::rng::Key;
use std::sync::Arc;

/// A positive, finite step size.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, serde::Deserialize, serde::Serialize)]
pub struct LearningRate(pub f32);

/// Which of the trainer's own samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// All training samples.
    Train,
    /// The validation slice (one tenth, at least one sample if there are ten; never trained on).
    Validation,
    /// At most this many training samples, keyed draw.
    Probe(usize),
}

/// Number of training samples per class. Stays on the board.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassCounts(pub Vec<u32>);

impl ClassCounts {
    /// Samples in all.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }
}

/// Local training to be done.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Entries that change; all others stay bit-exact. The backward pass stops below the lowest of them, and what lies below is in
    /// evaluation mode: its dropout is off. A batch norm takes the batch's statistics, and updates its running ones,
    /// where its weight or bias is trained; otherwise its running statistics normalise and stay.
    pub trains: &'a Mask,
    /// Passes over the training samples.
    pub epochs: u32,
    /// Samples per step; the last, smaller batch is kept (unless it has one sample and the net has batch norm).
    pub batch: usize,
    /// Step size.
    pub rate: LearningRate,
    /// Momentum; its state starts at zero with the job.
    pub momentum: f32,
    /// Key of the order of the samples (purpose, round, client); each epoch is one `step` of it.
    pub order: Key,
    /// What is minimised.
    pub loss: Loss<'a>,
    /// The conditioning vector, empty if the network has none.
    pub conditioning: &'a [f32],
}

/// What is minimised: means over the batch.
///
/// `(1−l)·CE(z + r, y) + l·T²·KL(q_teacher^T ‖ q_student^T) + (μ/2)·‖w − anchor‖²`
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss<'a> {
    /// Log prior r added to the logits (balanced softmax), one number per class.
    pub prior: Option<&'a [f32]>,
    /// Distillation.
    pub distill: Option<Distill<'a>>,
    /// Pull towards an anchor.
    pub proximal: Option<Proximal<'a>>,
}

/// Distillation from a frozen teacher (evaluation mode).
#[derive(Clone, Copy, Debug)]
pub struct Distill<'a> {
    /// The teacher.
    pub teacher: &'a Params,
    /// Temperature T.
    pub temperature: f32,
    /// Weight l (paper: λ_KD).
    pub weight: f32,
}

/// A proximal term.
#[derive(Clone, Copy, Debug)]
pub struct Proximal<'a> {
    /// Where it pulls to.
    pub anchor: &'a Params,
    /// Strength μ.
    pub mu: f32,
    /// Entries it pulls.
    pub on: &'a Mask,
}

/// What training produced.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model at the end.
    pub params: Params,
    /// Mean loss over the last epoch.
    pub loss: f64,
    /// Gradient sample visits.
    pub visits: u64,
}

/// What evaluation found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Mean cross-entropy.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// Mean of the per-class accuracies, over classes present.
    pub balanced: f64,
    /// Samples looked at.
    pub samples: u32,
}

/// Penultimate features of some samples, with their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// Width of one feature.
    pub width: usize,
    /// One row per sample.
    pub values: Vec<f32>,
    /// Their classes.
    pub labels: Vec<u16>,
}

impl Features {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The feature of one sample.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    /// These samples, in this order.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let values = indices.iter().flat_map(|&i| self.row(i)).copied().collect();
        Self { width: self.width, values, labels: indices.iter().map(|&i| self.labels[i]).collect() }
    }

    /// These samples and then those.
    #[must_use]
    pub fn chain(mut self, other: &Self) -> Self {
        self.values.extend_from_slice(&other.values);
        self.labels.extend_from_slice(&other.labels);
        self
    }
}

/// Why training could not be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// There is nothing to train on.
    #[error("client {client} has no training sample")]
    NoSamples {
        /// Whose data.
        client: ClientId,
    },
    /// The loss or a weight stopped being finite.
    #[error("training diverged in epoch {epoch}: the loss is not finite; a smaller learning rate may help")]
    Diverged {
        /// When.
        epoch: u32,
    },
    /// Training would take more memory than is allowed here.
    #[error(
        "training needs {needed} bytes, {allowed} are allowed: a smaller batch or fewer threads need less"
    )]
    Memory {
        /// What was planned.
        needed: usize,
        /// The ceiling.
        allowed: usize,
    },
    /// A model of another specification.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The conditioning vector has another width.
    #[error("the network takes a conditioning vector of {expected} numbers, {got} came")]
    Conditioning {
        /// Width of the specification.
        expected: usize,
        /// Width given.
        got: usize,
    },
}

/// Local data and the arithmetic on them: a board's own set, or the host's auxiliary set.
pub trait Trainer {
    /// The model everything here is shaped by.
    fn spec(&self) -> &Arc<ModelSpec>;

    /// How much of the model may change here at all: what an update from here can cover.
    fn mode(&self) -> UpdateMode {
        UpdateMode::Full
    }

    /// Training samples per class.
    fn counts(&self) -> &ClassCounts;

    /// Number of samples of a split.
    fn samples(&self, split: Split) -> usize;

    /// Trains from `start`.
    ///
    /// # Errors
    /// [`TrainError`].
    fn train(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError>;

    /// Loss and accuracy of a model, in evaluation mode.
    ///
    /// # Errors
    /// [`TrainError`].
    fn evaluate(
        &mut self,
        params: &Params,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Metrics, TrainError>;

    /// Penultimate features, in evaluation mode.
    ///
    /// # Errors
    /// [`TrainError`].
    fn features(
        &mut self,
        backbone: &Backbone,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Features, TrainError>;

    /// Mean gradient of the cross-entropy over the training samples, flat over the whole model (zero for what is not trainable).
    ///
    /// # Errors
    /// [`TrainError`].
    fn gradient(&mut self, params: &Params, conditioning: &[f32]) -> Result<Vec<f32>, TrainError>;

    /// Shows each training sample as the loader gave it, scaled to [0, 1] and not standardised, with its class.
    fn visit(&self, look: &mut dyn FnMut(&[f32], u16));
}

/// Whoever holds a trainer is one.
macro_rules! held {
    ($($holder:ty),+) => {$(
        impl<T: Trainer + ?Sized> Trainer for $holder {
            fn spec(&self) -> &Arc<ModelSpec> {
                (**self).spec()
            }
            fn mode(&self) -> UpdateMode {
                (**self).mode()
            }
            fn counts(&self) -> &ClassCounts {
                (**self).counts()
            }
            fn samples(&self, split: Split) -> usize {
                (**self).samples(split)
            }
            fn train(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError> {
                (**self).train(start, job)
            }
            fn evaluate(&mut self, of: &Params, fed: &[f32], on: Split) -> Result<Metrics, TrainError> {
                (**self).evaluate(of, fed, on)
            }
            fn features(&mut self, of: &Backbone, fed: &[f32], on: Split) -> Result<Features, TrainError> {
                (**self).features(of, fed, on)
            }
            fn gradient(&mut self, of: &Params, fed: &[f32]) -> Result<Vec<f32>, TrainError> {
                (**self).gradient(of, fed)
            }
            fn visit(&self, look: &mut dyn FnMut(&[f32], u16)) {
                (**self).visit(look);
            }
        }
    )+};
}

held!(&mut T, Box<T>);
