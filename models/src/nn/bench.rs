//! A network in training on random data: what a bench times.
use super::data::Source;
use super::engine::{Batch, Fan, Inference, MemoryPlan, Setup, Targets, Training};
use super::graph::{Graph, Op};
use super::optim::Sgd;
use super::{Dataset, FeatureCache, Inputs, Job, LearningRate, LocalTrainer, Loss, TrainError, Trainer as _};
use super::{arch, init};
use crate::id::ClientId;
use crate::params::{Mask, ModelCard, ModelSpec, Params, Part, Preprocessing, SpecError, UpdateMode};
use crate::tensor::kernel::multiply_adds;
use crate::tensor::rng::{Key, Purpose};
use rayon::ThreadPool;
use std::sync::Arc;

/// What a bench trains.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    graph: Arc<Graph>,
    spec: Arc<ModelSpec>,
    batch: usize,
    trains: Vec<bool>,
    mode: UpdateMode,
    run: Option<usize>,
}

impl BenchPlan {
    /// A network of this name on the input it was made for and ten classes, in batches of `batch`, of which `mode` changes. `run` is how many
    /// samples of a lane go through together at most.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn new(arch: &str, batch: usize, mode: UpdateMode, run: Option<usize>) -> Result<Self, SpecError> {
        Ok(Self::of(arch::build(&card(arch))?, batch, mode, run))
    }

    /// The same of any network; samples are spread over ten classes.
    pub fn of(
        (graph, spec): (Arc<Graph>, Arc<ModelSpec>),
        batch: usize,
        mode: UpdateMode,
        run: Option<usize>,
    ) -> Self {
        let mask = mode.mask(&spec);
        let trains = (0..spec.entries().len()).map(|i| mask.has(i)).collect();
        Self { graph, spec, batch: batch.max(1), trains, mode, run }
    }

    fn setup(&self) -> Setup<'_> {
        let setup = Setup::new(&self.trains, true, self.batch);
        Setup { run: self.run.unwrap_or(setup.run), ..setup }
    }

    /// The memory that it takes on so many threads: known before any of it is taken.
    pub fn memory(&self, threads: usize) -> MemoryPlan {
        let mut memory = self.setup().memory(&self.graph, threads);
        memory.always("samples and their labels", self.batch * (4 * self.graph.input().len() + 2 + 8), 1);
        memory
    }

    /// Bytes of an update in this mode, uncompressed: what it covers of the backbone.
    pub fn update_bytes(&self) -> usize {
        let backbone = Mask::of(&self.spec, |e| e.part == Part::Backbone);
        4 * self.mode.covers(&self.spec).and(&backbone).count(&self.spec)
    }

    /// Numbers that change.
    pub fn trained(&self) -> usize {
        self.mode.mask(&self.spec).count(&self.spec)
    }

    /// Floating-point operations of a step, as they are written: two per multiplication of convolutions and linear layers, forward, for
    /// the weights' gradients, and for the inputs' where something below is trained. The engine does with fewer (Winograd).
    pub fn flops(&self) -> f64 {
        self.batch as f64 * flops(&self.graph, &self.trains)
    }

    /// Takes the memory. Call it, and [`Bench::step`], inside `pool.install` to use a pool (`threads` above 1).
    pub fn start(&self, threads: usize) -> Bench {
        let graph = &self.graph;
        let fan = if threads > 1 { Fan::Pool } else { Fan::Inline };
        let sgd = Sgd { rate: 0.01, momentum: 0.9, weight_decay: 0.0 };
        let start = init(graph, &self.spec, 0);
        let mut stream = Key::new(0, Purpose::Test).stream();
        let batch = self.batch;
        Bench {
            training: Training::new(graph, start.into_values(), self.setup(), sgd, fan),
            inputs: (0..batch * graph.input().len()).map(|_| stream.unit() * 2.0 - 1.0).collect(),
            labels: (0..batch).map(|i| (i % 10) as u16).collect(),
            picks: (0..batch).collect(),
        }
    }
}

/// The memory that a network takes that is read from a file and answers `batch` samples at a time.
pub fn forward_memory(graph: &Graph, batch: usize, threads: usize) -> MemoryPlan {
    let mut memory = Inference::memory(graph, batch, threads);
    memory.always("samples, as they are and standardised", 2 * 4 * batch * graph.input().len(), 1);
    let answer: usize = graph.outputs().iter().map(|&id| graph.node(id).dims.len()).sum();
    memory.always("answers", 4 * batch * answer, 1);
    let largest = graph.entries().iter().map(|e| e.range.len()).max().unwrap_or(0);
    let file =
        [("numbers of the file", 4 * graph.len()), ("the largest of its arrays once more", 4 * largest)];
    memory.before(&file, "loading");
    memory
}

