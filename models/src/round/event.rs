//! What happened, in order: the ledger's rows are these.
use crate::id::{ClientId, Hash, RoundId};
use crate::params::UpdateMode;
use crate::round::Millis;
use crate::wire::{Declined, PartRef, Session};
use serde::{Deserialize, Serialize};

/// A state of the method that boards may be told about.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Published {
    /// The blob that holds the host's state.
    pub state: Hash,
    /// The shared parts, in the method's order.
    pub parts: Vec<PartRef>,
}

/// One change of the coordinator's state.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub enum Event {
    /// A device became known.
    Enrolled {
        /// Its number.
        client: ClientId,
    },
    /// A device is no longer wanted.
    Revoked {
        /// Its number.
        client: ClientId,
    },
    /// A board's process started.
    Session {
        /// Whose.
        client: ClientId,
        /// Which life.
        session: Session,
    },
    /// The method's first state is there.
    Ready {
        /// It.
        published: Published,
    },
    /// A round opened.
    Opened {
        /// Which.
        round: RoundId,
        /// How often it was opened before.
        attempt: u32,
        /// Who was picked, sorted.
        cohort: Vec<ClientId>,
        /// When it closes at the latest.
        deadline: Millis,
    },
    /// An update counts.
    Accepted {
        /// In this round.
        round: RoundId,
        /// Whose.
        client: ClientId,
        /// The blob that holds it as it came.
        update: Hash,
    },
    /// A board refused its task.
    Declined {
        /// In this round.
        round: RoundId,
        /// Which board.
        client: ClientId,
        /// Why.
        why: Declined,
    },
    /// A round is full or out of time, with enough replies: the host computes.
    Closed {
        /// Which.
        round: RoundId,
    },
    /// A round is over and gave a new state.
    Folded {
        /// Which.
        round: RoundId,
        /// The new state.
        published: Published,
    },
    /// A round is over and gave nothing.
    Failed {
        /// Which.
        round: RoundId,
        /// Why.
        why: Abandoned,
        /// When it opens again.
        again: Millis,
    },
    /// Training is over.
    Finished {
        /// The state that boards take over.
        published: Published,
    },
    /// A board said how much of the model it trains at most; before that it is taken for one that trains everything.
    Mode {
        /// Which board.
        client: ClientId,
        /// At most this.
        update: UpdateMode,
    },
}

/// Why a round gave nothing. The state before it stays.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Abandoned {
    /// Too few replied in time.
    #[error("{got} of {needed} needed replies came in time")]
    TooFew {
        /// Replies.
        got: u32,
        /// Needed.
        needed: u32,
    },
    /// The arithmetic failed.
    #[error("aggregation failed: {why}")]
    Aggregation {
        /// Why.
        why: String,
    },
}
