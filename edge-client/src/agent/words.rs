//! What the owner reads.
use crate::personal::Personal;
use models::params::UpdateMode;
use models::wire::{Task, Why};
use std::time::Duration;

/// A round's training, as the owner reads it.
pub(super) fn trained(task: &Task, mode: UpdateMode, took: Duration, loss: f64, next: &Personal) -> String {
    let bytes = next.pending.as_ref().map_or(0, |p| p.sealed.len());
    let (round, seconds) = (task.round, took.as_secs_f32());
    format!("round {round}: trained {mode} in {seconds:.1} s, loss {loss:.3}, sending {bytes} bytes")
}

/// Why the board waits.
pub(super) fn waiting(why: Option<Why>) -> String {
    match why {
        None => "waiting".into(),
        Some(Why::TooFewBoards { have, need }) => format!("waiting: {have} of {need} boards are there"),
        Some(Why::NotSelected { round }) => format!("round {round}: other boards were picked"),
        Some(Why::Collecting { round }) => format!("round {round}: done here, waiting for other boards"),
        Some(Why::Aggregating { round }) => format!("round {round}: the host computes"),
        Some(Why::Stalled { round }) => {
            format!("round {round}: stalled after too many failures; the operator of the host must look")
        }
        Some(Why::Finished) => "finished: this board has the final model".into(),
        Some(Why::NothingToSend { round }) => {
            format!(
                "round {round}: what this board trains is nothing that is shared; waiting for the final model"
            )
        }
        Some(_) => "waiting, for a reason this program doesn't know".into(),
    }
}
