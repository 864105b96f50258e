//! What a file holds: a graph, its numbers, and what it says about itself.
use crate::metadata::{Metadata, MetadataError};
use models::nn::Graph;
use models::params::{ModelSpec, SpecError};

/// A graph with its numbers.
#[derive(Clone, PartialEq)]
pub struct Network {
    /// The graph.
    pub graph: Graph,
    /// Its parameters, laid out as [`Graph::entries`] says.
    pub values: Vec<f32>,
    /// Names of its outputs, one for each of [`Graph::outputs`].
    pub outputs: Vec<String>,
    /// What it says about itself.
    pub metadata: Metadata,
}

/// Why a graph is not a model that trains.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// What it says about itself does not fit the graph.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// Its parameters can't be laid out.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Network {
    /// The specification under which this network can be trained and federated: its last linear layer is the head.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn spec(&self) -> Result<ModelSpec, NetworkError> {
        let input = self.graph.input();
        let classes = self.graph.outputs().first().map_or(0, |&id| self.graph.node(id).dims.len());
        let card = self.metadata.card([input.channels, input.height, input.width], classes)?;
        Ok(self.graph.spec(card)?)
    }
}

impl std::fmt::Debug for Network {
    /// Never prints the values: they may be private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (nodes, values) = (self.graph.nodes().len(), self.values.len());
        write!(f, "Network({}, {nodes} nodes, {values} values)", self.metadata.arch)
    }
}
