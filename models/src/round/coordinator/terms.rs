//! The words in which the coordinator and its shell speak.
use crate::fed::Extent;
use crate::id::{ClientId, Hash, RoundId};
use crate::params::ModelSpec;
use crate::round::Event;
use crate::round::event::Published;
use crate::round::phase::Phase;
use crate::wire::{Answer, Bytes, Decline, Name, Poll, Receipt, Reject, Session};
use std::sync::Arc;

/// What is the same for every task of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Charter {
    /// The method's name.
    pub method: Name,
    /// Its hyper-parameters, encoded.
    pub hyper: Bytes<2048>,
    /// The model's specification.
    pub spec: Arc<ModelSpec>,
    /// The part of it that updates are of.
    pub extent: Extent,
    /// Passes over a board's data in one task.
    pub epochs: u32,
}

/// What the method's current state tells each board: indices into the shared parts, and the encoded rest.
pub trait Briefing: Send + Sync + std::fmt::Debug {
    /// For a picked board.
    fn task(&self, to: ClientId) -> (Vec<u16>, Vec<u8>);
    /// For a board that takes the model over.
    fn offer(&self, to: ClientId) -> (Vec<u16>, Vec<u8>);
}

/// What a board asks. Updates are named by the hash of their sealed bytes, which the shell has stored and checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// What shall I do?
    Poll(Poll),
    /// Here is my update.
    Submit {
        /// Who sends it.
        session: Session,
        /// The round it belongs to.
        round: RoundId,
        /// The blob it is kept in.
        update: Hash,
    },
    /// I won't do this.
    Decline(Decline),
}

/// What the host answers.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one value at a time, moved straight into the encoder")]
pub enum Reply {
    /// To a poll.
    Answer(Answer),
    /// To anything else.
    Receipt(Receipt),
}

/// A request handled: the events must be durable before the reply goes out.
#[derive(Debug)]
pub struct Handled {
    /// What happened.
    pub events: Vec<Event>,
    /// The reply.
    pub reply: Result<Reply, Reject>,
}

/// Work for the shell. Its result comes back through [`complete`](crate::round::Coordinator::complete).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Make the method's first state.
    Prepare,
    /// Fold these updates into the state.
    Aggregate {
        /// The round.
        round: RoundId,
        /// The state before.
        state: Hash,
        /// Who replied with which update, sorted.
        replies: Vec<(ClientId, Hash)>,
    },
    /// Make the final state.
    Finish {
        /// The state before.
        state: Hash,
    },
}

/// What came of an [`Effect`].
#[derive(Clone, Debug)]
pub enum Completion {
    /// A new state, stored, with what it tells boards.
    Done {
        /// The state and the parts, all stored.
        published: Published,
        /// What it tells each board.
        briefing: Arc<dyn Briefing>,
    },
    /// It failed; the old state stays.
    Failed {
        /// Why.
        why: String,
    },
}

/// Where a run is, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The phase.
    pub phase: Phase,
    /// The open or next round.
    pub round: RoundId,
    /// Boards known and not revoked.
    pub boards: usize,
    /// Of these, heard of within the lease.
    pub live: usize,
    /// Of these, such as have something to send: they may be picked.
    pub sending: usize,
    /// Failures in a row.
    pub failures: u32,
    /// The published state.
    pub published: Option<Published>,
}
