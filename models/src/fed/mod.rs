//! Federated methods: one file each, with both halves; shared rules in files named after the rule.
//!
//! A method is a set of pure functions, state in, state out. The host half sees updates, never data; the board half sees
//! its own data through a [`Trainer`] and what the host shares. What may leave a board at all is the sealed [`Uplink`].
pub mod adapt;
pub mod average;
pub mod choose;
pub mod cluster;
pub mod conditional;
pub mod conditioning;
mod coverage;
pub mod cpct;
pub mod erased;
mod error;
pub mod fedavg;
pub mod fedper;
pub mod fedprism;
mod kept;
pub mod local;
pub mod mix;
pub mod mixture;
pub mod node;
pub mod personal;
pub mod pfedkdh;
mod predictor;
pub mod prior;
pub mod prism;
pub mod recalibrate;
mod route;
pub mod scope;
pub mod sketch;
pub mod streams;
pub mod tail;
pub mod training;
mod update;

pub use coverage::{Coverage, Extent};
pub use error::FedError;
pub use kept::Kept;
pub use predictor::{Answers, Ensemble, Extractor, Member, Predictor, Stream};
pub use route::{Decider, Gallery, Routed, Router, argmax};
pub use update::{Either, Outgoing, Silent, Start, Update, Uplink};

use crate::id::{ClientId, RoundId};
use crate::nn::Trainer;
use crate::params::{ModelSpec, Params, Scope, Values};
use crate::tensor::rng::{Key, Purpose};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What a method lets out of a board. Ordered: each discloses all that the ones before it do.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disclosure {
    /// Nothing at all.
    Nothing,
    /// Changes of the shared backbone.
    Backbone,
    /// Changes of the whole model, head included.
    FullModel,
    /// Means of features per class.
    ClassMeans,
    /// The client's data statistics.
    Statistics,
    /// Samples.
    Samples,
}

/// State that is written to disk by the side that owns it.
pub trait State: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static> State for T {}

/// A block of values that every board may download: stored once, named by its hash.
#[derive(Clone, Debug)]
pub struct SharedPart<'a> {
    /// Which part of the model it is.
    pub extent: Extent,
    /// Its values.
    pub values: &'a [f32],
}

impl<'a> SharedPart<'a> {
    /// Values of a model's scope as a shared part.
    pub fn of<S: Scope>(extent: Extent, values: &'a Values<S>) -> Self {
        Self { extent, values: values.values() }
    }
}

/// What the host tells one board: which shared parts it needs, and a few numbers of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<T> {
    /// Indices into the shared parts.
    pub parts: Vec<u16>,
    /// The rest (mixing weights and the like; never tensors).
    pub task: T,
}

/// What a board received: the parts its plan names, in that order, and the rest.
#[derive(Clone, Debug)]
pub struct Down<T> {
    /// Values of the named parts.
    pub parts: Vec<Arc<[f32]>>,
    /// The rest.
    pub task: T,
}

impl<T> Down<T> {
    /// The part at `index` as values of `spec`.
    ///
    /// # Errors
    /// [`FedError::Parts`] if it did not come, [`FedError::Spec`] if it has another length or holds NaN.
    pub fn part<M: Method, S: Scope>(
        &self,
        index: usize,
        spec: &Arc<ModelSpec>,
    ) -> Result<Values<S>, FedError> {
        let missing = FedError::Parts { method: M::NAME, expected: index + 1, got: self.parts.len() };
        let values = self.parts.get(index).ok_or(missing)?;
        Ok(Values::new(Arc::clone(spec), values.to_vec())?)
    }
}

/// Where and when a step of a method runs: the key of all its randomness.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Site {
    /// The run's root seed.
    pub seed: u64,
    /// The round.
    pub round: RoundId,
    /// The board, or [`crate::id::AUXILIARY`].
    pub client: ClientId,
}

impl Site {
    /// The key of one purpose here.
    pub fn key(self, purpose: Purpose) -> Key {
        Key::new(self.seed, purpose).of(self.round, self.client)
    }
}

/// What local training gives: the private state to keep, and what leaves.
#[derive(Clone, Debug)]
pub struct Fitted<M: Method> {
    /// Kept on the board.
    pub client: M::Client,
    /// Sent to the host.
    pub up: M::Up,
    /// Mean training loss of the last epoch, for the board's own log.
    pub loss: f64,
}

