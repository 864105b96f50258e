//! Time without a clock: boards often start in 1970, so certificates are checked against what is surely past.
use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When this source was written: no host speaks earlier.
const WRITTEN: u64 = 1_796_000_000; // 2026-11-30

/// max(build date, last time said by the host), in seconds since 1970. The board's own clock is not asked: it may stand at
/// 1970 or at 2099.
#[derive(Clone, Debug)]
pub struct HostClock(Arc<AtomicU64>);

impl HostClock {
    /// A clock that knows what the host said last.
    pub fn new(last_heard: u64) -> Self {
        Self(Arc::new(AtomicU64::new(last_heard.max(WRITTEN))))
    }

    /// The host said its time. It never runs back.
    pub fn heard(&self, seconds: u64) {
        self.0.fetch_max(seconds, Ordering::Relaxed);
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TimeProvider for HostClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.seconds())))
    }
}
