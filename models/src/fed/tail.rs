//! Tail averaging (science §5 step 6): what is published is the mean over the last quarter of the rounds.
use super::Kept;
use crate::id::RoundId;
use crate::params::{Scope, Values};
use serde::{Deserialize, Serialize};

/// Whether a round belongs to the last `share` of `rounds`; a share above zero always holds the last round.
///
/// ```
/// use models::{fed::tail::in_tail, id::RoundId};
/// let tail: Vec<u32> = (0..20).filter(|&t| in_tail(RoundId(t), 20, 0.25)).collect();
/// assert_eq!(tail, [15, 16, 17, 18, 19]);
/// assert!(!in_tail(RoundId(19), 20, 0.0));
/// ```
pub fn in_tail(round: RoundId, rounds: u32, share: f32) -> bool {
    let length = libm::ceil(f64::from(share) * f64::from(rounds)) as u32;
    round.0 >= rounds.saturating_sub(length) && length > 0
}

/// A running mean of one part. Equal values give exactly that value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound = "")]
pub struct TailMean<S: Scope> {
    count: u32,
    mean: Kept<S>,
}

impl<S: Scope> TailMean<S> {
    /// The mean of `mean` and one more value: `m + (x − m)/n`.
    #[must_use]
    pub fn with(mean: Option<&Self>, value: &Values<S>) -> Self {
        let Some(Self { count, mean }) = mean else {
            return Self { count: 1, mean: value.clone().into() };
        };
        let count = count + 1;
        let own_share = 1.0 - 1.0 / count as f32;
        Self { count, mean: mean.mixed_with(value, own_share).into() }
    }

    /// The mean.
    pub fn mean(&self) -> &Values<S> {
        &self.mean
    }
}
