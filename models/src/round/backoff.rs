//! How long to wait before trying again.
use crate::tensor::rng::{Key, Purpose};

/// Exponential back-off with jitter: between half and all of `base·2^tries`, at most `cap`. A pure function of the key,
/// so that boards spread out and tests repeat.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    key: Key,
    tries: u32,
    base_ms: u64,
    cap_ms: u64,
}

impl Backoff {
    /// A back-off keyed by the board and the life of its process.
    pub fn new(seed: u64, base_ms: u64, cap_ms: u64) -> Self {
        Self { key: Key::new(seed, Purpose::Backoff), tries: 0, base_ms, cap_ms }
    }

    /// How long to wait now.
    pub fn next_ms(&mut self) -> u64 {
        let full = self.base_ms.saturating_mul(1 << self.tries.min(20)).min(self.cap_ms).max(1);
        let jitter = self.key.step(u64::from(self.tries)).stream().unit64();
        self.tries = self.tries.saturating_add(1);
        full / 2 + (jitter * (full - full / 2) as f64) as u64
    }

    /// It went well.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}
