//! The trainer of this board: its samples and the native engine.
use models::data::{Elements, Samples};
use models::id::ClientId;
use models::nn::{DataError, Dataset, Graph, Inputs, Limited, LocalTrainer, Trainer};
use models::params::{ModelSpec, SpecError, UpdateMode};
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
    data: Arc<Dataset>,
    client: ClientId,
    pool: Option<Arc<ThreadPool>>,
    /// The most bytes that training may take.
    ceiling: usize,
    /// The most of the model that training may change.
    update: UpdateMode,
    built: Option<(u64, Limited<LocalTrainer>)>,
}

impl Workshop {
    /// A workshop on these samples with so many threads.
    ///
    /// # Errors
    /// [`TrainerError::Data`], [`TrainerError::Threads`].
    pub fn new(
        network: Network,
        samples: Samples,
        client: ClientId,
        threads: NonZeroUsize,
    ) -> Result<Self, TrainerError> {
        let data = dataset(&network, samples)?;
        Self::over(network, data, client, threads)
    }

    /// The same on samples that are ready for the network: features, where a part of it is kept as it came.
    ///
    /// # Errors
    /// [`TrainerError::Threads`].
    pub fn over(
        network: Network,
        data: Dataset,
        client: ClientId,
        threads: NonZeroUsize,
    ) -> Result<Self, TrainerError> {
        let (data, pool) = (Arc::new(data), pool(threads)?);
        let (ceiling, update) = (usize::MAX, UpdateMode::Full);
        Ok(Self { network, data, client, pool, ceiling, update, built: None })
    }

    /// The same with a ceiling on the memory of training: what is planned to take more is refused.
    #[must_use]
    pub fn with_ceiling(self, bytes: usize) -> Self {
        Self { ceiling: bytes, ..self }
    }

    /// The same with a ceiling on what training changes, in rounds and after them.
    #[must_use]
    pub fn with_update(self, update: UpdateMode) -> Self {
        Self { update: update.of(self.spec()), ..self }
    }

    /// The most that training changes here.
    pub fn update(&self) -> UpdateMode {
        self.update
    }

    /// The trainer of the run with this seed, under the owner's ceiling.
    ///
    /// # Errors
    /// [`TrainerError`].
    pub fn trainer(&mut self, seed: u64) -> Result<&mut dyn Trainer, TrainerError> {
        self.trainer_for(seed, self.update)
    }

    /// The same for a task that wishes for this; the ceiling stays.
    ///
    /// # Errors
    /// [`TrainerError`].
    pub fn trainer_for(&mut self, seed: u64, wished: UpdateMode) -> Result<&mut dyn Trainer, TrainerError> {
        let mode = self.update.at_most(wished, self.spec());
        let trainer = match self.built.take() {
            Some((built_for, trainer)) if built_for == seed => trainer.into_inner(),
            _ => LocalTrainer::new(
                self.network.clone(),
                Arc::clone(&self.data),
                (seed, self.client),
                self.pool.clone(),
            )?
            .with_ceiling(self.ceiling),
        };
        Ok(&mut self.built.insert((seed, Limited::new(trainer, mode))).1)
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
        self.data.len()
    }
}

/// The samples as training wants them, held once.
fn dataset((_, spec): &Network, samples: Samples) -> Result<Dataset, DataError> {
    let (inputs, labels) = samples.into_parts();
    let width = inputs.width();
    let floats = matches!(inputs.elements(), Elements::I16(_)).then(|| inputs.to_f32());
    let inputs = match (floats, inputs.into_elements()) {
        (None, Elements::U8(bytes)) => Inputs::Bytes(bytes),
        (floats, _) => Inputs::Floats(floats.unwrap_or_default()),
    };
    Dataset::new(inputs, labels, width, spec.classes())
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
