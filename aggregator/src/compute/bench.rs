//! What a method finds on the host beside the replies.
use crate::config::Plan;
use models::data::{Elements, Samples};
use models::fed::Host;
use models::id::AUXILIARY;
use models::nn::{Dataset, Inputs, LocalTrainer, Trainer};
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
    /// Why the samples aren't of this network; they were checked when they were taken in.
    pub(super) fn new(
        plan: &Plan,
        samples: Option<&Samples>,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self, String> {
        let auxiliary = samples.map(|samples| trainer(plan, samples, Arc::clone(pool))).transpose()?;
        Ok(Self { auxiliary, rounds: plan.policy.rounds })
    }
}

fn trainer(plan: &Plan, samples: &Samples, pool: Arc<ThreadPool>) -> Result<LocalTrainer, String> {
    let inputs = match samples.inputs().elements() {
        Elements::U8(bytes) => Inputs::Bytes(bytes.clone()),
        Elements::I16(_) => Inputs::Floats(samples.inputs().to_f32()),
    };
    let data = Dataset::new(inputs, samples.labels().to_vec(), samples.inputs().width(), plan.spec.classes());
    let network = (Arc::clone(&plan.graph), Arc::clone(&plan.spec));
    let trainer = LocalTrainer::new(
        network,
        data.map_err(|e| e.to_string())?,
        (plan.policy.seed, AUXILIARY),
        Some(pool),
    );
    Ok(trainer.map_err(|e| e.to_string())?.without_validation())
}

impl Host for Bench {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        self.auxiliary.as_mut().map(|trainer| trainer as &mut dyn Trainer)
    }
    fn rounds(&self) -> u32 {
        self.rounds
    }
}
