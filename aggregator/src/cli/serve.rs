//! `aggregator serve`.
use crate::server::Server;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  aggregator serve fleet --listen 0.0.0.0:8443\n\nThe address is printed once boards can connect. SPECTRA_LOG=debug says more."
)]
pub(super) struct Serve {
    /// The host's directory
    dir: PathBuf,
    /// Address and port; port 0 takes a free one
    #[arg(long, env = "SPECTRA_LISTEN")]
    listen: Option<SocketAddr>,
}

impl Serve {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let dir = super::existing(self.dir)?;
        let mut host = Server::start(&dir, self.listen).await?;
        super::output::say(&format!("{}\n", host.address()))?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            error = host.failed() => return Err(error.into()),
        }
        tracing::info!("stopping");
        Ok(host.shutdown().await?)
    }
}
