//! The trainer of this board: its samples and the native engine.
use models::data::{Elements, Samples};
use models::id::ClientId;
use models::nn::{DataError, Dataset, Graph, Inputs, LocalTrainer, Trainer};
use models::params::{ModelSpec, SpecError};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A network: how it is computed, and what its parameters are.
pub type Network = (Arc<Graph>, Arc<ModelSpec>);

/// Why there is no trainer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainerError {
    /// The samples don't fit together.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The samples don't fit the network.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The system gives no threads.
    #[error("no threads to compute with: {0}; try `--threads 1`")]
    Threads(#[from] ThreadPoolBuildError),
}

/// Gives trainers over the local samples. Which of them are held out depends on the run's seed, which comes with a task.
#[derive(Debug)]
pub struct Workshop {
    network: Network,
    samples: Samples,
    client: ClientId,
    pool: Option<Arc<ThreadPool>>,
    /// The most bytes that training may take.
    ceiling: usize,
    built: Option<(u64, LocalTrainer)>,
}

impl Workshop {
    /// A workshop on these samples with so many threads.
    ///
    /// # Errors
    /// [`TrainerError::Threads`].
    pub fn new(
        network: Network,
        samples: Samples,
        client: ClientId,
        threads: NonZeroUsize,
    ) -> Result<Self, TrainerError> {
        Ok(Self { network, samples, client, pool: pool(threads)?, ceiling: usize::MAX, built: None })
    }

    /// The same with a ceiling on the memory of training: what is planned to take more is refused.
    #[must_use]
    pub fn with_ceiling(self, bytes: usize) -> Self {
        Self { ceiling: bytes, ..self }
    }

    /// The trainer of the run with this seed.
    ///
    /// # Errors
    /// [`TrainerError`].
    pub fn trainer(&mut self, seed: u64) -> Result<&mut dyn Trainer, TrainerError> {
        let trainer = match self.built.take() {
            Some((built_for, trainer)) if built_for == seed => trainer,
            _ => LocalTrainer::new(
                self.network.clone(),
                self.dataset()?,
                (seed, self.client),
                self.pool.clone(),
            )?
            .with_ceiling(self.ceiling),
        };
        Ok(&mut self.built.insert((seed, trainer)).1)
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The model's specification.
    pub fn spec(&self) -> &Arc<ModelSpec> {
        &self.network.1
    }

    /// Whose data they are.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    fn dataset(&self) -> Result<Dataset, DataError> {
        let inputs = match self.samples.inputs().elements() {
            Elements::U8(bytes) => Inputs::Bytes(bytes.clone()),
            Elements::I16(_) => Inputs::Floats(self.samples.inputs().to_f32()),
        };
        let (width, classes) = (self.samples.inputs().width(), self.network.1.classes());
        Dataset::new(inputs, self.samples.labels().to_vec(), width, classes)
    }
}

/// Threads that stay, or none where the calling one is enough.
///
/// # Errors
/// If the system gives none.
pub fn pool(threads: NonZeroUsize) -> Result<Option<Arc<ThreadPool>>, ThreadPoolBuildError> {
    match threads.get() {
        1 => Ok(None),
        n => ThreadPoolBuilder::new().num_threads(n).build().map(|pool| Some(Arc::new(pool))),
    }
}
