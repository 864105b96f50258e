//! Events as rows of the ledger, and back.
use super::sweep::sweep;
use crate::clock;
use crate::compute::{ComputeError, Workshop};
use crate::ledger::{Kept, Ledger, LedgerError, Record};
use models::round::{Charter, Coordinator, Event, Phase};
use std::sync::Arc;

/// The row that says what the run is; the first of every ledger.
const CHARTER: &str = "charter";
/// Rows read at a time.
const PAGE: u32 = 1024;

/// Why a directory's run can't be taken up again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The ledger can't be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A row can't be decoded.
    #[error("row {seq} of the ledger ({kind}) can't be decoded; restore a backup")]
    Row {
        /// Its number.
        seq: i64,
        /// Its kind.
        kind: String,
    },
    /// The configuration describes another run.
    #[error(
        "the run in this directory was begun with another model, method or hyper-parameters: undo the change, or `aggregator init` a new directory"
    )]
    AnotherRun,
    /// More rounds are asked for after the end.
    #[error(
        "training ended after {trained} rounds and boards have taken the model over, but `[rounds] rounds` is {asked} now: set it back to {trained}, or `aggregator init` a new directory to train for longer"
    )]
    Over {
        /// Rounds of the run.
        trained: u32,
        /// Rounds of the configuration.
        asked: u32,
    },
    /// The published state can't be read.
    #[error(transparent)]
    Compute(#[from] ComputeError),
}

/// The run as the ledger has it; a new one gets its charter.
pub(crate) async fn replay(
    ledger: &dyn Ledger,
    workshop: &Arc<Workshop>,
) -> Result<Coordinator, ReplayError> {
    let charter = workshop.plan().charter();
    check_charter(ledger, &charter).await?;
    let events = events(ledger).await?;
    let left =
        Coordinator::recall(workshop.plan().policy.clone(), charter.clone(), &events).status(clock::now());
    let (trained, asked) = (left.round.0, workshop.plan().policy.rounds);
    if left.phase == Phase::Finished && asked > trained {
        return Err(ReplayError::Over { trained, asked });
    }
    let swept = sweep(workshop.blobs(), &events).await.map_err(ComputeError::from)?;
    tracing::debug!(swept, "blobs that nothing names were removed");
    let mut run = Coordinator::replay(workshop.plan().policy.clone(), charter, clock::now(), &events);
    if let Some(published) = run.status(clock::now()).published {
        let bench = Arc::clone(workshop);
        let briefing = tokio::task::spawn_blocking(move || bench.briefing(published.state)).await;
        run.brief(briefing.map_err(|_| ComputeError::Panicked)??);
    }
    Ok(run)
}

async fn check_charter(ledger: &dyn Ledger, charter: &Charter) -> Result<(), ReplayError> {
    let Charter { method, hyper, spec, .. } = charter;
    let body = postcard::to_stdvec(&(method, hyper, spec.hash())).unwrap_or_default();
    match ledger.events(0, 1).await?.first() {
        None => Ok(ledger.append(clock::now(), vec![Record { kind: CHARTER, body }]).await?),
        Some(first) if first.kind == CHARTER && first.body == body => Ok(()),
        Some(_) => Err(ReplayError::AnotherRun),
    }
}

pub(crate) async fn events(ledger: &dyn Ledger) -> Result<Vec<Event>, ReplayError> {
    let mut events = Vec::new();
    let mut after = 1; // the charter
    loop {
        let page = ledger.events(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(events) };
        after = last.seq;
        for row in &page {
            events.push(event(row)?);
        }
    }
}

fn event(row: &Kept) -> Result<Event, ReplayError> {
    match postcard::take_from_bytes(&row.body) {
        Ok((event, [])) => Ok(event),
        _ => Err(ReplayError::Row { seq: row.seq, kind: row.kind.clone() }),
    }
}

pub(super) fn record(event: &Event) -> Result<Record, postcard::Error> {
    Ok(Record { kind: kind(event), body: postcard::to_stdvec(event)? })
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Enrolled { .. } => "enrolled",
        Event::Revoked { .. } => "revoked",
        Event::Session { .. } => "session",
        Event::Ready { .. } => "ready",
        Event::Opened { .. } => "opened",
        Event::Accepted { .. } => "accepted",
        Event::Declined { .. } => "declined",
        Event::Closed { .. } => "closed",
        Event::Folded { .. } => "folded",
        Event::Failed { .. } => "failed",
        Event::Finished { .. } => "finished",
        Event::Mode { .. } => "mode",
        _ => "other",
    }
}

/// Tells the operator, by names and numbers only.
pub(super) fn log(event: &Event) {
    match event {
        Event::Enrolled { client } => tracing::info!(%client, "a board is known"),
        Event::Opened { round, attempt, cohort, .. } => {
            tracing::info!(%round, attempt, boards = cohort.len(), "the round is open");
        }
        Event::Accepted { round, client, .. } => tracing::info!(%round, %client, "an update counts"),
        Event::Declined { round, client, why } => {
            tracing::warn!(%round, %client, %why, "a board refuses its task");
        }
        Event::Folded { round, .. } => tracing::info!(%round, "the round is folded"),
        Event::Failed { round, why, .. } => tracing::warn!(%round, %why, "the round gave nothing"),
        Event::Mode { client, update } => {
            tracing::info!(%client, %update, "a board says what it trains at most");
        }
        Event::Finished { .. } => tracing::info!("training is over: boards take the model over"),
        other => tracing::debug!(kind = kind(other), "event"),
    }
}

/// Tells the run of devices that the ledger enrolled when the process ended before the run took note.
pub(crate) async fn reconcile(run: &mut Coordinator, ledger: &dyn Ledger) -> Result<(), ReplayError> {
    let devices = ledger.devices().await?;
    let events: Vec<_> = devices.iter().flat_map(|device| run.enroll(device.id)).collect();
    let records = events.iter().filter_map(|event| record(event).ok()).collect();
    Ok(ledger.append(clock::now(), records).await?)
}
