//! Bodies: capped before they are read, read before a deadline, decoded with nothing left over.
use super::{Refusal, Shared};
use crate::clock;
use crate::config::Plan;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use models::id::{Hash, RoundId};
use models::wire::{
    Envelope, MESSAGE_CAP, Reject, Session, from_bytes, open_update, split_submit, submit_cap, to_bytes,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Content type of all that isn't a message for people.
pub(super) const OCTETS: &str = "application/octet-stream";

/// A message in its envelope.
#[derive(Debug)]
pub(super) struct Message<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Message<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<Shared>) -> Result<Self, Refusal> {
        let bytes = read(request, MESSAGE_CAP, app.limits.message).await?;
        Ok(Self(from_bytes::<Envelope<T>>(&bytes)?.open()?))
    }
}

/// An answer in its envelope, with the host's time.
#[derive(Debug)]
pub(super) struct Said<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Said<T> {
    fn into_response(self) -> Response {
        match to_bytes(&Envelope::at(clock::now().0 / 1000, self.0)) {
            Ok(bytes) => ([(CONTENT_TYPE, OCTETS)], bytes).into_response(),
            Err(_) => Refusal(Reject::Internal).into_response(),
        }
    }
}

/// An update that is what the run's tasks ask for: its numbers are finite, its lengths the specification's.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) session: Session,
    pub(super) round: RoundId,
    pub(super) hash: Hash,
    pub(super) bytes: Bytes,
}

impl FromRequest<Arc<Shared>> for Sealed {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<Shared>) -> Result<Self, Refusal> {
        let plan = &app.plan;
        let cap = submit_cap(plan.policy.codec, &plan.spec, plan.extent);
        let body = read(request, cap, app.limits.update).await?;
        let plan = Arc::clone(plan);
        let checked = tokio::task::spawn_blocking(move || check(&plan, &body)).await;
        Ok(checked.map_err(|_| Reject::Internal)??)
    }
}

/// Reads every number of it: off the executor.
fn check(plan: &Plan, body: &Bytes) -> Result<Sealed, Reject> {
    let (session, sealed) = split_submit(body)?;
    let bytes = body.slice_ref(sealed);
    let (header, update) = open_update(&bytes, &plan.spec)?;
    let asked = header.codec == plan.policy.codec
        && header.extent == plan.extent
        && update.prototype().len() <= plan.prototype;
    if asked {
        Ok(Sealed { session, round: header.round, hash: Hash::of(&bytes), bytes })
    } else {
        Err(Reject::NotAsked)
    }
}

/// Reads a body whole. One that says it is too long isn't read at all; one that comes too slowly is given up.
async fn read(request: Request, cap: usize, patience: Duration) -> Result<Bytes, Reject> {
    let too_large = Reject::TooLarge { limit: cap as u64 };
    let stated = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > cap as u64) {
        return Err(too_large);
    }
    match tokio::time::timeout(patience, Limited::new(request.into_body(), cap).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large),
        Ok(Err(_)) => Err(Reject::Malformed),
        Err(_) => Err(Reject::Busy { retry_ms: 5_000 }),
    }
}
