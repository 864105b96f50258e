//! Keeping what happened, however long the disk is full or the database locked: the run waits, and nothing is promised meanwhile.
use crate::ledger::LedgerError;
use crate::stop::stopped;
use std::time::Duration;
use tokio::sync::watch;

/// First pause before another try; doubles with each.
const FIRST: Duration = Duration::from_millis(200);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// Tries until it succeeds or the host is told to stop.
pub(super) async fn insist<T>(
    stop: &mut watch::Receiver<bool>,
    attempt: impl AsyncFn() -> Result<T, LedgerError>,
) -> Result<T, LedgerError> {
    let mut pause = FIRST;
    loop {
        let error = match attempt().await {
            Err(error @ LedgerError::Database(_)) => error,
            other => return other,
        };
        let seconds = pause.as_secs_f32();
        tracing::error!(%error, seconds, "what happened can't be kept: free space on the disk; boards wait, and the host tries again");
        tokio::select! {
            () = stopped(stop) => return Err(error),
            () = tokio::time::sleep(pause) => pause = (2 * pause).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn what_the_database_refuses_is_tried_until_it_is_kept_or_the_host_stops() {
        let (stop, mut stopped) = watch::channel(false);
        let tries = AtomicU32::new(0);
        let third = async || match tries.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(LedgerError::Database(sqlx::Error::PoolTimedOut)),
            n => Ok(n),
        };
        assert_eq!(insist(&mut stopped, third).await.unwrap(), 2);
        let damaged = async || Err::<(), _>(LedgerError::Damaged { what: "x", row: 1 });
        assert!(matches!(insist(&mut stopped, damaged).await, Err(LedgerError::Damaged { .. })));
        stop.send(true).unwrap();
        let never = async || Err::<(), _>(LedgerError::Database(sqlx::Error::PoolTimedOut));
        assert!(matches!(insist(&mut stopped, never).await, Err(LedgerError::Database(_))));
    }
}
