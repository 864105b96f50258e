//! Where a run is.
use super::Millis;
use crate::id::{ClientId, Hash};
use std::collections::BTreeMap;

/// What a picked board did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Nothing yet.
    Awaited,
    /// Its update counts.
    Accepted(Hash),
    /// It refused.
    Declined,
}

/// An open round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Collecting {
    pub(super) attempt: u32,
    pub(super) cohort: BTreeMap<ClientId, Outcome>,
    pub(super) deadline: Millis,
}

impl Collecting {
    pub(super) fn accepted(&self) -> Vec<(ClientId, Hash)> {
        self.cohort
            .iter()
            .filter_map(|(id, o)| if let Outcome::Accepted(hash) = o { Some((*id, *hash)) } else { None })
            .collect()
    }

    pub(super) fn awaited(&self) -> usize {
        self.cohort.values().filter(|o| **o == Outcome::Awaited).count()
    }
}

/// Where a run is. Every variant but the last has something that ends it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The method's first state is being made.
    Preparing,
    /// Waiting for boards, not before this time.
    Gathering {
        /// When a round may open.
        not_before: Millis,
    },
    /// A round is open.
    Collecting(Collecting),
    /// The host computes.
    Aggregating(Collecting),
    /// The last round is over; the host makes the final state.
    Finishing,
    /// Too often in a row too few boards replied: the operator must look.
    Stalled,
    /// Training is over.
    Finished,
}
