//! Places where a test may end the process as a power cut would: at once, with nothing flushed and nobody told.
//!
//! `SPECTRA_CRASH_AT=name` or `name:n` (the n-th time it is passed). Compiled in where debug assertions are, or with the
//! feature `crash-points`; elsewhere a place is nothing at all.

/// Every place, in the order in which a round passes them.
pub const POINTS: [&str; 12] = [
    "enrolled-before-answer",
    "update-before-blob",
    "update-after-blob",
    "before-commit",
    "after-commit",
    "aggregate-begin",
    "aggregate-middle",
    "aggregate-end",
    "publish-state-stored",
    "publish-parts-stored",
    "folded-before-forgetting",
    "finish-end",
];

/// Passes the place called `point`.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub fn here(point: &'static str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    static WANTED: LazyLock<Option<(String, u32)>> = LazyLock::new(wanted);
    static PASSED: AtomicU32 = AtomicU32::new(0);
    debug_assert!(POINTS.contains(&point), "{point} is not in the table");
    if let Some((name, times)) = &*WANTED
        && name == point
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *times
    {
        eprintln!("crash point {point} passed {times} times: aborting");
        std::process::abort();
    }
}

#[cfg(any(debug_assertions, feature = "crash-points"))]
fn wanted() -> Option<(String, u32)> {
    let text = std::env::var("SPECTRA_CRASH_AT").ok()?;
    let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
    Some((name.to_owned(), times.parse().unwrap_or(1)))
}

/// Passes a place that isn't compiled in.
#[cfg(not(any(debug_assertions, feature = "crash-points")))]
#[inline(always)]
pub fn here(_: &'static str) {}
