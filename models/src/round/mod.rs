//! Rounds as sans-IO state machines: events in, effects out, the time as an argument.
//!
//! [`Coordinator`] is the host's side: every change of its state is an [`Event`]; the shell makes the events durable
//! before it lets the answer out, and restart is [`Coordinator::replay`]. [`Participant`] is the board's side: a loop of
//! [`Step`]s that a blocking shell can run in thirty lines. Neither knows a socket, a file or a clock.
mod backoff;
mod coordinator;
mod event;
mod participant;
mod phase;
mod policy;

pub use backoff::Backoff;
pub use coordinator::{
    Briefing, Charter, Completion, Coordinator, Effect, Handled, Reply, Request, Status, draw_cohort,
};
pub use event::{Abandoned, Event, Published};
pub use participant::{Ceilings, Discloses, Happening, Participant, Pending, Step, Stop};
pub use phase::{Collecting, Outcome, Phase};
pub use policy::{Policy, PolicyError};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 by the shell's clock.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Millis(pub u64);

impl Millis {
    /// This long after.
    #[must_use]
    pub fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How long until `later`; zero if it is past.
    pub fn until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests;
