//! The host's decomposition of a model (FedPrism §4.5): a global part, K cluster parts, and who is assigned to which.
use super::average::{self, Node};
use super::cluster::{self, Assignments, Clustering};
use super::{Extent, FedError, Kept, Replies, SharedPart, Update};
use crate::id::ClientId;
use crate::params::{Scope, Values, Weight};
use serde::{Deserialize, Serialize};

/// The parts. Until the first clustering every assignment is uniform and every cluster part equals the global one, so none
/// is kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound = "")]
pub struct Prism<S: Scope> {
    /// The global part (w_G, θ_G).
    pub global: Kept<S>,
    /// The cluster parts (C_k).
    pub clusters: Vec<Kept<S>>,
    /// Prototypes, centroids and π.
    pub assignments: Assignments,
}

impl<S: Scope> Prism<S> {
    /// Before the first round.
    pub fn new(global: Values<S>) -> Self {
        Self { global: global.into(), clusters: Vec::new(), assignments: Assignments::default() }
    }

    /// The global part and then the cluster parts.
    pub fn parts(&self, extent: Extent) -> Vec<SharedPart<'_>> {
        std::iter::once(&self.global).chain(&self.clusters).map(|p| SharedPart::of(extent, p)).collect()
    }

    /// Whether the host knows what this client is like.
    pub fn knows(&self, client: ClientId) -> bool {
        self.assignments.of(client).is_some()
    }

    /// The client's top-m clusters with their weights; none before the first clustering.
    pub fn mix_of(&self, client: ClientId, m: usize) -> Vec<(usize, f32)> {
        let k = self.clusters.len();
        if k == 0 {
            return Vec::new();
        }
        let shares: Vec<f32> = (0..k).map(|c| self.assignments.share(client, c, k)).collect();
        cluster::top(&shares, m)
    }

    /// What the client starts from when it takes its mix: the global part before the first clustering.
    pub fn start_of(&self, client: ClientId, m: usize) -> Values<S> {
        let (chosen, weights): (Vec<usize>, Vec<f32>) = self.mix_of(client, m).into_iter().unzip();
        let parts: Vec<Values<S>> = chosen.into_iter().map(|k| self.clusters[k].0.clone()).collect();
        super::mix::mixed(&parts, &weights).unwrap_or_else(|| self.global.0.clone())
    }

    /// The next parts: `w_G += Σ n_i Δ_i / Σ n_i`; `C_k += Σ π_ik n_i Δ_i / Σ π_ik n_i`, unchanged where nobody is assigned.
    ///
    /// # Errors
    /// [`FedError::EmptyCohort`]; whatever a reply's reading gives.
    pub fn folded<U>(
        &self,
        replies: &mut dyn Replies<U>,
        update: impl Fn(&U) -> Option<&Update<S>>,
        own: Option<Node<'_, S>>,
    ) -> Result<Self, FedError> {
        let global = average::by_samples(&self.global.0, replies, &update, own)?.into();
        let k = self.clusters.len();
        let mut clusters = Vec::with_capacity(k);
        for (index, part) in self.clusters.iter().enumerate() {
            let weigh = |id, n| Weight::share(self.assignments.share(id, index, k), n);
            let next = average::weighted(&part.0, replies, &update, own, weigh)?;
            clusters.push(next.map_or_else(|| part.clone(), Kept::from));
        }
        Ok(Self { global, clusters, assignments: self.assignments.clone() })
    }

    /// Clusters the clients again; the first time, the cluster parts start as copies of the global one.
    pub fn recluster(&mut self, how: &Clustering) {
        self.assignments.recluster(how);
        if self.clusters.is_empty() && self.assignments.known() >= how.clusters {
            self.clusters = vec![self.global.clone(); how.clusters];
        }
    }
}
