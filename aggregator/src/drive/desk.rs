//! How requests reach the task that owns the run: one bounded channel.
use crate::ledger::{Device, Standing};
use models::id::{ClientId, Hash};
use models::round::{Reply, Request, Status};
use models::wire::Reject;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Most requests that wait.
const QUEUE: usize = 256;
/// Longest that a request waits for a place and for its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a board that met a full desk shall come back.
const BUSY: Reject = Reject::Busy { retry_ms: 2_000 };

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) id: ClientId,
    pub(crate) standing: Standing,
}

impl From<&Device> for Who {
    fn from(device: &Device) -> Self {
        Self { id: device.id, standing: device.standing }
    }
}

/// What comes of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// This is the reply.
    Reply(Box<Result<Reply, Reject>>),
    /// The update would count: store it, then ask again.
    StoreFirst,
}

/// A question to the task that owns the run.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A board's request; `stored` says whether the update it names is in the blob store.
    Handle { who: Who, request: Request, stored: bool, tell: oneshot::Sender<Outcome> },
    /// Whether a board's current task names this blob.
    MayRead { from: ClientId, blob: Hash, tell: oneshot::Sender<bool> },
    /// A device is in the ledger.
    Enrolled { client: ClientId, tell: oneshot::Sender<()> },
    /// Where the run is.
    Status { tell: oneshot::Sender<Status> },
}

/// Where requests are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Desk(mpsc::Sender<Ask>);

impl Desk {
    /// A desk, and the end where its requests come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    pub(crate) async fn handle(&self, who: Who, request: Request, stored: bool) -> Result<Outcome, Reject> {
        self.ask(|tell| Ask::Handle { who, request, stored, tell }).await
    }

    pub(crate) async fn may_read(&self, from: ClientId, blob: Hash) -> Result<bool, Reject> {
        self.ask(|tell| Ask::MayRead { from, blob, tell }).await
    }

    pub(crate) async fn enrolled(&self, client: ClientId) -> Result<(), Reject> {
        self.ask(|tell| Ask::Enrolled { client, tell }).await
    }

    pub(crate) async fn status(&self) -> Result<Status, Reject> {
        self.ask(|tell| Ask::Status { tell }).await
    }

    /// Hands a question in and waits for its answer; busy if there is no place in time, failed if the run has ended.
    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Reject> {
        let (tell, told) = oneshot::channel();
        self.0.send_timeout(question(tell), PATIENCE).await.map_err(|_| BUSY)?;
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(answer) => answer.map_err(|_| Reject::Internal),
            Err(_) => Err(BUSY),
        }
    }
}
