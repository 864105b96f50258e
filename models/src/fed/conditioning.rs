//! What a board's network is conditioned on (methods §6), and where that enters the weights.
use super::{FedError, Site};
use crate::nn::Trainer;
use crate::params::{ModelSpec, Params, Part};
use crate::stats::{self, Normaliser, Samples, Statistic};
use crate::tensor::rng::{Key, Purpose};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The choice of a statistic.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conditioning {
    /// Which.
    pub kind: Statistic,
    /// True cluster of each client, for the control `cluster_id`.
    pub clusters: Vec<u16>,
}

impl Conditioning {
    /// The normaliser that the host publishes, from its auxiliary data; nothing where none is needed.
    pub fn normaliser(&self, site: Site, auxiliary: Option<&mut dyn Trainer>) -> Option<Normaliser> {
        let auxiliary = auxiliary.filter(|_| self.kind.is_measured())?;
        let width = auxiliary.spec().card().statistics;
        Some(stats::public(self.kind, &Samples::of(auxiliary), width, Key::new(site.seed, Purpose::Control)))
    }

    /// What is measured on a board, once: it stays there.
    pub fn measured(&self, known: Option<&Vec<f32>>, site: Site, trainer: &dyn Trainer) -> Option<Vec<f32>> {
        let measure =
            || stats::measured(self.kind, &Samples::of(trainer), trainer.spec().card().statistics, site.seed);
        self.kind.is_measured().then(|| known.cloned().unwrap_or_else(measure))
    }

    /// The vector a board feeds: its normalised statistic, a control, or zeros.
    pub fn vector(
        &self,
        measured: Option<&Vec<f32>>,
        normaliser: Option<&Normaliser>,
        site: Site,
        spec: &ModelSpec,
    ) -> Vec<f32> {
        let width = spec.card().statistics;
        match (self.kind, measured, normaliser) {
            (Statistic::V1 | Statistic::V2, Some(s), Some(n)) => n.apply(s),
            (Statistic::Random, ..) => stats::random(width, site.seed, site.client),
            (Statistic::ClusterId, ..) => {
                let cluster = self.clusters.get(site.client.0 as usize).copied().unwrap_or(u16::MAX);
                stats::one_hot(width, cluster.into())
            }
            _ => vec![0.0; width],
        }
    }

    /// Refuses a statistic that the network takes no input for.
    ///
    /// # Errors
    /// [`FedError::Hyper`].
    pub fn check(&self, spec: &ModelSpec) -> Result<(), FedError> {
        let must = "needs a model with a conditioning input (statistics > 0)";
        let lacks = self.kind != Statistic::None && spec.card().statistics == 0;
        if lacks {
            return Err(FedError::Hyper { name: "statistics", value: format!("{:?}", self.kind), must });
        }
        Ok(())
    }
}

/// The columns of the first linear layer that the conditioning vector feeds: its last ones.
#[derive(Clone, Debug)]
pub struct Columns {
    weight: Range<usize>,
    bias: Range<usize>,
    width: usize,
    fed: usize,
}

impl Columns {
    /// Where they are; nothing for a network without such an input.
    pub fn of(spec: &ModelSpec) -> Option<Self> {
        let fed = spec.card().statistics;
        let weight = spec.entries().iter().find(|e| e.part == Part::Backbone && e.shape.rank() == 2)?;
        let bias = spec.entry(&weight.name.replace("weight", "bias"))?;
        let width = weight.shape.extents()[1];
        (fed > 0).then(|| Self { weight: weight.range.clone(), bias: bias.range.clone(), width, fed })
    }

    /// Their places in the flat buffer, one range per row.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.weight.clone().step_by(self.width).map(|row| row + self.width - self.fed..row + self.width)
    }

    /// The model with `U s` added to the bias: it answers without the vector as the model did with it. Training it on a zero vector
    /// leaves the columns as they are, bit for bit, and their update says nothing.
    pub fn folded(&self, model: &Params, vector: &[f32]) -> Params {
        let mut out = model.clone();
        for (row, at) in self.ranges().zip(self.bias.clone()) {
            let moved: f32 = model.values()[row].iter().zip(vector).map(|(u, s)| u * s).sum();
            out.values_mut()[at] += moved;
        }
        out
    }
}
