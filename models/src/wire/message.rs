//! What is said. Every field is bounded; nothing here can hold a tensor.
use super::{Codec, Reject, VERSION};
use crate::fed::{Disclosure, Extent};
use crate::id::{ClientId, Hash, RoundId};
use crate::params::UpdateMode;
use serde::{Deserialize, Serialize};

/// A short name.
pub type Name = heapless::String<64>;
/// A few encoded numbers.
pub type Bytes<const N: usize> = heapless::Vec<u8, N>;
/// The shared parts a task names.
pub type Parts = heapless::Vec<PartRef, 64>;

/// What every message travels in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Envelope<T> {
    /// Version of the wire.
    pub version: u16,
    /// The host's clock in seconds since 1970 when it speaks; 0 from a board.
    pub host_time: u64,
    /// The message.
    pub body: T,
}

impl<T> Envelope<T> {
    /// From a board.
    pub fn new(body: T) -> Self {
        Self { version: VERSION, host_time: 0, body }
    }

    /// From the host.
    pub fn at(host_time: u64, body: T) -> Self {
        Self { version: VERSION, host_time, body }
    }

    /// The message, if the version is ours.
    ///
    /// # Errors
    /// [`Reject::Version`].
    pub fn open(self) -> Result<T, Reject> {
        if self.version == VERSION { Ok(self.body) } else { Err(Reject::Version { ours: VERSION }) }
    }
}

/// One life of a board's process. A later epoch supersedes an earlier one; of two equal epochs the first heard wins.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Session {
    /// Counted up on the board's disk at every start.
    pub epoch: u32,
    /// Drawn at every start.
    pub nonce: u32,
}

/// A board asks to be known.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EnrollRequest {
    /// The one-time secret of the token.
    pub secret: Bytes<64>,
    /// PKCS#10 request for the key made on the board, DER.
    pub request: Bytes<2048>,
    /// How the owner calls the board.
    pub name: Name,
}

/// The board is known.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Enrolled {
    /// Its number.
    pub client: ClientId,
    /// Its certificate, DER.
    pub certificate: Bytes<4096>,
    /// The host's authority, DER; the board checks it against the token's pin and keeps it.
    pub authority: Bytes<4096>,
}

/// What shall I do?
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Poll {
    /// Who asks.
    pub session: Session,
    /// The version of the model that the board has taken over, if any.
    pub held: Option<u32>,
    /// The most that the board trains. The host listens to it once in a session, and picks nobody who would send nothing.
    pub update: UpdateMode,
}

/// The answer to a poll.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Answer {
    /// Train.
    Task(Task),
    /// Take a model over.
    Adopt(Adopt),
    /// Nothing now.
    Wait(Outlook),
}

/// A shared part, by name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PartRef {
    /// Which part of the model it is; its length follows from the specification.
    pub extent: Extent,
    /// SHA-256 of its raw form.
    pub hash: Hash,
}

/// Training to be done.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Task {
    /// The round.
    pub round: RoundId,
    /// Counts the times this round was opened.
    pub attempt: u32,
    /// Milliseconds left.
    pub remaining_ms: u64,
    /// Identity of the model's specification.
    pub spec: Hash,
    /// The run's root seed.
    pub seed: u64,
    /// The method's name.
    pub method: Name,
    /// Its hyper-parameters.
    pub hyper: Bytes<2048>,
    /// How the update shall be encoded.
    pub codec: Codec,
    /// What it takes: passes over the board's data.
    pub epochs: u32,
    /// The most that the run wants trained; a board that can't afford it trains less.
    pub update: UpdateMode,
    /// Shared parts needed.
    pub parts: Parts,
    /// The rest of what the method tells this board.
    pub body: Bytes<2048>,
}

/// A model to be taken over.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Adopt {
    /// Its version: rounds behind it.
    pub version: u32,
    /// Identity of the model's specification.
    pub spec: Hash,
    /// The run's root seed.
    pub seed: u64,
    /// The method's name.
    pub method: Name,
    /// Its hyper-parameters.
    pub hyper: Bytes<2048>,
    /// Shared parts needed.
    pub parts: Parts,
    /// The rest of what the method tells this board.
    pub body: Bytes<2048>,
}

/// Ask again later.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Outlook {
    /// After this many milliseconds.
    pub retry_ms: u32,
    /// Why.
    pub why: Why,
}

/// Why a board has nothing to do.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub enum Why {
    /// More boards must come first.
    TooFewBoards {
        /// Boards there.
        have: u32,
        /// Boards needed.
        need: u32,
    },
    /// Others were picked.
    NotSelected {
        /// For this round.
        round: RoundId,
    },
    /// This board is done, others are not.
    Collecting {
        /// In this round.
        round: RoundId,
    },
    /// The host computes.
    Aggregating {
        /// This round.
        round: RoundId,
    },
    /// Too many rounds failed; the operator must look.
    Stalled {
        /// In this round.
        round: RoundId,
    },
    /// Training is over and the board has the model.
    Finished,
    /// What the board trains is nothing that this run shares: it is never picked, and waits for the final model.
    NothingToSend {
        /// In this round.
        round: RoundId,
    },
}

/// An update or a refusal arrived.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Receipt {
    /// Taken.
    Accepted,
    /// Was taken before: the answer had been lost.
    AlreadyAccepted,
    /// Heard.
    Noted,
}

/// A task refused.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Decline {
    /// Who refuses.
    pub session: Session,
    /// Which round's.
    pub round: RoundId,
    /// Why.
    pub why: Declined,
}

/// Why a board refuses a task.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Declined {
    /// It discloses more than the owner allows.
    #[error("the task discloses {asked:?}, the owner allows {allowed:?} (set `[privacy] allow`)")]
    Disclosure {
        /// What it would disclose.
        asked: Disclosure,
        /// What is allowed.
        allowed: Disclosure,
    },
    /// More passes than the owner allows.
    #[error("the task takes {asked} epochs, the owner allows {allowed} (set `[limits] epochs`)")]
    Epochs {
        /// Asked.
        asked: u32,
        /// Allowed.
        allowed: u32,
    },
    /// More bytes than the owner allows.
    #[error("the task moves {asked} bytes, the owner allows {allowed} (set `[limits] bytes`)")]
    Bytes {
        /// Asked.
        asked: u64,
        /// Allowed.
        allowed: u64,
    },
    /// The method is not in this program.
    #[error("this program doesn't know the method or its hyper-parameters; is it older than the host?")]
    Unknown,
    /// The board has nothing to train on, or training failed.
    #[error("the board could not train; its own log says why")]
    CannotTrain,
    /// More time than the owner allows, by the board's own experience.
    #[error("the task would take {asked} minutes here, the owner allows {allowed} (set `[limits] minutes`)")]
    Minutes {
        /// Expected.
        asked: u32,
        /// Allowed.
        allowed: u32,
    },
    /// More memory than the owner allows.
    #[error("the task would take {asked} MiB here, the owner allows {allowed} (set `[limits] memory`)")]
    Memory {
        /// Expected.
        asked: u32,
        /// Allowed.
        allowed: u32,
    },
    /// The board trains nothing that it could send.
    #[error(
        "the owner lets this board train {allowed} and no more, of which nothing is sent (set `[train] update`)"
    )]
    NothingToSend {
        /// What it trains.
        allowed: UpdateMode,
    },
}

/// How it goes on a board whose owner opted in: nothing finer than this.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Health {
    /// Better (1), same (0) or worse (−1) than alone.
    pub compared: i8,
    /// Decile of the route share.
    pub route_decile: u8,
}
