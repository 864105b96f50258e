//! Time.
use models::round::Millis;
use std::time::{Duration, Instant};

/// Time as the loop sees it.
pub trait Clock {
    /// Now.
    fn now(&self) -> Millis;
    /// Comes back at that time.
    fn sleep_until(&self, then: Millis);
}

/// The process's own time, from its start: it needs no calendar.
#[derive(Debug)]
pub struct Uptime(Instant);

impl Default for Uptime {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Uptime {
    fn now(&self) -> Millis {
        Millis(self.0.elapsed().as_millis() as u64)
    }

    fn sleep_until(&self, then: Millis) {
        std::thread::sleep(Duration::from_millis(self.now().until(then)));
    }
}
