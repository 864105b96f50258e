//! A host in this process: what `aggregator serve` runs, and what tests and the demo start.
use crate::clock;
use crate::compute::Workshop;
use crate::config::{ConfigError, Plan, Settings};
use crate::dir::{DirError, HostDir};
use crate::drive::{self, Desk, DriveError, Driver, ReplayError};
use crate::http::{self, Acceptor, Gossip, Shared, Traffic};
use crate::ledger::{Ledger, LedgerError};
use crate::pki::{Authority, PkiError};
use crate::stop::stopped;
use models::round::{Event, Status};
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::{JoinError, JoinHandle};

/// Events that a slow listener may lag behind.
const NEWS: usize = 1024;
/// How often the leaf's age is looked at.
const LEAF_CHECK: Duration = Duration::from_secs(3600);

/// Why a host can't start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its directory.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// Its ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Its past.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Its run.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// Its address.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// A bug.
    #[error("a task of the host ended: {0}")]
    Task(#[from] JoinError),
}

/// Starts hosts.
#[derive(Debug)]
pub enum Server {}

/// A running host. Dropping it leaves the host running; [`Handle::shutdown`] ends it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    news: broadcast::Sender<Event>,
    stop: watch::Sender<bool>,
    driver: Option<JoinHandle<Result<(), DriveError>>>,
    accepting: JoinHandle<()>,
    _lock: File,
}

impl Server {
    /// Starts the host that lives in `dir`. `listen` takes precedence over its configuration.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn start(dir: &HostDir, listen: Option<SocketAddr>) -> Result<Handle, ServeError> {
        let settings = dir.settings()?;
        Self::start_with(dir, &settings, listen).await
    }

    /// The same with a configuration that may differ from the directory's in all but model and method.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn start_with(
        dir: &HostDir,
        settings: &Settings,
        listen: Option<SocketAddr>,
    ) -> Result<Handle, ServeError> {
        let lock = dir.lock()?;
        let plan = Arc::new(settings.check()?);
        let (authority, blobs) = (dir.authority()?, dir.blobs().map_err(DirError::from)?);
        let ledger: Arc<dyn Ledger> = Arc::new(dir.ledger().await?);
        let workshop = Arc::new(
            Workshop::new(Arc::clone(&plan), blobs.clone(), dir.samples()?.as_ref())
                .map_err(ReplayError::from)?,
        );
        let mut run = drive::replay(&*ledger, &workshop).await?;
        drive::reconcile(&mut run, &*ledger).await?;

        let address = listen.unwrap_or(plan.listen);
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        let (stop, stopped) = watch::channel(false);
        let (news, _) = broadcast::channel(NEWS);
        let (desk, asks) = Desk::new();
        let tls = watch_leaf(dir.authority()?, Arc::clone(&plan), stopped.clone())?;
        let limits = plan.limits;
        let shared = Arc::new(Shared {
            plan: Arc::clone(&plan),
            desk,
            ledger: Arc::clone(&ledger),
            blobs,
            authority,
            limits,
            traffic: Traffic::default(),
            gossip: Gossip::default(),
        });
        let driver = Driver::new(run, ledger, workshop, asks, news.clone(), stopped.clone());
        let driver = Some(tokio::spawn(driver.drive()));
        let acceptor = Acceptor { tls, router: http::router(Arc::clone(&shared)), limits, stop: stopped };
        let accepting = tokio::spawn(acceptor.accept(listener));
        tracing::info!(%address, "serving boards");
        Ok(Handle { address, plan, shared, news, stop, driver, accepting, _lock: lock })
    }
}

/// Gives the current TLS configuration, and a new one whenever the leaf was renewed, here or by `aggregator renew-leaf`.
fn watch_leaf(
    authority: Authority,
    plan: Arc<Plan>,
    mut stop: watch::Receiver<bool>,
) -> Result<watch::Receiver<Arc<rustls::ServerConfig>>, ServeError> {
    let leaf = authority.leaf(&plan.names, clock::now())?;
    let mut issued = leaf.issued;
    let (sender, receiver) = watch::channel(http::tls(&authority, leaf)?);
    tokio::spawn(async move {
        while tokio::time::timeout(LEAF_CHECK, stopped(&mut stop)).await.is_err() {
            let renewed = authority.leaf(&plan.names, clock::now()).map_err(ServeError::from);
            match renewed.and_then(|leaf| Ok((leaf.issued, http::tls(&authority, leaf)?))) {
                Ok((when, tls)) if when != issued => {
                    issued = when;
                    let _ = sender.send(tls); // whoever held the receiver has ended
                    tracing::info!("the host's certificate was renewed");
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "the host's certificate can't be renewed"),
            }
        }
    });
    Ok(receiver)
}

impl Handle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Everything that happens from now on, once it is durable.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.news.subscribe()
    }

    /// Where the run is; nothing if it has ended or is too busy to tell.
    pub async fn status(&self) -> Option<Status> {
        self.shared.desk.status().await.ok()
    }

    /// Bytes of updates that came in and of shared parts that went out since the start.
    pub fn traffic(&self) -> (u64, u64) {
        let traffic = &self.shared.traffic;
        (traffic.up.load(Ordering::Relaxed), traffic.down.load(Ordering::Relaxed))
    }

    /// Comes back when the run's task ends by itself, which only a failure makes it do.
    pub async fn failed(&mut self) -> ServeError {
        let Some(driver) = &mut self.driver else { return std::future::pending().await };
        let ended = driver.await;
        self.driver = None;
        match ended {
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
            Ok(Ok(())) => std::future::pending().await,
        }
    }

    /// Lets requests under way finish, then ends. Work that was cut off is done again after the next start.
    ///
    /// # Errors
    /// What had failed before.
    pub async fn shutdown(self) -> Result<(), ServeError> {
        let _ = self.stop.send(true); // both tasks may have ended
        self.accepting.await?;
        match self.driver {
            Some(driver) => Ok(driver.await??),
            None => Ok(()),
        }
    }
}
