//! Keeping what happened, however long the disk is full or the database locked: the run waits, and nothing is promised meanwhile.
use crate::ledger::{Answer, LedgerError};
use crate::stop::stopped;
use std::time::Duration;
use tokio::sync::watch;

/// First pause before another try; doubles with each.
const FIRST: Duration = Duration::from_millis(200);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// Tries until it succeeds or the host is told to stop.
pub(super) async fn insist<'a, T>(
    stop: &mut watch::Receiver<bool>,
    attempt: impl Fn() -> Answer<'a, T>,
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
        let answer = |told| -> Answer<'_, u32> { Box::pin(std::future::ready(told)) };
        let locked = || Err(LedgerError::Database(sqlx::Error::PoolTimedOut));
        let third = || match tries.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => answer(locked()),
            n => answer(Ok(n)),
        };
        assert_eq!(insist(&mut stopped, third).await.unwrap(), 2);
        let damaged = || answer(Err(LedgerError::Damaged { what: "x", row: 1 }));
        assert!(matches!(insist(&mut stopped, damaged).await, Err(LedgerError::Damaged { .. })));
        stop.send(true).unwrap();
        let never = || answer(locked());
        assert!(matches!(insist(&mut stopped, never).await, Err(LedgerError::Database(_))));
    }
}
