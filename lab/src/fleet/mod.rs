//! A fleet in one process: the production state machines and wire bytes over memory, in virtual time.
//!
//! Boards of a round train in parallel on the current rayon pool; everything else happens in the order of their numbers, so
//! that a run is the same for any number of threads.
mod board;
mod host;

use board::{Blocked, Member};
use host::InMemoryHost;
use models::fed::erased::{self, AnyMethod};
use models::fed::{FedError, Predictor};
use models::id::ClientId;
use models::nn::Trainer;
use models::params::Params;
use models::round::{Millis, Policy, Stop};
use models::wire::{Decline, Reject};
use rayon::prelude::*;

/// A trainer that may move between threads.
pub type AnyTrainer = Box<dyn Trainer + Send>;

/// A method, and the adaptations that may follow it.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The method's name.
    pub method: &'static str,
    /// Its hyper-parameters, encoded.
    pub hyper: Vec<u8>,
    /// Hyper-parameters of each way to adapt: the rounds are run once, every board answers once for each.
    pub answers: Vec<Vec<u8>>,
}

/// Who takes part.
#[derive(Default)]
pub struct Crew {
    /// Boards that train.
    pub trained: Vec<(ClientId, AnyTrainer)>,
    /// Boards that join after the last round.
    pub late: Vec<(ClientId, AnyTrainer)>,
    /// The host's auxiliary data.
    pub auxiliary: Option<AnyTrainer>,
}

impl std::fmt::Debug for Crew {
    /// Trainers hold private data: only their number is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Crew({} boards, {} late)", self.trained.len(), self.late.len())
    }
}

/// Bytes of message bodies, updates and blobs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// From boards.
    pub up: u64,
    /// To boards.
    pub down: u64,
}

/// How a board answers in the end.
#[derive(Debug)]
pub struct Answering {
    /// Which board.
    pub client: ClientId,
    /// One for each of [`Recipe::answers`].
    pub predictors: Vec<Predictor>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Every board, those that trained first.
    pub boards: Vec<Answering>,
    /// Traffic of the rounds, taking the final model over not counted.
    pub traffic: Traffic,
}

/// Why a run could not be brought to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The method failed.
    #[error(transparent)]
    Method(#[from] FedError),
    /// The host refused a message.
    #[error("the host refused: {0}")]
    Refused(Reject),
    /// A board refused its task.
    #[error("board {client} refused its task: {}", .decline.why)]
    Declined {
        /// Which.
        client: ClientId,
        /// Its refusal.
        decline: Decline,
    },
    /// A board stopped.
    #[error("board {client} stopped: {why}")]
    Stopped {
        /// Which.
        client: ClientId,
        /// Why.
        why: Stop,
    },
    /// The hyper-parameters don't fit a message.
    #[error("the hyper-parameters take {got} bytes, a task holds at most 2048")]
    Hyper {
        /// Their size.
        got: usize,
    },
}

/// Runs `recipe` from `init` under `policy` to its end. `folded` hears of each round that is over.
///
/// # Errors
/// [`FleetError`].
pub fn run(
    recipe: &Recipe,
    policy: Policy,
    init: Params,
    crew: Crew,
    folded: &(dyn Fn() + Sync),
) -> Result<Outcome, FleetError> {
    let method = erased::method(recipe.method)?;
    let everyone: Vec<ClientId> = crew.trained.iter().chain(&crew.late).map(|(id, _)| *id).collect();
    let mut host = InMemoryHost::new(method, recipe, policy, init, everyone, crew.auxiliary)?;
    let mut boards = host.welcome(crew.trained)?;
    drive(&mut boards, &mut host, method, recipe, folded)?;
    let mut late = host.welcome(crew.late)?;
    drive(&mut late, &mut host, method, recipe, folded)?;
    let traffic = boards.iter().fold(Traffic::default(), |sum, b| sum.plus(b.traffic));
    Ok(Outcome { boards: boards.into_iter().chain(late).map(Member::answering).collect(), traffic })
}

/// Lets boards and host talk until every board has the final model.
fn drive(
    boards: &mut [Member],
    host: &mut InMemoryHost,
    method: &'static dyn AnyMethod,
    recipe: &Recipe,
    folded: &(dyn Fn() + Sync),
) -> Result<(), FleetError> {
    let mut round = host.round();
    loop {
        let blocked = boards.iter_mut().map(|b| b.talk(host)).collect::<Result<Vec<_>, _>>()?;
        if blocked.iter().all(|b| *b == Blocked::Done) {
            return Ok(());
        }
        (round..host.round()).for_each(|_| folded());
        round = host.round();
        let now = host.now;
        let jobs: Vec<(&mut Member, Blocked)> = boards.iter_mut().zip(blocked.iter().cloned()).collect();
        jobs.into_par_iter().try_for_each(|(board, job)| board.work(now, method, recipe, job))?;
        host.now = blocked.iter().filter_map(Blocked::until).min().unwrap_or(now.after(1)).max(now.after(1));
    }
}

impl Traffic {
    fn plus(self, other: Self) -> Self {
        Self { up: self.up + other.up, down: self.down + other.down }
    }
}

impl Blocked {
    fn until(&self) -> Option<Millis> {
        match self {
            Self::Until(when) => Some(*when),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
