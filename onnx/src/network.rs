//! What a file holds: a graph, its numbers, and what it says about itself.
use crate::metadata::{Metadata, MetadataError};
use crate::statistics;
use models::nn::graph::Node;
use models::nn::{Graph, Op};
use models::params::{ModelCard, ModelSpec, SpecError};

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
    /// It does not answer one number per class.
    #[error("the network answers {got}, not one number per class; flatten its output")]
    NoClasses {
        /// Extents of its answer.
        got: String,
    },
    /// Statistics would leave a board with its updates.
    #[error(
        "{why}, but statistics may only be joined behind the input of the first fully connected layer, which has a bias: `fc(cat([x, statistics], 1))`; elsewhere they could be read from a board's updates"
    )]
    Statistics {
        /// Where they enter.
        why: String,
    },
    /// Its parameters can't be laid out.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Network {
    /// The network up to its logits: without a final softmax and its logarithm, which the loss has, and with one output.
    ///
    /// # Errors
    /// [`NetworkError::NoClasses`] if its first output is no vector.
    pub fn logits(&self) -> Result<Self, NetworkError> {
        let first = self.graph.outputs().first().copied();
        let mut id = first.ok_or_else(|| NetworkError::NoClasses { got: "nothing".into() })?;
        while let Node { op: Op::Softmax | Op::Log, inputs, .. } = self.graph.node(id) {
            id = inputs[0];
        }
        let node = self.graph.node(id);
        if !node.dims.is_flat() {
            return Err(NetworkError::NoClasses { got: node.dims.to_string() });
        }
        let outputs = vec!["logits".into()];
        Ok(Self { graph: self.graph.answering(&[id]), outputs, ..self.clone() })
    }

    /// The specification of a card that describes this network.
    ///
    /// # Errors
    /// [`NetworkError`] if it describes another one.
    pub fn spec_of(&self, card: &ModelCard) -> Result<ModelSpec, NetworkError> {
        let input = self.graph.input();
        let classes = self.graph.outputs().first().map_or(0, |&id| self.graph.node(id).dims.len());
        let own = ([input.channels, input.height, input.width], classes, self.graph.statistics());
        let told = (card.input, card.labels.len(), card.statistics);
        if own == told {
            return self.laid_out(card.clone());
        }
        let spelled = |(input, classes, statistics): ([usize; 3], usize, usize)| {
            format!("{input:?}, {classes} classes, {statistics} statistics")
        };
        let (needs, got) = (spelled(own), spelled(told));
        Err(SpecError::Unsuitable { arch: card.arch.clone(), needs, got }.into())
    }

    /// The specification under which this network can be trained and federated: its last linear layer is the head.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn spec(&self) -> Result<ModelSpec, NetworkError> {
        let input = self.graph.input();
        let classes = self.graph.outputs().first().map_or(0, |&id| self.graph.node(id).dims.len());
        let mut card = self.metadata.card([input.channels, input.height, input.width], classes)?;
        card.statistics = self.graph.statistics();
        self.laid_out(card)
    }

    fn laid_out(&self, card: ModelCard) -> Result<ModelSpec, NetworkError> {
        self.check_statistics()?;
        Ok(self.graph.spec(card)?)
    }

    /// Checks that statistics enter where they can be kept from leaving a board.
    pub(crate) fn check_statistics(&self) -> Result<(), NetworkError> {
        statistics::check(&self.graph).map_err(|why| NetworkError::Statistics { why })
    }
}

impl std::fmt::Debug for Network {
    /// Never prints the values: they may be private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (nodes, values) = (self.graph.nodes().len(), self.values.len());
        write!(f, "Network({}, {nodes} nodes, {values} values)", self.metadata.arch)
    }
}
