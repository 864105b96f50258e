//! One task owns the [`Coordinator`]: it makes events durable, then answers; and sends the arithmetic elsewhere.
mod desk;
mod insist;
mod record;
mod sweep;

pub(crate) use desk::{Ask, Desk, Outcome, Who};
pub use record::ReplayError;
pub(crate) use record::{events, reconcile, replay};

use crate::clock;
use crate::compute::Workshop;
use crate::crash;
use crate::ledger::{Ledger, LedgerError, Standing};
use crate::stop::stopped;
use models::id::Hash;
use models::round::{Abandoned, Completion, Coordinator, Effect, Event, Phase, Reply, Request};
use models::wire::{Answer, Outlook, Reject, Why};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// How often the ledger is asked what the operator did with devices.
const STANDINGS: Duration = Duration::from_secs(2);
/// Most requests that share one commit.
const BATCH: usize = 64;

/// Why the run can't go on in this process. What was promised is in the ledger; a restart goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// What happened can't be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An event can't be encoded.
    #[error("an event can't be encoded: {0}")]
    Encode(#[from] postcard::Error),
}

/// Work that is being done, and what it leaves behind when its result is kept.
struct Work {
    handle: JoinHandle<Completion>,
    spent: Vec<Hash>,
}

/// An answer that waits for its events to be durable.
type Telling = Box<dyn FnOnce() + Send>;

/// The task that owns the run.
pub(crate) struct Driver {
    run: Coordinator,
    ledger: Arc<dyn Ledger>,
    workshop: Arc<Workshop>,
    asks: mpsc::Receiver<Ask>,
    news: broadcast::Sender<Event>,
    stop: watch::Receiver<bool>,
    work: Option<Work>,
}

impl Driver {
    pub(crate) fn new(
        run: Coordinator,
        ledger: Arc<dyn Ledger>,
        workshop: Arc<Workshop>,
        asks: mpsc::Receiver<Ask>,
        news: broadcast::Sender<Event>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { run, ledger, workshop, asks, news, stop, work: None }
    }

