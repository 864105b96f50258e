//! What the figures are of.
use crate::evaluate::{DualReport, Duties};

/// A column of the table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Column {
    /// Always the client's most frequent class.
    Majority,
    /// Alone, with the budget of a federated client.
    Local,
    /// Alone, with three times the budget.
    LocalLong,
    /// FedAvg's shared model.
    FedAvg,
    /// FedAvg, then head-only epochs.
    FedAvgEa,
    /// FedAvg, then whole-net epochs.
    FedAvgFt,
    /// FedPer, then head-only epochs.
    FedPerEa,
    /// The same with the auxiliary set as one more node.
    FedPerDsEa,
    /// pFedKDH-EA.
    PFedKdhEa,
    /// `cpct`'s shared stream.
    Generalist,
    /// `cpct`'s personal stream.
    Specialist,
    /// `cpct`'s answer.
    Routed,
}

impl Column {
    /// All of them, from left to right.
    pub const ALL: [Self; 12] = [
        Self::Majority,
        Self::Local,
        Self::LocalLong,
        Self::FedAvg,
        Self::FedAvgEa,
        Self::FedAvgFt,
        Self::FedPerEa,
        Self::FedPerDsEa,
        Self::PFedKdhEa,
        Self::Generalist,
        Self::Specialist,
        Self::Routed,
    ];

    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Local => "local",
            Self::LocalLong => "local_long",
            Self::FedAvg => "fedavg",
            Self::FedAvgEa => "fedavg_ea",
            Self::FedAvgFt => "fedavg_ft",
            Self::FedPerEa => "fedper_ea",
            Self::FedPerDsEa => "fedper_ds_ea",
            Self::PFedKdhEa => "pfedkdh_ea",
            Self::Generalist => "generalist",
            Self::Specialist => "specialist",
            Self::Routed => "routed",
        }
    }

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Local => "local",
            Self::LocalLong => "local\n×3",
            Self::FedAvg => "fedavg",
            Self::FedAvgEa => "fedavg\n+EA",
            Self::FedAvgFt => "fedavg\n+ft",
            Self::FedPerEa => "fedper\n+EA",
            Self::FedPerDsEa => "fedper+EA\n+aux node",
            Self::PFedKdhEa => "pfedkdh\n-EA",
            Self::Generalist => "generalist",
            Self::Specialist => "specialist",
            Self::Routed => "routed",
        }
    }
}

/// How the two streams may be combined.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Way {
    /// The personal stream alone.
    Specialist,
    /// The shared stream alone.
    Generalist,
    /// Weighed by the router.
    Routed,
    /// The smoothed prior, without a router.
    PriorOnly,
    /// FedPrism's own rule.
    FedPrismRule,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Specialist, Self::Generalist, Self::Routed, Self::PriorOnly, Self::FedPrismRule];

    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Specialist => "specialist",
            Self::Generalist => "generalist",
            Self::Routed => "routed",
            Self::PriorOnly => "prior_only",
            Self::FedPrismRule => "fedprism_rule",
        }
    }

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Specialist => "specialist",
            Self::Generalist => "generalist",
            Self::Routed => "routed",
            Self::PriorOnly => "smoothed prior,\nno router",
            Self::FedPrismRule => "FedPrism's\nrule",
        }
    }

    /// What a board does this way.
    pub fn of(self, report: &DualReport) -> Duties {
        match self {
            Self::Specialist => report.specialist,
            Self::Generalist => report.generalist,
            Self::Routed => report.routed,
            Self::PriorOnly => report.prior_only,
            Self::FedPrismRule => report.fedprism_rule,
        }
    }
}
