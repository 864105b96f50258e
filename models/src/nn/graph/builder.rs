//! Building a graph node by node. What an imported file asks for is checked here, before anything is allocated.
use super::{Dims, Graph, GraphEntry, Node, NodeId, Op};
use crate::nn::layer;
use crate::tensor::Shape;

/// Why nodes do not make a graph.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An operation can't take what it is given.
    #[error("node {name} ({op}) can't take an input of {input}")]
    Shape {
        /// The node.
        name: String,
        /// Its operation.
        op: String,
        /// Extents of its first input.
        input: String,
    },
    /// A value or a parameter would be larger than anything that a board could train.
    #[error("node {name} ({op}) would hold more than 2^26 numbers")]
    TooLarge {
        /// The node.
        name: String,
        /// Its operation.
        op: String,
    },
    /// A node has the wrong number of inputs, or reads a later node.
    #[error("node {name} ({op}) has {got} inputs, or one that isn't there yet")]
    Inputs {
        /// The node.
        name: String,
        /// Its operation.
        op: String,
        /// How many.
        got: usize,
    },
}

/// Whether a node's value, with the border that its window asks for, and its parameters are of a size that can be meant.
fn small(op: &Op, inputs: &[Dims], out: Dims) -> bool {
    const MOST: usize = 1 << 26;
    let fits = |factors: &[usize]| {
        factors.iter().try_fold(1usize, |product, &f| product.checked_mul(f)).is_some_and(|n| n <= MOST)
    };
    let (first, parameters) = (inputs[0], layer::parameters(op, inputs[0]));
    let bordered = match op {
        Op::Conv2d(conv) => {
            let Some(reach) = conv.reach() else { return false };
            [0, 1].map(|i| 2 * conv.padding[i].max(reach[i]))
        }
        _ => [0, 0],
    };
    let around = |d: Dims| fits(&[d.channels, d.height + bordered[0], d.width + bordered[1]]);
    around(first) && around(out) && parameters.iter().all(|(_, shape, _)| fits(shape))
}

/// Builds a [`Graph`] node by node.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    nodes: Vec<Node>,
    entries: Vec<GraphEntry>,
    conditioning: Option<NodeId>,
}

impl GraphBuilder {
    /// A graph of samples of `input` (channels, height, width) and a conditioning vector of `statistics` numbers (0: none).
    pub fn new(input: [usize; 3], statistics: usize) -> Self {
        let source =
            |name: &str, op, dims| Node { name: name.into(), op, inputs: vec![], dims, entries: vec![] };
        let dims = Dims { channels: input[0], height: input[1], width: input[2] };
        let mut nodes = vec![source("input", Op::Input, dims)];
        if statistics > 0 {
            nodes.push(source("statistics", Op::Conditioning, Dims::flat(statistics)));
        }
        let conditioning = (statistics > 0).then_some(NodeId(1));
        Self { nodes, entries: vec![], conditioning }
    }

    /// The sample.
    pub fn input(&self) -> NodeId {
        NodeId(0)
    }

    /// The conditioning vector.
    pub fn conditioning(&self) -> Option<NodeId> {
        self.conditioning
    }

    /// Extents of a node's value.
    pub fn dims(&self, id: NodeId) -> Dims {
        self.nodes[id.0].dims
    }

    /// Adds a node after those it reads; its parameters, named `name.weight` and so on, follow those of earlier nodes.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn add(&mut self, name: &str, op: Op, inputs: &[NodeId]) -> Result<NodeId, GraphError> {
        let wrong = || GraphError::Inputs { name: name.into(), op: format!("{op:?}"), got: inputs.len() };
        let dims: Option<Vec<Dims>> = inputs.iter().map(|i| self.nodes.get(i.0).map(|n| n.dims)).collect();
        let dims = dims.filter(|d| !d.is_empty()).ok_or_else(wrong)?;
        let unfit =
            || GraphError::Shape { name: name.into(), op: format!("{op:?}"), input: dims[0].to_string() };
        let out = layer::dims(&op, &dims).filter(|_| self.readable(&op, inputs[0])).ok_or_else(unfit)?;
        if !small(&op, &dims, out) {
            return Err(GraphError::TooLarge { name: name.into(), op: format!("{op:?}") });
        }
        let entries = self.declare(name, &op, dims[0]);
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.to_vec(), dims: out, entries });
        Ok(NodeId(self.nodes.len() - 1))
    }

    /// Whether a value can be read this way too: linear layers read it as it is, convolutions with padding want a border.
    fn readable(&self, op: &Op, input: NodeId) -> bool {
        let linear = |op: &Op| matches!(op, Op::Linear { .. });
        let padded = |op: &Op| matches!(op, Op::Conv2d(conv) if conv.padding != [0, 0]);
        let mut others = self.nodes.iter().filter(|n| n.inputs.contains(&input)).map(|n| &n.op);
        others.all(|other| !(linear(op) && padded(other) || padded(op) && linear(other)))
    }

    fn declare(&mut self, name: &str, op: &Op, input: Dims) -> Vec<usize> {
        let first = self.entries.len();
        for (suffix, shape, role) in layer::parameters(op, input) {
            let start = self.entries.last().map_or(0, |e| e.range.end);
            let shape = Shape::new(shape);
            let range = start..start + shape.len();
            self.entries.push(GraphEntry { name: format!("{name}.{suffix}"), shape, role, range });
        }
        (first..self.entries.len()).collect()
    }

    /// The graph that answers these nodes.
    pub fn finish(self, outputs: &[NodeId]) -> Graph {
        Graph { nodes: self.nodes, entries: self.entries, outputs: outputs.to_vec() }
    }
}