    /// Runs until told to stop.
    pub(crate) async fn drive(mut self) -> Result<(), DriveError> {
        let (mut standings, mut stop) = (tokio::time::interval(STANDINGS), self.stop.clone());
        loop {
            self.launch();
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return Ok(()),
                (done, spent) = finished(&mut self.work) => self.complete(done, spent).await?,
                () = wake(&self.run) => {
                    let events = self.run.handle_timeout(clock::now());
                    self.keep(events).await?;
                }
                _ = standings.tick() => self.take_standings().await?,
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.serve(ask).await?,
                    None => return Ok(()),
                },
            }
        }
    }

    /// Serves a request and those that wait behind it: one commit, then all the answers.
    async fn serve(&mut self, first: Ask) -> Result<(), DriveError> {
        let (mut events, mut tellings) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(ask) = next.take() {
            tellings.push(self.hear(ask, &mut events));
            next = if tellings.len() < BATCH { self.asks.try_recv().ok() } else { None };
        }
        self.keep(events).await?;
        tellings.into_iter().for_each(|tell| tell());
        Ok(())
    }

    fn hear(&mut self, ask: Ask, events: &mut Vec<Event>) -> Telling {
        match ask {
            Ask::Handle { who, request, stored, tell } => {
                let outcome = self.handle(who, &request, stored, events);
                answering(tell, outcome)
            }
            Ask::MayRead { from, blob, tell } => {
                let may = self.run.may_read(from, blob);
                answering(tell, may)
            }
            Ask::Enrolled { client, tell } => {
                events.extend(self.run.enroll(client));
                answering(tell, ())
            }
            Ask::Status { tell } => {
                let status = self.run.status(clock::now());
                answering(tell, status)
            }
        }
    }

    fn handle(&mut self, who: Who, request: &Request, stored: bool, events: &mut Vec<Event>) -> Outcome {
        if let Some(reply) = self.quarantined(who, request) {
            return Outcome::Reply(Box::new(reply));
        }
        if let (Request::Submit { session, round, .. }, false) = (request, stored)
            && self.run.awaits(who.id, *session, *round)
        {
            return Outcome::StoreFirst;
        }
        let handled = self.run.handle(clock::now(), who.id, request);
        events.extend(handled.events);
        Outcome::Reply(Box::new(handled.reply))
    }

    /// What a quarantined board hears: it takes no part, but gets the model once there is one.
    fn quarantined(&self, who: Who, request: &Request) -> Option<Result<Reply, Reject>> {
        let status = self.run.status(clock::now());
        if who.standing != Standing::Quarantined || status.phase == Phase::Finished {
            return None;
        }
        let round = status.round;
        Some(match request {
            Request::Poll(_) => {
                let outlook = Outlook {
                    retry_ms: self.workshop.plan().policy.poll_ms,
                    why: Why::NotSelected { round },
                };
                Ok(Reply::Answer(Answer::Wait(outlook)))
            }
            _ => Err(Reject::NotSelected { round }),
        })
    }

    /// Starts the next piece of work, if there is one.
    fn launch(&mut self) {
        if self.work.is_some() {
            return;
        }
        let Some(effect) = self.run.poll_effect() else { return };
        let spent = match &effect {
            Effect::Aggregate { replies, .. } => replies.iter().map(|(_, update)| *update).collect(),
            _ => Vec::new(),
        };
        let workshop = Arc::clone(&self.workshop);
        self.work = Some(Work { handle: tokio::task::spawn_blocking(move || workshop.work(&effect)), spent });
    }

    /// Keeps the result of a piece of work, then forgets the updates that went into it.
    async fn complete(&mut self, done: Completion, spent: Vec<Hash>) -> Result<(), DriveError> {
        let events = self.run.complete(clock::now(), done);
        self.keep(events).await?;
        crash::here("folded-before-forgetting");
        for update in spent {
            if let Err(error) = self.workshop.blobs().remove(update).await {
                tracing::warn!(%update, %error, "an update that was folded can't be removed");
            }
        }
        Ok(())
    }

    /// Takes over what the operator decided about devices in another process.
    async fn take_standings(&mut self) -> Result<(), DriveError> {
        let devices = match self.ledger.devices().await {
            Ok(devices) => devices,
            Err(error) => {
                tracing::error!(%error, "the ledger can't be read; trying again");
                return Ok(());
            }
        };
        for device in devices {
            if device.standing == Standing::Revoked {
                let events = self.run.revoke(clock::now(), device.id);
                self.keep(events).await?;
            }
        }
        Ok(())
    }

    /// Makes events durable and tells them to whoever listens.
    async fn keep(&mut self, events: Vec<Event>) -> Result<(), DriveError> {
        if events.is_empty() {
            return Ok(());
        }
        let records = events.iter().map(record::record).collect::<Result<Vec<_>, _>>()?;
        crash::here("before-commit");
        let append = || self.ledger.append(clock::now(), records.clone());
        insist::insist(&mut self.stop.clone(), append).await?;
        crash::here("after-commit");
        for event in events {
            record::log(&event);
            self.warn_of(&event);
            let _ = self.news.send(event); // nobody listening is fine
        }
        Ok(())
    }

    /// Says what the operator should do about a failure.
    fn warn_of(&self, event: &Event) {
        let Event::Failed { why, .. } = event else { return };
        let status = self.run.status(clock::now());
        let failures = status.failures;
        if status.phase == Phase::Stalled {
            tracing::error!(%why, failures, "the run has stalled: see by `aggregator devices list` which boards are silent, then restart `aggregator serve` to let it try again");
        } else if matches!(why, Abandoned::Aggregation { .. }) {
            tracing::error!(%why, failures, "the host itself failed: free space or repair what is named; it tries again by itself, ever more slowly");
        }
    }
}

/// Tells the answer when called; whoever asked may have gone.
fn answering<T: Send + 'static>(tell: oneshot::Sender<T>, answer: T) -> Telling {
    Box::new(move || {
        let _ = tell.send(answer);
    })
}

/// The result of the work that is out; never, if none is.
async fn finished(work: &mut Option<Work>) -> (Completion, Vec<Hash>) {
    let Some(out) = work else { return std::future::pending().await };
    let done = (&mut out.handle).await;
    let spent = work.take().map_or_else(Vec::new, |w| w.spent);
    (done.unwrap_or_else(|panic| Completion::Failed { why: panic.to_string() }), spent)
}

/// Comes back when the run wants to be woken; never, if it doesn't.
async fn wake(run: &Coordinator) {
    match run.poll_timeout() {
        Some(at) => tokio::time::sleep(Duration::from_millis(clock::now().until(at))).await,
        None => std::future::pending().await,
    }
}
