//! The figures of a demonstration: per client, means, over seeds; as text and as JSON.
mod column;
mod json;
mod text;

pub use column::{Column, Way};
pub use json::summary;
pub use text::{over_seeds, render};

use crate::evaluate::DualReport;
use crate::measure::{mean, worst_tenth};
use std::collections::BTreeMap;

/// One seed's figures.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// `mixed` or `labels`.
    pub world: &'static str,
    /// The seed.
    pub seed: u64,
    /// Rounds.
    pub rounds: u32,
    /// Name, mounting and training images of every board that trained.
    pub boards: Vec<String>,
    /// The same of those that joined late.
    pub late: Vec<String>,
    /// Own accuracy of each board that trained, by column.
    pub accuracy: BTreeMap<Column, Vec<Option<f64>>>,
    /// FedPer+EA on the late boards.
    pub late_fedper_ea: Vec<Option<f64>>,
    /// `cpct` on the boards that trained.
    pub dual: Vec<DualReport>,
    /// `cpct` on the late boards.
    pub late_dual: Vec<DualReport>,
    /// Bytes that a board sends in a round it takes part in.
    pub bytes_up: f64,
    /// Bytes that it receives.
    pub bytes_down: f64,
    /// Seconds in all.
    pub wall_s: f64,
    /// Engines that ran the exported graphs.
    pub engines: Vec<String>,
}

impl Report {
    /// Mean over clients of a column.
    pub fn mean(&self, column: Column) -> Option<f64> {
        mean(self.values(column))
    }

    /// Mean of the worst tenth of clients of a column.
    pub fn worst(&self, column: Column) -> Option<f64> {
        worst_tenth(&self.values(column).collect::<Vec<_>>())
    }

    /// Mean over clients of one way's accuracy on unseen classes.
    pub fn unseen(&self, way: Way) -> Option<f64> {
        mean(self.dual.iter().filter_map(|d| way.of(d).unseen))
    }

    fn values(&self, column: Column) -> impl Iterator<Item = f64> + '_ {
        self.accuracy.get(&column).into_iter().flatten().filter_map(|a| *a)
    }

    /// Mean over clients of the router's AUROC.
    pub fn auroc(&self) -> Option<f64> {
        mean(self.dual.iter().filter_map(|d| d.auroc))
    }
}

#[cfg(test)]
mod tests;
