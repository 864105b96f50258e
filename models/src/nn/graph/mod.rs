//! A network as a small graph: nodes in topological order, each an operation on earlier nodes.
//!
//! A graph knows shapes and where its parameters lie in the flat buffer; it holds no numbers. How it is run is `engine`'s.
mod builder;

pub use builder::{GraphBuilder, GraphError};

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

/// A convolution, `[rows, columns]` where there are two of something. Along time: one row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Conv2d {
    /// Output channels.
    pub out: usize,
    /// Extent of the window.
    pub kernel: [usize; 2],
    /// Step of the window.
    pub stride: [usize; 2],
    /// Zeros on each side.
    pub padding: [usize; 2],
    /// From one row or column that the window reads to the next.
    pub dilation: [usize; 2],
    /// Groups of channels that do not see each other.
    pub groups: usize,
    /// Whether there is a bias.
    pub bias: bool,
}

impl Conv2d {
    /// Stride 1, one group, with bias, as much padding as keeps the extent of an odd window.
    pub fn same(out: usize, kernel: [usize; 2]) -> Self {
        let padding = kernel.map(|k| k / 2);
        Self { out, kernel, stride: [1, 1], padding, dilation: [1, 1], groups: 1, bias: true }
    }

    /// Extent of the window with what its dilation steps over; `None` if that is no number.
    pub fn reach(&self) -> Option<[usize; 2]> {
        let along = |i: usize| self.kernel[i].checked_sub(1)?.checked_mul(self.dilation[i])?.checked_add(1);
        Some([along(0)?, along(1)?])
    }
}

/// A pooling window, `[rows, columns]`; what does not fill a window is dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// Extent.
    pub kernel: [usize; 2],
    /// Step.
    pub stride: [usize; 2],
    /// Pixels around the input: above, left, below, right. No maximum takes them.
    pub padding: [usize; 4],
    /// Whether a mean counts them, as zeros.
    pub counted: bool,
}

impl Window {
    /// Windows without padding.
    pub const fn new(kernel: [usize; 2], stride: [usize; 2]) -> Self {
        Self { kernel, stride, padding: [0; 4], counted: false }
    }

    /// Windows side by side.
    pub fn tiles(kernel: [usize; 2]) -> Self {
        Self::new(kernel, kernel)
    }

    /// One window over everything.
    pub fn whole(input: Dims) -> Self {
        Self::tiles([input.height, input.width])
    }
}

/// A function of one number, with a slope almost everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// `min(max(x, low), high)`.
    Clip {
        /// The least.
        low: f32,
        /// The most.
        high: f32,
    },
    /// `x` above zero, `slope · x` below.
    LeakyRelu {
        /// Slope below zero.
        slope: f32,
    },
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// `min(max(slope · x + offset, 0), 1)`.
    HardSigmoid {
        /// Slope in the middle.
        slope: f32,
        /// Value at zero.
        offset: f32,
    },
    /// `x · min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
}

/// What a node computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// The standardised sample.
    Input,
    /// The conditioning vector, the same for all samples.
    Conditioning,
    /// Convolution.
    Conv2d(Conv2d),
    /// `W x + b` of a vector.
    Linear {
        /// Outputs.
        out: usize,
        /// Whether there is a bias.
        bias: bool,
    },
    /// Batch normalisation per channel (momentum 0.1).
    BatchNorm {
        /// Added to the variance.
        epsilon: f32,
    },
    /// Group normalisation.
    GroupNorm {
        /// Groups of channels.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// `max(x, 0)`.
    Relu,
    /// A function of each number.
    Curve(Curve),
    /// Zeros around a plane: above, left, below, right.
    Pad([usize; 4]),
    /// Largest of a window.
    MaxPool(Window),
    /// Mean of a window.
    AvgPool(Window),
    /// A vector of all numbers, channel after channel.
    Flatten,
    /// Drops numbers in training, each with probability `p`; the others are scaled by `1 / (1 − p)`.
    Dropout {
        /// Probability.
        p: f32,
    },
    /// Sum of two values of one shape.
    Add,
    /// Product of two values of one shape, or of a value with one number per channel.
    Mul,
    /// Channels of values one after the other.
    Concat,
    /// Softmax over the numbers of a vector.
    Softmax,
    /// Natural logarithm; inference only.
    Log,
    /// Product with a constant.
    Scale(f32),
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
