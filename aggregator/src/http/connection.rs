//! Connections: TLS 1.3 with certificates on both sides, a bounded number of them, each with deadlines.
use super::board::Peer;
use super::guests::{Crowd, Place, neighbourhood};
use crate::pki::{Authority, Leaf, fingerprint_of};
use crate::stop::stopped;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use models::id::Hash;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How much and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Boards' connections at a time; more wait, and not for long.
    pub(crate) connections: usize,
    /// Connections without a certificate, from one address.
    pub(crate) guests: usize,
    /// Connections without a certificate, or whose handshake is under way, from everywhere.
    pub(crate) reserve: usize,
    /// Connections of one board.
    pub(crate) each: usize,
    /// For the handshake.
    pub(crate) handshake: Duration,
    /// For each head of a request.
    pub(crate) head: Duration,
    /// For the body of a message.
    pub(crate) message: Duration,
    /// For the body of an update.
    pub(crate) update: Duration,
    /// A connection's whole life.
    pub(crate) life: Duration,
    /// For what is under way when the host stops.
    pub(crate) farewell: Duration,
}

/// What TLS speaks: 1.3 alone, this leaf, and certificates of this authority, which only enrolment can do without.
///
/// # Errors
/// [`rustls::Error`] if the leaf's key or the authority's certificate can't be used.
pub(crate) fn tls(authority: &Authority, leaf: Leaf) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone())?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(|e| rustls::Error::General(e.to_string()))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients)
        // The authority goes along: an enrolling board knows it by its pin alone.
        .with_single_cert(vec![leaf.certificate, authority.certificate().clone()], leaf.key)?;
    Ok(Arc::new(config))
}

/// Who may be connected.
#[derive(Clone, Debug)]
struct Rooms {
    guests: Arc<Crowd<IpAddr>>,
    boards: Arc<Crowd<Hash>>,
    seats: Arc<Semaphore>,
}

/// Where a connection is.
enum Room {
    /// A stranger: it can do nothing but enrol.
    Guest(#[expect(dead_code, reason = "kept for its drop")] Place<IpAddr>),
    /// A board, by its key.
    Board(
        #[expect(dead_code, reason = "kept for its drop")] Place<Hash>,
        #[expect(dead_code, reason = "kept for its drop")] OwnedSemaphorePermit,
    ),
}

impl Rooms {
    fn new(limits: Limits) -> Self {
        Self {
            guests: Crowd::new(limits.guests, limits.reserve),
            boards: Crowd::new(limits.each, usize::MAX),
            seats: Arc::new(Semaphore::new(limits.connections)),
        }
    }

    /// From the guests' room to the boards', for those who have shown a key. The guest's place is kept until a seat is free.
    async fn settle(&self, guest: Place<IpAddr>, key: Option<Hash>, patience: Duration) -> Option<Room> {
        let Some(key) = key else { return Some(Room::Guest(guest)) };
        let place = self.boards.enter(key)?;
        let seat = tokio::time::timeout(patience, Arc::clone(&self.seats).acquire_owned()).await;
        Some(Room::Board(place, seat.ok()?.ok()?))
    }
}

/// What every connection needs.
#[derive(Clone, Debug)]
pub(crate) struct Acceptor {
    pub(crate) tls: watch::Receiver<Arc<ServerConfig>>,
    pub(crate) router: Router,
    pub(crate) limits: Limits,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Acceptor {
    /// Takes connections until told to stop, then lets those under way finish.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let mut stop = self.stop.clone();
        let rooms = Rooms::new(self.limits);
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            tokio::select! {
                () = stopped(&mut stop) => break,
                socket = listener.accept() => match socket {
                    Ok((socket, from)) => match rooms.guests.enter(neighbourhood(from.ip())) {
                        Some(guest) => drop(connections.spawn(self.clone().converse(socket, guest, rooms.clone()))),
                        None => tracing::debug!(%from, "too many connections without a certificate"),
                    },
                    // Out of file handles, most likely: waiting is all that helps.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
            }
        }
        drop(listener);
        let all = async { while connections.join_next().await.is_some() {} };
        drop(tokio::time::timeout(self.limits.farewell, all).await); // whoever is left is cut off
    }

    async fn converse(self, socket: TcpStream, guest: Place<IpAddr>, rooms: Rooms) {
        let Self { tls, router, limits, stop } = self;
        drop(socket.set_nodelay(true)); // only a matter of speed
        let tls = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        let stream = match tokio::time::timeout(limits.handshake, tls.accept(socket)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "no TLS"),
            Err(_) => return tracing::debug!("no TLS in time"),
        };
        let key = stream.get_ref().1.peer_certificates().and_then(|chain| fingerprint_of(chain.first()?));
        let Some(room) = rooms.settle(guest, key, limits.head).await else {
            return tracing::debug!("too many connections of one board, or of all");
        };
        let life = match room {
            Room::Guest(_) => limits.head + limits.message,
            Room::Board(..) => limits.life,
        };
        if tokio::time::timeout(life, serve(stream, key, router, limits, stop)).await.is_err() {
            tracing::debug!("a connection outlived its time");
        }
    }
}

async fn serve(
    stream: TlsStream<TcpStream>,
    key: Option<Hash>,
    router: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router.layer(Extension(Peer(key))));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(32 * 1024);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
