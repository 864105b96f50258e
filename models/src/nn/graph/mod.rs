//! A network as a small graph: nodes in topological order, each an operation on earlier nodes.
//!
//! A graph knows shapes and where its parameters lie in the flat buffer; it holds no numbers. How it is run is `engine`'s.
mod builder;
mod op;

pub use builder::{GraphBuilder, GraphError};
pub use op::{Conv2d, Curve, Op, Window};

use crate::params::{EntryDecl, ModelCard, ModelSpec, Part, Role, SpecError};
use crate::tensor::Shape;
use std::ops::Range;

/// Extents of one sample of a value. A flat vector of `n` numbers has `n` channels of one pixel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Dims {
    /// Channels.
    pub channels: usize,
    /// Rows; 1 for signals in time.
    pub height: usize,
    /// Columns, or points in time.
    pub width: usize,
}

impl Dims {
    /// A vector.
    pub fn flat(n: usize) -> Self {
        Self { channels: n, height: 1, width: 1 }
    }

    /// Numbers in it.
    pub fn len(self) -> usize {
        self.channels * self.pixels()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Pixels of one channel.
    pub fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Whether it is a vector.
    pub fn is_flat(self) -> bool {
        self.pixels() == 1
    }
}

impl std::fmt::Display for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}×{}", self.channels, self.height, self.width)
    }
}

/// Index of a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub usize);

/// One operation and what it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, a prefix of the names of its parameters.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// What it reads: earlier nodes.
    pub inputs: Vec<NodeId>,
    /// Extents of its value.
    pub dims: Dims,
    /// Its parameters, as indices into [`Graph::entries`]: weight, bias, then running mean and variance.
    pub entries: Vec<usize>,
}

/// One array of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphEntry {
    /// `conv1.weight`.
    pub name: String,
    /// Extents, as PyTorch and ONNX have them.
    pub shape: Shape,
    /// Trainable or statistic.
    pub role: Role,
    /// Place in the flat buffer.
    pub range: Range<usize>,
}

/// A network.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    entries: Vec<GraphEntry>,
    outputs: Vec<NodeId>,
}

impl Graph {
    /// All nodes, in topological order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    ///
    /// # Panics
    /// If it is of another graph and not in this one.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// All parameters, in buffer order.
    pub fn entries(&self) -> &[GraphEntry] {
        &self.entries
    }

    /// What the network answers, usually one node: the logits.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Extents of a sample.
    pub fn input(&self) -> Dims {
        self.nodes[0].dims
    }

    /// The same nodes, answering others; what they don't depend on stays.
    #[must_use]
    pub fn answering(&self, outputs: &[NodeId]) -> Self {
        Self { outputs: outputs.to_vec(), ..self.clone() }
    }

    /// Width of the conditioning vector, 0 if there is none.
    pub fn statistics(&self) -> usize {
        self.nodes.iter().find(|n| n.op == Op::Conditioning).map_or(0, |n| n.dims.len())
    }

    /// Parameters in all.
    pub fn len(&self) -> usize {
        self.entries.last().map_or(0, |e| e.range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last linear layer.
    pub fn head(&self) -> Option<NodeId> {
        self.nodes.iter().rposition(|n| matches!(n.op, Op::Linear { .. })).map(NodeId)
    }

    /// What the head reads: the feature.
    pub fn feature(&self) -> Option<NodeId> {
        self.head().map(|head| self.node(head).inputs[0])
    }

    /// The range of a node's parameter number `which`.
    pub(crate) fn range(&self, node: &Node, which: usize) -> Option<Range<usize>> {
        node.entries.get(which).map(|&e| self.entries[e].range.clone())
    }

    /// The table of contents of this network, its last linear layer being the head.
    ///
    /// # Errors
    /// [`SpecError::Duplicate`]; [`SpecError::Unsuitable`] if a parameter comes after the head's.
    pub fn spec(&self, card: ModelCard) -> Result<ModelSpec, SpecError> {
        let head = self.head().map(|h| self.node(h).entries.clone()).unwrap_or_default();
        let declare = |(i, e): (usize, &GraphEntry)| EntryDecl {
            name: e.name.clone(),
            shape: e.shape.clone(),
            part: if head.contains(&i) { Part::Head } else { Part::Backbone },
            role: e.role,
        };
        let arch = card.arch.clone();
        let spec = ModelSpec::new(card, self.entries.iter().enumerate().map(declare).collect())?;
        if spec.entries().iter().zip(&self.entries).all(|(s, e)| s.range == e.range && s.name == e.name) {
            return Ok(spec);
        }
        let (needs, got) = ("its last linear layer after all other parameters".into(), "not".into());
        Err(SpecError::Unsuitable { arch, needs, got })
    }
}
