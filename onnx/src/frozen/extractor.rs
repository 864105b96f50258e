//! The part of a network that is kept as it came, and the session that takes features out of samples with it.
use super::FrozenError;
use super::join::join;
use crate::proto::{self, ModelProto};
use models::data::Samples;
use models::infer::{Runtime, RuntimeError, Session};
use models::nn::{Dataset, Inputs};
use models::params::{ModelCard, Preprocessing};
use models::tensor::TensorView;
use prost::Message;

/// Samples that go through an engine together.
const BATCH: usize = 32;

/// What lies below the head of a network, as it came: from standardised samples `[N, channels, height, width]` to features.
#[derive(Clone, PartialEq)]
pub struct Extractor {
    /// One input, one output.
    pub(super) model: ModelProto,
    /// What the features are called in it.
    pub(super) feature: String,
    pub(super) input: [usize; 3],
    pub(super) width: usize,
    /// What an engine is asked for features through: the head that the network came with, in the form of every answer.
    pub(super) top: ModelProto,
}

impl std::fmt::Debug for Extractor {
    /// Never prints the weights.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Extractor({:?} to {} features, {} nodes)", self.input, self.width, self.nodes())
    }
}

impl Extractor {
    /// Channels, height and width of a sample.
    pub fn input(&self) -> [usize; 3] {
        self.input
    }

    /// Numbers of a sample's features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Operations in it.
    pub fn nodes(&self) -> usize {
        self.model.graph.as_ref().map_or(0, |graph| graph.node.len())
    }

    /// An exported graph that reads features, on top of this part: it reads samples.
    ///
    /// # Errors
    /// [`FrozenError::Damaged`] if that is no ONNX file.
    pub fn under(&self, exported: &[u8]) -> Result<Vec<u8>, FrozenError> {
        let above = proto::decode(exported).map_err(|e| FrozenError::Damaged { why: e.to_string() })?;
        Ok(join(self, above).0.encode_to_vec())
    }

    /// Loads this part into an engine.
    ///
    /// # Errors
    /// [`FrozenError::Engine`].
    pub fn open(&self, engine: &dyn Runtime) -> Result<FeatureSession, FrozenError> {
        let session = engine.prepare(&join(self, self.top.clone()).0.encode_to_vec())?;
        Ok(FeatureSession { session, engine: engine.name(), input: self.input, width: self.width })
    }
}

/// A loaded [`Extractor`].
pub struct FeatureSession {
    session: Box<dyn Session>,
    engine: &'static str,
    input: [usize; 3],
    width: usize,
}

impl std::fmt::Debug for FeatureSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FeatureSession({} features by {})", self.width, self.engine)
    }
}

impl FeatureSession {
    /// Features of standardised samples, one row of [`Extractor::width`] finite numbers for each.
    ///
    /// # Errors
    /// [`FrozenError`]: the engine fails, or gives something else.
    pub fn run(&mut self, samples: &[f32]) -> Result<Vec<f32>, FrozenError> {
        let [channels, height, width] = self.input;
        let count = samples.len() / (channels * height * width);
        let extents = [count, channels, height, width];
        let answer = self.session.run(TensorView::new(&extents, samples))?;
        let features = answer.features.map(|features| features.values().to_vec()).unwrap_or_default();
        if features.len() != count * self.width {
            let why =
                format!("are {} numbers for {count} samples, not {} for each", features.len(), self.width);
            return Err(
                self.refuse(why, "let the head read a vector, as Flatten or a mean over space gives it")
            );
        }
        if features.iter().any(|x| !x.is_finite()) {
            let remedy = "look for a division by zero or an overflow below the head";
            return Err(self.refuse("hold a number that is not finite".into(), remedy));
        }
        Ok(features)
    }

    pub(super) fn engine(&self) -> &'static str {
        self.engine
    }

    pub(super) fn refuse(&self, why: String, remedy: &'static str) -> FrozenError {
        FrozenError::Features { engine: self.engine, why, remedy }
    }

    /// The features of labelled samples as what a head is trained on. They go through the engine a few at a time; `progress`
    /// hears after each time how many are done.
    ///
    /// # Errors
    /// [`FrozenError`], or what is wrong with the samples.
    pub fn dataset(
        &mut self,
        samples: &Samples,
        card: &ModelCard,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Dataset, FrozenError> {
        let mut features = Vec::with_capacity(samples.len() * self.width);
        for first in (0..samples.len()).step_by(BATCH) {
            let last = samples.len().min(first + BATCH);
            features.extend(self.run(&standardised(samples, first..last, &card.preprocessing))?);
            progress(last);
        }
        let labels = samples.labels().to_vec();
        Dataset::new(Inputs::Ready(features), labels, self.width, card.labels.len())
            .map_err(|e| RuntimeError::Run { engine: self.engine, why: e.to_string() }.into())
    }
}

fn standardised(samples: &Samples, which: std::ops::Range<usize>, how: &Preprocessing) -> Vec<f32> {
    let inputs = samples.inputs();
    let mut values = vec![0.0; which.len() * inputs.width()];
    for (sample, index) in values.chunks_exact_mut(inputs.width()).zip(which) {
        inputs.write(index, sample);
        how.apply(sample);
    }
    values
}
