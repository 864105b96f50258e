//! A real host in this process: TLS, ledger and blobs in a directory.
use crate::bench::{Bench, card};
use aggregator::config::{MethodSettings, ModelSettings, ServerSettings, Settings};
use aggregator::dir::HostDir;
use aggregator::server::{Handle, Server};
use anyhow::Context;
use models::fed::{Method, cpct};
use models::round::Event;
use models::wire::Token;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::broadcast::error::RecvError;

/// A board has this long to use its token.
const TOKEN_LIFE: Duration = Duration::from_secs(3600);

/// A host that serves boards.
#[derive(Debug)]
pub(super) struct Host {
    runtime: Runtime,
    dir: HostDir,
    handle: Handle,
}

impl Host {
    /// Makes a host in `dir` and lets it listen on a free port of the loopback.
    pub(super) fn start(dir: &Path, bench: &Bench<'_>, hyper: &cpct::Hyper) -> anyhow::Result<Self> {
        let runtime = Runtime::new().context("no threads for the host")?;
        let settings = settings(bench, hyper)?;
        let (dir, handle) = runtime.block_on(async {
            let dir = HostDir::create(dir, &settings, Some(&bench.world.auxiliary)).await?;
            let handle = Server::start(&dir, None).await?;
            anyhow::Ok((dir, handle))
        })?;
        Ok(Self { runtime, dir, handle })
    }

    /// Where boards find it.
    pub(super) fn url(&self) -> String {
        format!("https://{}", self.handle.address())
    }

    /// A one-time token.
    pub(super) fn token(&self) -> anyhow::Result<Token> {
        Ok(self.runtime.block_on(self.dir.token(None, TOKEN_LIFE))?)
    }

    /// Tells everything that happens from now on, until the host stops or nobody listens.
    pub(super) fn listen(&self, tell: impl Fn(Event) -> bool + Send + 'static) {
        let mut news = self.handle.subscribe();
        std::thread::spawn(move || {
            loop {
                let heard = match news.blocking_recv() {
                    Ok(event) => tell(event),
                    Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => false,
                };
                if !heard {
                    return;
                }
            }
        });
    }

    /// Bytes of updates that came in and of shared parts that went out so far.
    pub(super) fn traffic(&self) -> (u64, u64) {
        self.handle.traffic()
    }

    /// Lets requests under way finish, then stops.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        Ok(self.runtime.block_on(self.handle.shutdown())?)
    }
}

fn settings(bench: &Bench<'_>, hyper: &cpct::Hyper) -> anyhow::Result<Settings> {
    Ok(Settings {
        server: ServerSettings { listen: "127.0.0.1:0".into(), ..ServerSettings::default() },
        model: ModelSettings::from(&card()),
        rounds: bench.policy.clone(),
        method: MethodSettings { name: cpct::Cpct::NAME.into(), hyper: toml::Table::try_from(hyper)? },
        ..Settings::default()
    })
}
