//! How a board answers: one model, or two streams and a router.
use super::route::{Routed, Router};
use crate::nn::{Features, TrainError, head, loss};
use crate::params::{Backbone, Head, ModelSpec, Params};
use crate::tensor::TensorView;
use std::sync::Arc;

/// ε of the smoothed prior.
const SMOOTHING: f32 = 0.2;

/// A backbone with its (constant) conditioning vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The feature extractor.
    pub backbone: Backbone,
    /// What it is conditioned on; empty if the network has no such input.
    pub conditioning: Vec<f32>,
}

/// A head on one of an ensemble's streams. Priors are folded into its bias.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index of its stream.
    pub stream: usize,
    /// The head.
    pub head: Head,
    /// Its share of the answer; shares sum to one.
    pub share: f32,
}

/// A convex mixture of heads over at most a few backbones: `p(x) = Σ_k w_k softmax(head_k(stream_k(x)))`.
#[derive(Clone, Debug)]
pub struct Ensemble {
    /// The model everything is shaped by.
    pub spec: Arc<ModelSpec>,
    /// Backbones; the first is the one whose features the router looks at.
    pub streams: Vec<Stream>,
    /// Heads.
    pub members: Vec<Member>,
}

/// How a board answers.
#[derive(Clone, Debug)]
pub enum Predictor {
    /// One stream.
    Single(Ensemble),
    /// Specialist and generalist, weighed by a router.
    DualStream {
        /// The board's personal model.
        specialist: Ensemble,
        /// The shared model, without the board's prior.
        generalist: Ensemble,
        /// Who is heard.
        router: Router,
    },
}

/// An engine that can run a stream's backbone on standardised inputs `[n, channels, height, width]`.
pub trait Extractor {
    /// Penultimate features, one row of `spec.features()` numbers per input.
    ///
    /// # Errors
    /// [`TrainError`].
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError>;
}

/// What an ensemble says about some inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Number of classes.
    pub classes: usize,
    /// Log-probabilities, one row per input.
    pub log_probabilities: Vec<f32>,
    /// Features of the first stream, one row per input.
    pub features: Features,
}

impl Answers {
    /// Log-probabilities of one input.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.log_probabilities[index * self.classes..(index + 1) * self.classes]
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.log_probabilities.len() / self.classes.max(1)
    }

    /// Whether there was no input.
    pub fn is_empty(&self) -> bool {
        self.log_probabilities.is_empty()
    }
}

impl Ensemble {
    /// One network.
    pub fn single(model: &Params, conditioning: &[f32]) -> Self {
        let stream = Stream { backbone: model.backbone(), conditioning: conditioning.to_vec() };
        let member = Member { stream: 0, head: model.head(), share: 1.0 };
        Self { spec: Arc::clone(model.spec()), streams: vec![stream], members: vec![member] }
    }

    /// This mixture with `sign · r` added to every head's bias: at −1 the board's prior is taken out (science §8.3's D).
    #[must_use]
    pub fn with_prior(&self, log_prior: &[f32], sign: f32) -> Self {
        let moved = |m: &Member| Member { head: head::add_prior(&m.head, log_prior, sign), ..m.clone() };
        Self { members: self.members.iter().map(moved).collect(), ..self.clone() }
    }

    /// `log Σ_k w_k softmax(z_k)` from the features of each stream, one row per sample.
    ///
    /// Two members that say (¼, ¾) and (¾, ¼) at equal shares say (½, ½) together. A member without a share is not asked.
    pub fn log_probabilities(&self, features: &[Features]) -> Vec<f32> {
        if let [only] = &self.members[..] {
            let mut z = head::logits(&features[only.stream], &only.head);
            z.chunks_exact_mut(self.spec.classes().max(1)).for_each(loss::log_softmax);
            return z;
        }
        let rows = features.first().map_or(0, Features::len);
        let mut sum = vec![0.0_f32; rows * self.spec.classes()];
        for member in self.members.iter().filter(|m| m.share > 0.0) {
            let p = head::probabilities(&features[member.stream], &member.head);
            sum.iter_mut().zip(p).for_each(|(s, p)| *s += member.share * p);
        }
        sum.iter_mut().for_each(|p| *p = libm::logf(p.max(f32::MIN_POSITIVE)));
        sum
    }

