//! Keyed random streams: everything random is a pure function of (seed, purpose, round, client).
use crate::id::{ClientId, RoundId};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// What a stream is for. Two purposes never share a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights.
    Init = 1,
    /// Which data go to which client.
    Partition = 2,
    /// Which clients take part in a round.
    Cohort = 3,
    /// Order of the samples in local training.
    Batches = 4,
    /// Starts of k-means.
    Cluster = 5,
    /// Order of the auxiliary samples while the teacher is calibrated.
    Calibrate = 6,
    /// Units dropped in training.
    Dropout = 7,
    /// The validation slice of a client's training data, and its probes.
    Validation = 8,
    /// Order of the samples in head-only adaptation.
    Adapt = 9,
    /// Seeded projections (statistics, prototypes).
    Projection = 10,
    /// The test by which a client chooses its start.
    Choice = 11,
    /// Random conditioning vectors (a control).
    Control = 12,
    /// Specialist trained from scratch.
    Specialist = 13,
    /// The private delta's own phase.
    Private = 14,
    /// Jitter of waits.
    Backoff = 15,
    /// Anything a test needs.
    Test = 99,
}

/// The key of one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Key {
    /// The run's root seed.
    pub seed: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// Round, or 0.
    pub round: u32,
    /// Client, or 0.
    pub client: u32,
    /// Position inside: an epoch, a restart, a layer.
    pub step: u64,
}

impl Key {
    /// A key that depends on the seed and the purpose only.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose, round: 0, client: 0, step: 0 }
    }

    /// The same for one round and client.
    #[must_use]
    pub fn of(self, round: RoundId, client: ClientId) -> Self {
        Self { round: round.0, client: client.0, ..self }
    }

    /// The same at another position (epoch, restart, layer).
    #[must_use]
    pub fn step(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// The stream of this key.
    pub fn stream(self) -> Stream {
        let mut key = [0; 32];
        let words =
            [self.seed, self.purpose as u64, u64::from(self.round) << 32 | u64::from(self.client), self.step];
        for (to, word) in key.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Stream(ChaCha8Rng::from_seed(key))
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Uniform in [0, 1), 24 bits.
    pub fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / 16_777_216.0
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit64(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Uniform in [0, `bound`), without bias.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "an empty range has no number in it");
        let bound = bound as u64;
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let draw = self.0.next_u64();
            if draw < limit {
                return (draw % bound) as usize;
            }
        }
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit64()));
        radius * libm::cos(std::f64::consts::TAU * self.unit64())
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// A random order of 0..n.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_each_part_of_the_key() {
        let key = Key::new(7, Purpose::Test);
        let draw = |k: Key| k.stream().unit64();
        let base = draw(key);
        assert_eq!(base.to_bits(), draw(key).to_bits());
        let others = [
            Key::new(8, Purpose::Test),
            Key::new(7, Purpose::Init),
            key.of(RoundId(1), ClientId(0)),
            key.of(RoundId(0), ClientId(1)),
            key.step(1),
        ];
        assert!(others.iter().all(|&k| draw(k).to_bits() != base.to_bits()));
    }

    #[test]
    fn a_permutation_holds_everything_once() {
        let mut order = Key::new(1, Purpose::Test).stream().permutation(100);
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
