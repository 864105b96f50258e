//! What nodes compute.
use super::Dims;

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
    /// Batch normalisation per channel.
    BatchNorm {
        /// Added to the variance.
        epsilon: f32,
        /// Share that a batch's statistics take in the running ones, from 0 to 1: PyTorch's momentum. A decimal fraction, thus an `f64`.
        momentum: f64,
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

impl Op {
    /// Batch normalisation with the momentum that PyTorch and ONNX have unless told otherwise.
    pub const fn batch_norm(epsilon: f32) -> Self {
        Op::BatchNorm { epsilon, momentum: 0.1 }
    }
}
