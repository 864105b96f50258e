//! What a name of the file has become so far: a node, or a step on the way to one.
use models::nn::NodeId;

/// A node, and how many axes its value has in the file beside that of samples: a vector, a signal in time, a plane. The
/// engine knows no difference between a vector and a plane of one pixel; the file does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Value {
    /// The node.
    pub(crate) id: NodeId,
    /// Axes: 1, 2 or 3.
    pub(crate) rank: usize,
}

impl Value {
    /// Whether there are no rows, only columns: points in time.
    pub(crate) fn along_time(self) -> bool {
        self.rank == 2
    }
}

/// What a value of the file is: a node, or a step on the way to one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Partial {
    /// A node.
    Value(Value),
    /// A group norm whose channels are in groups.
    Grouped {
        /// What is normalised.
        of: Value,
        /// Groups.
        groups: usize,
    },
    /// … and normalised.
    Normalised {
        /// What is normalised.
        of: Value,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// … and channels again.
    Restored {
        /// What is normalised.
        of: Value,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// … and weighted.
    Weighted {
        /// What is normalised.
        of: Value,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
        /// The constant that holds the weights.
        weight: String,
    },
    /// Probabilities with a floor, for a logarithm.
    Floored(Value),
    /// A vector times a matrix, before its bias.
    Product {
        /// The vector.
        of: Value,
        /// The constant that holds the matrix, `[in, out]`.
        weight: String,
    },
    /// A step of a dropout that is written out.
    Drawn {
        /// Which.
        draw: Draw,
        /// Extents of what is drawn, without the axis of samples.
        axes: Vec<usize>,
    },
}

/// How far a dropout is that is written out as random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draw {
    /// An array of the extents of some value.
    Blank,
    /// Uniform random numbers.
    Random,
    /// Whether each is below the share that is kept.
    Kept(f32),
    /// … divided by that share.
    Mask(f32),
}

impl Partial {
    /// What it is a step of, and how that is to be written.
    pub(super) fn step(&self) -> (&'static str, &'static str) {
        match self {
            Self::Value(_) => ("nothing", "nothing"),
            Self::Floored(_) => ("a logarithm", "Clip, Log"),
            Self::Product { .. } => ("a linear layer", "Gemm"),
            Self::Drawn { .. } => ("a dropout", "Dropout"),
            _ => ("a group normalisation", "Reshape, InstanceNormalization, Reshape, Mul, Add"),
        }
    }
}
