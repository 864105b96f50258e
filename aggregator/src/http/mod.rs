//! The protocol over HTTP: one handler for each row of [`models::wire::ENDPOINTS`], nothing decided here.
mod board;
mod body;
mod connection;
mod gossip;
mod guests;
mod reject;

pub(crate) use connection::{Acceptor, Limits, tls};
pub(crate) use gossip::Gossip;
pub(crate) use reject::Refusal;

use crate::blobs::Blobs;
use crate::clock;
use crate::config::Plan;
use crate::crash;
use crate::drive::{Desk, Outcome, Who};
use crate::ledger::{Admission, Device, Enrolment, Ledger};
use crate::pki::{Authority, BoardKey};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use axum::{Router, response::Response};
use board::Board;
use body::{Message, Said, Sealed};
use models::id::Hash;
use models::round::{Reply, Request};
use models::wire::{self, Answer, Decline, Endpoint, EnrollRequest, Enrolled, Health, Poll, Receipt, Reject};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of updates and blobs that crossed the wire since the start.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
}

/// What handlers need.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) desk: Desk,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) blobs: Blobs,
    pub(crate) authority: Authority,
    pub(crate) limits: Limits,
    pub(crate) traffic: Traffic,
    pub(crate) gossip: Gossip,
}

type App = State<Arc<Shared>>;
type Answered<T> = Result<Said<T>, Refusal>;

/// The endpoints.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(Endpoint::ENROLL.path, post(enroll))
        .route(Endpoint::POLL.path, post(poll))
        .route(Endpoint::MODEL.path, get(model))
        .route(Endpoint::BLOB.path, get(blob))
        .route(Endpoint::UPDATE.path, put(update))
        .route(Endpoint::DECLINE.path, post(decline))
        .route(Endpoint::HEALTH.path, post(health))
        .fallback(|| async { Refusal(Reject::NoSuchEndpoint) })
        .method_not_allowed_fallback(|| async { Refusal(Reject::NoSuchEndpoint) })
        .layer(from_fn_with_state(Arc::clone(&shared), board::identify))
        .layer(DefaultBodyLimit::disable()) // every body has its own cap, in `body`
        .with_state(shared)
}

async fn enroll(State(app): App, Message(wish): Message<EnrollRequest>) -> Answered<Enrolled> {
    let key = BoardKey::from_request(&wish.request).map_err(|_| Reject::BadRequest)?;
    let name = wish.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let enrolment =
        Enrolment { token: Hash::of(&wish.secret), key: key.fingerprint(), name, at: clock::now() };
    let device = admitted(app.ledger.enrol(enrolment).await?)?;
    app.desk.enrolled(device.id).await?;
    let certificate = app.authority.certify(&key, device.id, clock::now())?;
    crash::here("enrolled-before-answer");
    Ok(Said(Enrolled {
        client: device.id,
        certificate: wire::Bytes::from_slice(&certificate).map_err(|_| Reject::Internal)?,
        authority: wire::Bytes::from_slice(app.authority.certificate()).map_err(|_| Reject::Internal)?,
    }))
}

fn admitted(admission: Admission) -> Result<Device, Reject> {
    match admission {
        Admission::In(device) => Ok(device),
        Admission::UnknownToken => Err(Reject::TokenUnknown),
        Admission::UsedToken => Err(Reject::TokenUsed),
        Admission::ExpiredToken => Err(Reject::TokenExpired),
        Admission::RevokedKey => Err(Reject::Revoked),
    }
}

async fn poll(State(app): App, Board(device): Board, Message(poll): Message<Poll>) -> Answered<Answer> {
    match asked(&app, &device, Request::Poll(poll)).await? {
        Reply::Answer(answer) => Ok(Said(answer)),
        Reply::Receipt(_) => Err(Reject::Internal.into()),
    }
}

async fn decline(
    State(app): App,
    Board(device): Board,
    Message(decline): Message<Decline>,
) -> Answered<Receipt> {
    receipt(&asked(&app, &device, Request::Decline(decline)).await?)
}

async fn health(
    State(app): App,
    Board(device): Board,
    Message(health): Message<Health>,
) -> Answered<Receipt> {
    if !(-1..=1).contains(&health.compared) || health.route_decile > 10 {
        return Err(Reject::Malformed.into());
    }
    app.ledger.felt(device.id, health).await?;
    Ok(Said(Receipt::Noted))
}

async fn model(State(app): App, _: Board) -> Said<models::params::ModelCard> {
    Said(app.plan.spec.card().clone())
}

async fn blob(State(app): App, Board(device): Board, Path(name): Path<String>) -> Result<Response, Refusal> {
    let hash = Hash::from_hex(&name).ok_or(Reject::NotYours)?;
    if let Some(network) = app.plan.network.as_ref().filter(|_| app.plan.spec.card().imported() == Some(hash))
    {
        app.traffic.down.fetch_add(network.len() as u64, Ordering::Relaxed);
        return Ok(([(CONTENT_TYPE, body::OCTETS)], network.to_vec()).into_response());
    }
    if !app.desk.may_read(device.id, hash).await? {
        return Err(Reject::NotYours.into());
    }
    let bytes = app.blobs.get(hash, 4 * app.plan.spec.len()).await?;
    app.traffic.down.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(([(CONTENT_TYPE, body::OCTETS)], bytes).into_response())
}

async fn update(State(app): App, Board(device): Board, sealed: Sealed) -> Answered<Receipt> {
    app.traffic.up.fetch_add(sealed.bytes.len() as u64, Ordering::Relaxed);
    let request = Request::Submit { session: sealed.session, round: sealed.round, update: sealed.hash };
    let outcome = match app.desk.handle(Who::from(&device), request, false).await? {
        Outcome::Reply(reply) => (*reply)?,
        Outcome::StoreFirst => {
            crash::here("update-before-blob");
            app.blobs.put(sealed.bytes).await?;
            crash::here("update-after-blob");
            replied(app.desk.handle(Who::from(&device), request, true).await?)?
        }
    };
    receipt(&outcome)
}

async fn asked(app: &Shared, device: &Device, request: Request) -> Result<Reply, Reject> {
    replied(app.desk.handle(Who::from(device), request, true).await?)
}

fn replied(outcome: Outcome) -> Result<Reply, Reject> {
    match outcome {
        Outcome::Reply(reply) => *reply,
        Outcome::StoreFirst => Err(Reject::Internal),
    }
}

fn receipt(reply: &Reply) -> Answered<Receipt> {
    match *reply {
        Reply::Receipt(receipt) => Ok(Said(receipt)),
        Reply::Answer(_) => Err(Reject::Internal.into()),
    }
}
