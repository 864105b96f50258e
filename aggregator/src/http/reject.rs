//! Refusals as responses.
use crate::blobs::BlobError;
use crate::clock;
use crate::ledger::LedgerError;
use crate::pki::PkiError;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use models::wire::{Envelope, Reject, to_bytes};

/// A refusal on its way out.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Reject);

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        Self(reject)
    }
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        tracing::error!(%error, "the ledger failed");
        Self(Reject::Internal)
    }
}

impl From<BlobError> for Refusal {
    fn from(error: BlobError) -> Self {
        tracing::error!(%error, "the blob store failed");
        Self(Reject::Internal)
    }
}

impl From<PkiError> for Refusal {
    fn from(error: PkiError) -> Self {
        tracing::error!(%error, "a certificate can't be made");
        Self(Reject::Internal)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, _) = describe(&self.0);
        let body = to_bytes(&Envelope::at(clock::now().0 / 1000, self.0)).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, super::body::OCTETS)], body).into_response();
        if matches!(self.0, Reject::TooLarge { .. } | Reject::Busy { .. }) {
            // The rest of the body may still be on its way: nothing else can follow on this connection.
            response.headers_mut().insert(CONNECTION, axum::http::HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(self.0);
        response
    }
}

/// The status of a refusal, and the name under which it is counted.
pub(super) fn describe(reject: &Reject) -> (StatusCode, &'static str) {
    match reject {
        Reject::Version { .. } => (StatusCode::UPGRADE_REQUIRED, "version"),
        Reject::Malformed => (StatusCode::BAD_REQUEST, "malformed"),
        Reject::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Reject::WrongLength { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_length"),
        Reject::NotFinite => (StatusCode::UNPROCESSABLE_ENTITY, "not_finite"),
        Reject::Absurd { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "absurd"),
        Reject::BadWeight { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "bad_weight"),
        Reject::BadCoverage { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "bad_coverage"),
        Reject::NotAsked => (StatusCode::UNPROCESSABLE_ENTITY, "not_asked"),
        Reject::TokenUnknown => (StatusCode::FORBIDDEN, "token_unknown"),
        Reject::TokenUsed => (StatusCode::FORBIDDEN, "token_used"),
        Reject::TokenExpired => (StatusCode::FORBIDDEN, "token_expired"),
        Reject::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
        Reject::UnknownDevice => (StatusCode::UNAUTHORIZED, "unknown_device"),
        Reject::Revoked => (StatusCode::FORBIDDEN, "revoked"),
        Reject::Superseded { .. } => (StatusCode::CONFLICT, "superseded"),
        Reject::Stale { .. } => (StatusCode::GONE, "stale"),
        Reject::Late { .. } => (StatusCode::GONE, "late"),
        Reject::NotSelected { .. } => (StatusCode::CONFLICT, "not_selected"),
        Reject::Resync { .. } => (StatusCode::CONFLICT, "resync"),
        Reject::Duplicate { .. } => (StatusCode::CONFLICT, "duplicate"),
        Reject::NotYours => (StatusCode::NOT_FOUND, "not_yours"),
        Reject::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
        Reject::TooManySessions { .. } => (StatusCode::TOO_MANY_REQUESTS, "too_many_sessions"),
        Reject::NoSuchEndpoint => (StatusCode::NOT_FOUND, "no_such_endpoint"),
        Reject::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "other"),
    }
}
