//! What the operator decides about rounds.
use crate::params::UpdateMode;
use crate::wire::Codec;
use serde::{Deserialize, Serialize};

/// What the operator decides about rounds. Ratios round up, never to zero; every wait has an end.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Rounds in all.
    pub rounds: u32,
    /// Share of the live boards picked for a round (ρ).
    pub participation: f32,
    /// Live boards needed before a round opens.
    pub min_boards: u32,
    /// Share of a cohort that must reply for the round to count.
    pub quorum: f32,
    /// Longest a round stays open, in milliseconds.
    pub round_ms: u64,
    /// A board not heard of for this long is not picked.
    pub lease_ms: u64,
    /// How soon a waiting board asks again.
    pub poll_ms: u32,
    /// Pause before a failed round is opened again; doubles with each failure.
    pub retry_ms: u64,
    /// Rounds in a row with too few replies after which the run stalls until the operator restarts it.
    pub max_failures: u32,
    /// Starts of one board's process that are taken note of in an hour.
    pub sessions_per_hour: u32,
    /// The root seed of the run.
    pub seed: u64,
    /// How updates are coded.
    pub codec: Codec,
    /// The most that boards are asked to train: full, last:K, head or bias. A board whose owner allows less trains less.
    #[serde(with = "crate::params::mode::text")]
    pub update: UpdateMode,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rounds: 20,
            participation: 0.5,
            min_boards: 2,
            quorum: 0.5,
            round_ms: 30 * 60_000,
            lease_ms: 10 * 60_000,
            poll_ms: 10_000,
            retry_ms: 10_000,
            max_failures: 5,
            sessions_per_hour: 60,
            seed: 0,
            codec: Codec::Int8Row,
            update: UpdateMode::Full,
        }
    }
}

/// A policy that can't be meant.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field} = {value}: {must}")]
pub struct PolicyError {
    /// Which field.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it must be.
    pub must: &'static str,
}

impl Policy {
    /// All that can't be meant, together.
    ///
    /// # Errors
    /// One [`PolicyError`] for each field.
    pub fn check(&self) -> Result<(), Vec<PolicyError>> {
        let share = |x: f32| x > 0.0 && x <= 1.0;
        let fields: [(&'static str, String, bool, &'static str); 9] = [
            ("rounds", self.rounds.to_string(), self.rounds > 0, "must be at least 1"),
            (
                "participation",
                self.participation.to_string(),
                share(self.participation),
                "must be above 0 and at most 1",
            ),
            ("min_boards", self.min_boards.to_string(), self.min_boards > 0, "must be at least 1"),
            ("quorum", self.quorum.to_string(), share(self.quorum), "must be above 0 and at most 1"),
            ("round_ms", self.round_ms.to_string(), self.round_ms >= 100, "must be at least 100"),
            (
                "lease_ms",
                self.lease_ms.to_string(),
                self.lease_ms >= u64::from(self.poll_ms),
                "must be at least poll_ms",
            ),
            ("poll_ms", self.poll_ms.to_string(), self.poll_ms >= 1, "must be at least 1"),
            ("max_failures", self.max_failures.to_string(), self.max_failures > 0, "must be at least 1"),
            (
                "sessions_per_hour",
                self.sessions_per_hour.to_string(),
                self.sessions_per_hour > 0,
                "must be at least 1",
            ),
        ];
        let wrong: Vec<_> = fields
            .into_iter()
            .filter(|f| !f.2)
            .map(|(field, value, _, must)| PolicyError { field, value, must })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// How many of `live` boards a round picks: ⌈ρ·N⌉, at least one.
    pub fn cohort(&self, live: usize) -> usize {
        ceil_share(self.participation, live)
    }

    /// How many of a cohort must reply.
    pub fn needed(&self, cohort: usize) -> usize {
        ceil_share(self.quorum, cohort)
    }
}

fn ceil_share(share: f32, of: usize) -> usize {
    let exact = f64::from(share) * of as f64;
    // A share such as 0.1 is a little above one tenth in binary: without the slack ⌈0.1·10⌉ would be 2.
    ((exact - 1e-6).ceil().max(1.0) as usize).min(of.max(1))
}
