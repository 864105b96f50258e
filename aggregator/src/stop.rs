//! How tasks learn that the host stops.
use tokio::sync::watch;

/// Comes back once the host stops, or whoever could say so is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}