/// Training of a head alone over and over, with or without a memory for features.
#[derive(Debug)]
pub struct HeadBench {
    trainer: LocalTrainer,
    start: Params,
    batch: usize,
}

impl HeadBench {
    /// Steps of one [`HeadBench::train`].
    pub const STEPS: u32 = BATCHES * EPOCHS;

    /// On a few batches of random samples.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn new(
        arch: &str,
        batch: usize,
        cache: Option<FeatureCache>,
        pool: Option<Arc<ThreadPool>>,
    ) -> Result<Self, SpecError> {
        let (graph, spec) = arch::build(&card(arch))?;
        let (mut stream, n) = (Key::new(0, Purpose::Test).stream(), batch * BATCHES as usize);
        let inputs = Inputs::Bytes((0..n * graph.input().len()).map(|_| stream.below(256) as u8).collect());
        let labels = (0..n).map(|i| (i % 10) as u16).collect();
        let data = Dataset::new(inputs, labels, graph.input().len(), 10)
            .expect("samples are as wide as the network wants, labels below ten");
        let start = init(&graph, &spec, 0);
        let trainer = LocalTrainer::new((graph, spec), data, (0, ClientId(0)), pool)?;
        Ok(Self { trainer: trainer.without_validation().with_cache(cache), start, batch })
    }

    /// Trains from the start; returns the loss over the last epoch.
    ///
    /// # Errors
    /// [`TrainError`].
    pub fn train(&mut self) -> Result<f64, TrainError> {
        let trains = UpdateMode::Head.mask(self.start.spec());
        let job = Job {
            trains: &trains,
            epochs: EPOCHS,
            batch: self.batch,
            rate: LearningRate(0.01),
            momentum: 0.9,
            order: Key::new(0, Purpose::Adapt),
            loss: Loss::default(),
            conditioning: &[],
        };
        Ok(self.trainer.train(&self.start, &job)?.loss)
    }
}

/// What a board's own adaptation is like: some hundred samples, some passes.
const BATCHES: u32 = 4;
const EPOCHS: u32 = 10;

/// The network of this name on the input it was made for, with ten classes.
pub fn card(arch: &str) -> ModelCard {
    let input = match arch {
        "dw64" | "res64" => [3, 64, 64],
        "har1d" => [6, 1, 64],
        "cc32" | "cc32-gn" | "kdhcnn" => [3, 32, 32],
        _ => [1, 28, 28],
    };
    let labels = (0..10).map(|c| c.to_string()).collect();
    let preprocessing = Preprocessing::none(input[0]);
    ModelCard { arch: arch.into(), input, labels, statistics: 0, preprocessing }
}

/// Steps of training on one random batch.
#[derive(Debug)]
pub struct Bench {
    training: Training,
    inputs: Vec<f32>,
    labels: Vec<u16>,
    picks: Vec<usize>,
}

impl Bench {
    /// One step of SGD with momentum; returns the loss before it.
    pub fn step(&mut self) -> f64 {
        self.training.step(&Batch {
            source: Source::ready(&self.inputs),
            picks: &self.picks,
            targets: Targets { labels: &self.labels, prior: None, teacher: None },
            conditioning: &[],
            dropout: Key::new(0, Purpose::Dropout),
            share: 1.0 / self.picks.len() as f64,
        })
    }
}

/// Keeps one core at its best for so many rounds; returns the floating-point operations that it did. What a figure is a share of is this over time.
pub fn exert(rounds: u32) -> f64 {
    multiply_adds(super::isa(), rounds)
}

/// Operations of one sample.
fn flops(graph: &Graph, trains: &[bool]) -> f64 {
    let mut total = 0.0;
    let mut moved: Vec<bool> = vec![];
    for node in graph.nodes() {
        let below = node.inputs.iter().any(|i| moved[i.0]);
        let trained = |which: usize| node.entries.get(which).is_some_and(|&e| trains[e]);
        moved.push(below || trained(0) || trained(1));
        let pixels = match node.op {
            Op::Conv2d(_) => node.dims.pixels(),
            Op::Linear { .. } => 1,
            _ => continue,
        };
        let passes = 1.0 + f64::from(u8::from(trained(0))) + f64::from(u8::from(below));
        total += 2.0 * passes * (graph.entries()[node.entries[0]].shape.len() * pixels) as f64;
    }
    total
}
