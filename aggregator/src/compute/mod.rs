//! The arithmetic of rounds, on the blobs of the store. Blocking: it runs off the executor.
mod auxiliary;
mod bench;
mod briefing;
mod replies;

pub use auxiliary::{AuxiliaryError, load as load_auxiliary};
pub(crate) use auxiliary::{read as read_auxiliary, write as write_auxiliary};

use crate::blobs::{BlobError, Blobs};
use crate::config::Plan;
use crate::crash;
use bench::{Bench, dataset};
use models::data::Samples;
use models::fed::{FedError, Site};
use models::id::{AUXILIARY, Hash, RoundId};
use models::nn::{self, Dataset};
use models::round::{Briefing, Completion, Effect, Published};
use models::wire::{PartRef, part_bytes};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Largest state that is read back: (K + 2) models of the largest specification, with room.
const STATE_CAP: usize = 1 << 30;

/// Why a piece of work failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// A blob can't be stored or read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The method failed.
    #[error(transparent)]
    Method(#[from] FedError),
    /// The auxiliary samples don't fit the network.
    #[error("auxiliary data: {0}")]
    Auxiliary(String),
    /// The part of the network that is not trained gives no features of the auxiliary samples.
    #[error("auxiliary data: the part below the head: {0}")]
    Frozen(#[from] onnx::FrozenError),
    /// The operating system gives no threads.
    #[error("no worker threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A bug.
    #[error("the work panicked; the log says where")]
    Panicked,
}

/// All that the arithmetic needs.
#[derive(Debug)]
pub(crate) struct Workshop {
    plan: Arc<Plan>,
    blobs: Blobs,
    auxiliary: Option<Arc<Dataset>>,
    pool: Arc<ThreadPool>,
    runtime: Handle,
}

impl Workshop {
    /// A workshop whose blobs are reached through the current runtime.
    ///
    /// # Errors
    /// [`ComputeError::Threads`]; whatever keeps the auxiliary samples from being trained on.
    pub(crate) fn new(
        plan: Arc<Plan>,
        blobs: Blobs,
        auxiliary: Option<&Samples>,
    ) -> Result<Self, ComputeError> {
        let auxiliary = auxiliary.map(|samples| dataset(&plan, samples)).transpose()?;
        let pool = Arc::new(ThreadPoolBuilder::new().thread_name(|n| format!("compute-{n}")).build()?);
        Ok(Self { plan, blobs, auxiliary, pool, runtime: Handle::current() })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Does a piece of work, whatever comes of it.
    pub(crate) fn work(&self, effect: &Effect) -> Completion {
        match self.state_after(effect).and_then(|state| self.publish(state)) {
            Ok((published, briefing)) => Completion::Done { published, briefing },
            Err(error) => Completion::Failed { why: error.to_string() },
        }
    }

    fn state_after(&self, effect: &Effect) -> Result<Vec<u8>, ComputeError> {
        let (method, hyper) = (self.plan.method, &self.plan.hyper);
        let site = |round| site(&self.plan, round);
        let mut bench = Bench::new(&self.plan, self.auxiliary.as_ref(), &self.pool)?;
        match effect {
            Effect::Prepare => first_state(&self.plan, &mut bench),
            Effect::Aggregate { round, state, replies } => {
                crash::here("aggregate-begin");
                let state = self.get(*state)?;
                let mut replies = replies::BlobReplies::new(self, replies);
                let next = method.aggregate(
                    hyper,
                    &state,
                    site(*round),
                    &mut replies,
                    &mut bench,
                    &self.plan.spec,
                )?;
                crash::here("aggregate-end");
                Ok(next)
            }
            Effect::Finish { state } => {
                let last = method.finish(
                    hyper,
                    &self.get(*state)?,
                    site(RoundId(self.plan.policy.rounds)),
                    &mut bench,
                )?;
                crash::here("finish-end");
                Ok(last)
            }
        }
    }

    /// Stores a state and the parts that boards may download, before anything names them.
    fn publish(&self, state: Vec<u8>) -> Result<(Published, Arc<dyn Briefing>), ComputeError> {
        let open = self.plan.method.publish(&self.plan.hyper, &state)?;
        let state = self.put(state)?;
        crash::here("publish-state-stored");
        let stored = open
            .parts()
            .into_iter()
            .map(|(extent, values)| self.put(part_bytes(&values)).map(|hash| PartRef { extent, hash }));
        let parts = stored.collect::<Result<_, _>>()?;
        crash::here("publish-parts-stored");
        Ok((Published { state, parts }, Arc::new(briefing::Told::new(open))))
    }

    /// What a stored state tells boards.
    pub(crate) fn briefing(&self, state: Hash) -> Result<Arc<dyn Briefing>, ComputeError> {
        let open = self.plan.method.publish(&self.plan.hyper, &self.get(state)?)?;
        Ok(Arc::new(briefing::Told::new(open)))
    }

    fn put(&self, bytes: Vec<u8>) -> Result<Hash, ComputeError> {
        Ok(self.runtime.block_on(self.blobs.put(bytes.into()))?)
    }

    fn get(&self, hash: Hash) -> Result<bytes::Bytes, ComputeError> {
        Ok(self.runtime.block_on(self.blobs.get(hash, STATE_CAP))?)
    }
}

/// Makes the method's first state and throws it away: what it would fail at when served, it fails at now.
///
/// # Errors
/// [`ComputeError`].
pub(crate) fn rehearse(plan: &Plan, auxiliary: Option<&Samples>) -> Result<(), ComputeError> {
    let pool = Arc::new(ThreadPoolBuilder::new().build()?);
    let auxiliary = auxiliary.map(|samples| dataset(plan, samples)).transpose()?;
    let mut bench = Bench::new(plan, auxiliary.as_ref(), &pool)?;
    let state = first_state(plan, &mut bench)?;
    Ok(plan.method.publish(&plan.hyper, &state).map(drop)?)
}

fn first_state(plan: &Plan, bench: &mut Bench) -> Result<Vec<u8>, ComputeError> {
    let init = plan.start.clone();
    let init = init.unwrap_or_else(|| nn::init(&plan.graph, &plan.spec, plan.policy.seed));
    Ok(plan.method.open(&plan.hyper, init, site(plan, RoundId(0)), bench)?)
}

fn site(plan: &Plan, round: RoundId) -> Site {
    Site { seed: plan.policy.seed, round, client: AUXILIARY }
}
