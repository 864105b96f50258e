//! What a method finds on the host beside the replies.
use super::ComputeError;
use crate::config::Plan;
use models::data::{Elements, Samples};
use models::fed::Host;
use models::id::AUXILIARY;
use models::nn::{Dataset, Inputs, LocalTrainer, Trainer};
use models::params::ModelCard;
use onnx::Extractor;
use onnx::runtime::{Engine, Options};
use rayon::ThreadPool;
use std::sync::Arc;

/// The host's side of [`Host`].
pub(super) struct Bench {
    auxiliary: Option<LocalTrainer>,
    rounds: u32,
}

impl Bench {
    /// A bench with these auxiliary samples, all of which are trained on.
    ///
    /// # Errors
    /// [`ComputeError::Auxiliary`] if the samples aren't of this network; they were checked when they were taken in.
    pub(super) fn new(
        plan: &Plan,
        data: Option<&Arc<Dataset>>,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self, ComputeError> {
        let auxiliary = data.map(|data| trainer(plan, data, Arc::clone(pool))).transpose()?;
        Ok(Self { auxiliary, rounds: plan.policy.rounds })
    }
}

fn trainer(plan: &Plan, data: &Arc<Dataset>, pool: Arc<ThreadPool>) -> Result<LocalTrainer, ComputeError> {
    let network = (Arc::clone(&plan.graph), Arc::clone(&plan.spec));
    let trainer = LocalTrainer::new(network, Arc::clone(data), (plan.policy.seed, AUXILIARY), Some(pool));
    Ok(trainer.map_err(|e| ComputeError::Auxiliary(e.to_string()))?.without_validation())
}

/// The host's samples as its network trains on them: through the part that is kept as it came, if there is one.
///
/// # Errors
/// [`ComputeError::Auxiliary`], [`ComputeError::Frozen`].
pub(super) fn dataset(plan: &Plan, samples: &Samples) -> Result<Arc<Dataset>, ComputeError> {
    let card = plan.spec.card();
    if let Some(extractor) = &plan.extractor {
        return Ok(Arc::new(features(extractor, samples, card)?));
    }
    let inputs = match samples.inputs().elements() {
        Elements::U8(bytes) => Inputs::Bytes(bytes.clone()),
        Elements::I16(_) => Inputs::Floats(samples.inputs().to_f32()),
    };
    let data = Dataset::new(inputs, samples.labels().to_vec(), samples.inputs().width(), plan.spec.classes());
    Ok(Arc::new(data.map_err(|e| ComputeError::Auxiliary(e.to_string()))?))
}

fn features(extractor: &Extractor, samples: &Samples, card: &ModelCard) -> Result<Dataset, ComputeError> {
    let threads = std::thread::available_parallelism().unwrap_or(std::num::NonZeroUsize::MIN);
    let options = Options { threads, ..Options::of_process() };
    let engine = Engine::Auto.open_frozen(&options).map_err(onnx::FrozenError::from)?;
    let (all, name) = (samples.len(), engine.name());
    tracing::info!("taking the features of {all} auxiliary samples ({name})");
    let progress = &mut |done| tracing::debug!("features of {done} of {all} samples");
    Ok(extractor.open(&*engine)?.dataset(samples, card, progress)?)
}

impl Host for Bench {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        self.auxiliary.as_mut().map(|trainer| trainer as &mut dyn Trainer)
    }
    fn rounds(&self) -> u32 {
        self.rounds
    }
}