    /// Its answers about a batch.
    ///
    /// # Errors
    /// What the engine gives.
    pub fn answer(&self, engine: &mut dyn Extractor, inputs: TensorView<'_>) -> Result<Answers, TrainError> {
        self.answer_with(&mut Passes { engine, inputs, done: Vec::new() })
    }

    fn answer_with(&self, passes: &mut Passes<'_>) -> Result<Answers, TrainError> {
        let width = self.spec.features();
        let features = self.streams.iter().map(|s| passes.of(s, width)).collect::<Result<Vec<_>, _>>()?;
        let log_probabilities = self.log_probabilities(&features);
        let features = features.into_iter().next().unwrap_or_default();
        Ok(Answers { classes: self.spec.classes(), log_probabilities, features })
    }
}

/// Passes through backbones, each made once for a batch even where two ensembles share it.
struct Passes<'a> {
    engine: &'a mut dyn Extractor,
    inputs: TensorView<'a>,
    done: Vec<(Stream, Features)>,
}

impl Passes<'_> {
    fn of(&mut self, stream: &Stream, width: usize) -> Result<Features, TrainError> {
        if let Some((_, features)) = self.done.iter().find(|(known, _)| known == stream) {
            return Ok(features.clone());
        }
        let values = self.engine.extract(stream, self.inputs)?;
        let features = Features { width, values, labels: vec![0; self.inputs.rows()] };
        self.done.push((stream.clone(), features.clone()));
        Ok(features)
    }
}

impl Predictor {
    /// One network.
    pub fn single(model: &Params, conditioning: &[f32]) -> Self {
        Self::Single(Ensemble::single(model, conditioning))
    }

    /// The personal stream.
    pub fn specialist(&self) -> &Ensemble {
        match self {
            Self::Single(only) => only,
            Self::DualStream { specialist, .. } => specialist,
        }
    }

    /// The shared stream, where there is one.
    pub fn generalist(&self) -> Option<&Ensemble> {
        match self {
            Self::Single(_) => None,
            Self::DualStream { generalist, .. } => Some(generalist),
        }
    }

    /// The router; a single stream is always heard alone.
    pub fn router(&self) -> &Router {
        match self {
            Self::Single(_) => &Router::Specialist,
            Self::DualStream { router, .. } => router,
        }
    }

    /// The same streams under another router.
    #[must_use]
    pub fn routed_by(self, router: Router) -> Self {
        match self {
            Self::Single(only) => Self::Single(only),
            Self::DualStream { specialist, generalist, .. } => {
                Self::DualStream { specialist, generalist, router }
            }
        }
    }

    /// The smoothed prior without a router (science §8.3, "simplest variant", with the ε = 0.2 that suits it): the second stream is
    /// the specialist itself without its prior, and only the probabilities of that stream are looked at. Nothing unless this predictor
    /// is routed by familiarity.
    pub fn smoothed_prior(&self) -> Option<Self> {
        let Self::DualStream { specialist, router: Router::Familiarity { log_prior, .. }, .. } = self else {
            return None;
        };
        let router = Router::from_prior(log_prior.clone(), SMOOTHING);
        let (specialist, generalist) = (specialist.clone(), specialist.with_prior(log_prior, -1.0));
        Some(Self::DualStream { specialist, generalist, router })
    }

    /// Answers about a batch, one per input.
    ///
    /// # Errors
    /// What the engine gives.
    pub fn answer(
        &self,
        engine: &mut dyn Extractor,
        inputs: TensorView<'_>,
    ) -> Result<Vec<Routed>, TrainError> {
        let mut passes = Passes { engine, inputs, done: Vec::new() };
        let specialist = self.specialist().answer_with(&mut passes)?;
        let generalist = self.generalist().map(|g| g.answer_with(&mut passes)).transpose()?;
        let shared = generalist.as_ref().unwrap_or(&specialist);
        let one = |i| self.router().route(specialist.row(i), shared.row(i), specialist.features.row(i));
        Ok((0..specialist.len()).map(one).collect())
    }
}
