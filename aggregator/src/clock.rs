//! The one place where the host reads a clock.
pub use models::round::Millis;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now, by the system's clock; 0 on a machine whose clock stands before 1970.
pub fn now() -> Millis {
    Millis(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64))
}

/// This much later.
pub fn later(at: Millis, by: Duration) -> Millis {
    at.after(by.as_millis() as u64)
}