/// Replies of a round, visited one at a time in the order of [`ClientId`], as often as a rule needs.
pub trait Replies<U> {
    /// Who replied, sorted.
    fn ids(&self) -> &[ClientId];
    /// Shows one reply.
    ///
    /// # Errors
    /// [`FedError::Reply`] if it can't be read back.
    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&U)) -> Result<(), FedError>;
}

/// What the host has beside the replies.
pub trait Host {
    /// Its auxiliary data, if it has any.
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer>;
    /// Rounds the run is planned for.
    fn rounds(&self) -> u32;
}

/// A federated method: pure functions, state in, state out.
pub trait Method: Sized + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Spelling in configuration, command line, wire and reports.
    const NAME: &'static str;
    /// Hyper-parameters; they travel with the task. Unknown keys are errors.
    type Hyper: State + Default + PartialEq;
    /// What the host keeps between rounds.
    type Server: State;
    /// What a board keeps; never sent.
    type Client: State;
    /// What the host tells one board beside the shared parts.
    type Task: State + PartialEq;
    /// What a board sends.
    type Up: Uplink;

    /// What it discloses under these hyper-parameters.
    fn discloses(hyper: &Self::Hyper) -> Disclosure;

    /// What its updates cover, and how many values of a prototype they may carry.
    fn uplink(hyper: &Self::Hyper, spec: &ModelSpec) -> (Extent, usize);

    /// Passes over a board's training samples that a round asks for, everything counted.
    fn epochs(hyper: &Self::Hyper) -> u32;

    /// Refuses hyper-parameters out of range.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    fn check(hyper: &Self::Hyper) -> Result<(), FedError>;

    // Host half

    /// The state before the first round.
    ///
    /// # Errors
    /// [`FedError`].
    fn open(
        hyper: &Self::Hyper,
        init: Params,
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Self::Server, FedError>;

    /// What all boards share, in a fixed order.
    fn parts<'a>(hyper: &Self::Hyper, server: &'a Self::Server) -> Vec<SharedPart<'a>>;

    /// What this board shall train on.
    fn configure(hyper: &Self::Hyper, server: &Self::Server, to: ClientId) -> Plan<Self::Task>;

    /// What this board, in no cohort or joined late, shall take over.
    fn offer(hyper: &Self::Hyper, server: &Self::Server, to: ClientId) -> Plan<Self::Task> {
        Self::configure(hyper, server, to)
    }

    /// The next state. The old one stays as it is: a failed round changes nothing.
    ///
    /// # Errors
    /// [`FedError`].
    fn aggregate(
        hyper: &Self::Hyper,
        server: &Self::Server,
        site: Site,
        replies: &mut dyn Replies<Self::Up>,
        host: &mut dyn Host,
    ) -> Result<Self::Server, FedError>;

    /// The state to publish once the last round is over (tail average, last calibration).
    ///
    /// # Errors
    /// [`FedError`].
    fn finish(
        _hyper: &Self::Hyper,
        server: &Self::Server,
        _site: Site,
        _host: &mut dyn Host,
    ) -> Result<Self::Server, FedError> {
        Ok(server.clone())
    }

    // Board half

    /// A board's state before it has seen anything.
    fn enroll(hyper: &Self::Hyper, spec: &Arc<ModelSpec>) -> Self::Client;

    /// Trains for a round.
    ///
    /// # Errors
    /// [`FedError`].
    fn fit(
        hyper: &Self::Hyper,
        client: &Self::Client,
        down: Down<Self::Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Fitted<Self>, FedError>;

    /// Takes a model over without training for the host.
    ///
    /// # Errors
    /// [`FedError`].
    fn adopt(
        hyper: &Self::Hyper,
        client: &Self::Client,
        down: Down<Self::Task>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Self::Client, FedError>;

    /// Makes the board right about its own world (EA, fine-tuning, mixture). `adopt` comes first.
    ///
    /// # Errors
    /// [`FedError`].
    fn adapt(
        hyper: &Self::Hyper,
        client: &Self::Client,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Self::Client, FedError>;

    /// How the board answers.
    ///
    /// # Errors
    /// [`FedError::NoModel`].
    fn predictor(
        hyper: &Self::Hyper,
        client: &Self::Client,
        spec: &Arc<ModelSpec>,
    ) -> Result<Predictor, FedError>;
}

#[cfg(test)]
mod tests;
