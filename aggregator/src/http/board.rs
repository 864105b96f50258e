//! Who is at the other end: the device whose key the TLS session proved.
use super::gossip::Worth;
use super::{Refusal, Shared};
use crate::clock;
use crate::ledger::{Device, Standing};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use models::id::Hash;
use models::wire::Reject;
use std::sync::Arc;

/// Longest part of a path that is logged.
const LONGEST_PATH: usize = 80;

/// SHA-256 of the public key in the peer's certificate, if it showed one that the authority signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) Option<Hash>);

/// The enrolled, unrevoked device that asks. A handler that takes it can't be reached without a certificate.
#[derive(Debug)]
pub(super) struct Board(pub(super) Device);

impl<S: Sync> FromRequestParts<S> for Board {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        match parts.extensions.get::<Device>() {
            None => Err(Reject::UnknownDevice.into()),
            Some(device) if device.standing == Standing::Revoked => Err(Reject::Revoked.into()),
            Some(device) => Ok(Self(device.clone())),
        }
    }
}

/// Looks the peer up before the handler runs, and counts what it was refused afterwards.
pub(super) async fn identify(State(app): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let key = request.extensions().get::<Peer>().and_then(|peer| peer.0);
    let device = match key {
        Some(key) => app.ledger.device_by_key(key).await,
        None => Ok(None),
    };
    let device = match device {
        Ok(device) => device,
        Err(error) => return Refusal::from(error).into_response(),
    };
    if let Some(device) = &device {
        request.extensions_mut().insert(device.clone());
    }
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let refused = response.extensions().get::<Reject>().copied();
    if let Err(error) = note(&app, device.as_ref(), refused, &path).await {
        tracing::warn!(%error, "a device's record can't be kept");
    }
    response
}

async fn note(
    app: &Shared,
    device: Option<&Device>,
    refused: Option<Reject>,
    path: &str,
) -> Result<(), crate::ledger::LedgerError> {
    let path: String = path.chars().take(LONGEST_PATH).collect();
    let worth = refused.is_some().then(|| app.gossip.note(device.map(|d| d.id), clock::now()));
    match (device, refused) {
        (Some(device), Some(reject)) => {
            match worth {
                Some(Worth::Said) => tracing::info!(client = %device.id, %reject, path, "refused"),
                Some(Worth::Last) => {
                    tracing::warn!(client = %device.id, %reject, path, "refused, too often: no more of it is said this minute");
                }
                _ => {}
            }
            app.ledger.refused(device.id, super::reject::describe(&reject).1).await
        }
        (Some(device), None) => heard(app, device).await,
        (None, Some(reject)) => {
            match worth {
                Some(Worth::Said) => tracing::info!(%reject, path, "refused a stranger"),
                Some(Worth::Last) => {
                    tracing::warn!(%reject, path, "refused strangers, too often: no more of it is said this minute");
                }
                _ => {}
            }
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// Notes the time at most once in ten seconds, so that polls don't wear the disk out.
async fn heard(app: &Shared, device: &Device) -> Result<(), crate::ledger::LedgerError> {
    let now = clock::now();
    match device.seen.until(now) > 10_000 {
        true => app.ledger.heard(device.id, now).await,
        false => Ok(()),
    }
}
