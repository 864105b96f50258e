//! What every method of one comparison gets alike: data, network, initial weights, schedule.
use crate::bundle::{CLASSES, STANDARD};
use crate::fleet::AnyTrainer;
use crate::world::{Board, World};
use models::data::{Elements, Samples};
use models::fed::training::Training;
use models::fed::{Extractor, Stream};
use models::id::{AUXILIARY, ClientId};
use models::nn::{self, Dataset, Graph, LocalTrainer, TrainError, arch};
use models::params::{ModelCard, ModelSpec, Params, Preprocessing, SpecError};
use models::round::Policy;
use models::tensor::TensorView;
use std::sync::Arc;

/// The demonstration's network.
pub const ARCH: &str = "cc28";
/// Rounds of the demonstration.
pub const ROUNDS: u32 = 20;
/// Share of the boards picked for a round.
pub const PARTICIPATION: f32 = 0.5;

/// One comparison.
#[derive(Debug)]
pub struct Bench<'w> {
    /// The boards.
    pub world: &'w World,
    /// The network.
    pub graph: Arc<Graph>,
    /// Initial weights.
    pub init: Params,
    /// Rounds and cohorts.
    pub policy: Policy,
    /// Local training of a round.
    pub training: Training,
}

/// The network of the demonstration, for the bundled data.
pub fn card() -> ModelCard {
    ModelCard {
        arch: ARCH.into(),
        input: [1, 28, 28],
        labels: CLASSES.map(str::to_owned).into(),
        statistics: 0,
        preprocessing: Preprocessing { mean: vec![STANDARD.0], std: vec![STANDARD.1] },
    }
}

impl<'w> Bench<'w> {
    /// The demonstration's schedule in this world.
    ///
    /// # Errors
    /// If the network can't be built, which its tests exclude.
    pub fn new(world: &'w World, rounds: u32) -> Result<Self, SpecError> {
        let (graph, spec) = arch::build(&card())?;
        let policy = policy(world, rounds);
        let init = nn::init(&graph, &spec, policy.seed);
        Ok(Self { world, graph, init, policy, training: Training::default() })
    }

    /// Epochs that a federated client trains in expectation.
    pub fn budget(&self) -> u32 {
        let boards = self.world.trained().len();
        let picked = f64::from(self.policy.rounds) * self.policy.cohort(boards) as f64 / boards as f64;
        ((picked * f64::from(self.training.epochs)).round() as u32).max(1)
    }

    /// The table of contents of the network.
    pub fn spec(&self) -> &Arc<ModelSpec> {
        self.init.spec()
    }

    /// A board's own data, and the arithmetic on them. One thread: boards run beside each other.
    pub fn trainer(&self, board: &Board) -> AnyTrainer {
        Box::new(self.local(&board.train, board.client))
    }

    /// The same for several boards.
    pub fn trainers(&self, boards: &[Board]) -> Vec<(ClientId, AnyTrainer)> {
        boards.iter().map(|board| (board.client, self.trainer(board))).collect()
    }

    /// The host's auxiliary data: all of them are trained on.
    pub fn auxiliary(&self) -> AnyTrainer {
        Box::new(self.local(&self.world.auxiliary, AUXILIARY).without_validation())
    }

    /// What answers are computed with.
    pub fn engine(&self) -> Engine {
        Engine(nn::Extractor::new(Arc::clone(&self.graph), None))
    }

    fn local(&self, samples: &Samples, client: ClientId) -> LocalTrainer {
        let Elements::U8(pixels) = samples.inputs().elements() else {
            unreachable!("every world here is made of bytes")
        };
        let (labels, width) = (samples.labels().to_vec(), samples.inputs().width());
        let data = Dataset::new(nn::Inputs::Bytes(pixels.clone()), labels, width, CLASSES.len());
        let network = (Arc::clone(&self.graph), Arc::clone(self.spec()));
        let data = data.expect("a world's labels are those of the bundle");
        LocalTrainer::new(network, data, (self.policy.seed, client), None)
            .expect("the bundle's images are the network's input")
    }
}

/// Rounds and cohorts of the demonstration: every board is there before a round opens and none is lost.
pub fn policy(world: &World, rounds: u32) -> Policy {
    Policy {
        rounds,
        participation: PARTICIPATION,
        min_boards: world.trained().len() as u32,
        quorum: 1.0,
        poll_ms: 60,
        seed: world.plan.seed,
        ..Policy::default()
    }
}

/// The native engine as ensembles ask for it.
#[derive(Clone, Debug)]
pub struct Engine(nn::Extractor);

impl Extractor for Engine {
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError> {
        self.0.features(&stream.backbone, &stream.conditioning, inputs.values())
    }
}
