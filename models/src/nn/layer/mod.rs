//! Layers: each file holds one operation's shapes, forward pass and backward pass.
//!
//! A layer works on one lane's samples at a time. Activations are channel-last planes `[row][column][channel]`, with the
//! zero border that a following convolution needs; gradients are the same without a border. The backward pass *overwrites* the gradient
//! of what the layer read; where a value has several readers, the engine adds up.
mod add;
mod avg_pool;
mod batch_norm;
mod concat;
mod conv;
mod curve;
mod dropout;
mod flatten;
mod group_norm;
mod lane;
mod linear;
mod log;
mod max_pool;
mod mul;
mod pad;
mod plane;
mod relu;
mod rows;
mod scale;
mod softmax;
mod source;

pub(super) use add::Add;
pub(super) use avg_pool::AvgPool;
pub(super) use batch_norm::BatchNorm;
pub(super) use concat::Concat;
pub(super) use conv::{Conv, ConvParams};
pub(super) use curve::Map;
pub(super) use dropout::Dropout;
pub(super) use flatten::Flatten;
pub(super) use group_norm::GroupNorm;
pub(super) use lane::{Lane, Own, OwnLen};
pub(super) use linear::{Linear, Piece};
pub(super) use log::Log;
pub(super) use max_pool::MaxPool;
pub(super) use mul::Mul;
pub(super) use pad::Pad;
pub(super) use plane::{Plane, Slot};
pub(super) use relu::Relu;
pub(super) use scale::Scale;
pub(super) use softmax::Softmax;
pub(super) use source::{Conditioning, Input};

use rows::{map_grads, map_rows, map_rows_back};

use super::data::Source;
use super::graph::{Dims, Op};
use crate::params::Role;
use crate::tensor::Aligned;
use crate::tensor::kernel::Isa;
use crate::tensor::rng::Key;
use std::fmt::Debug;
use std::ops::Range;

/// Extents of an operation's value, if it can take these inputs.
pub(super) fn dims(op: &Op, inputs: &[Dims]) -> Option<Dims> {
    let (&first, arity) = (inputs.first()?, inputs.len());
    match op {
        Op::Input | Op::Conditioning => None,
        Op::Add => add::dims(inputs),
        Op::Mul => mul::dims(inputs),
        Op::Concat => concat::dims(inputs),
        _ if arity != 1 => None,
        Op::Conv2d(conv) => conv::dims(conv, first),
        Op::Linear { out, .. } => linear::dims(*out, first),
        Op::GroupNorm { groups, .. } => group_norm::dims(*groups, first),
        Op::MaxPool(window) => max_pool::dims(window, first),
        Op::AvgPool(window) => avg_pool::dims(window, first),
        Op::Pad(sides) => pad::dims(*sides, first),
        Op::Curve(curve) => curve::sound(*curve).then_some(first),
        Op::Flatten => Some(Dims::flat(first.len())),
        Op::Softmax => first.is_flat().then_some(first),
        Op::BatchNorm { .. } | Op::Relu | Op::Dropout { .. } | Op::Log | Op::Scale(_) => Some(first),
    }
}

/// Parameters of an operation: name, extents, role.
pub(super) fn parameters(op: &Op, input: Dims) -> Vec<(&'static str, Vec<usize>, Role)> {
    match op {
        Op::Conv2d(conv) => conv::parameters(conv, input),
        Op::Linear { out, bias } => linear::parameters(*out, *bias, input),
        Op::BatchNorm { .. } => batch_norm::parameters(input),
        Op::GroupNorm { .. } => group_norm::parameters(input),
        _ => vec![],
    }
}

/// What a fused layer does to its result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum After {
    /// Nothing.
    Nothing,
    /// ReLU.
    Relu,
    /// ReLU, then 2×2 max pooling.
    ReluPool,
}

/// What a pass over a run of a lane's samples needs to know.
#[derive(Clone, Debug)]
pub(super) struct Pass<'a> {
    /// Instruction set.
    pub isa: Isa,
    /// All parameters, in the engine's order.
    pub params: &'a [f32],
    /// Packed weights and coefficients by layer.
    pub packed: &'a [Aligned],
    /// Where samples come from.
    pub source: Source<'a>,
    /// The lane's samples, as indices into the source.
    pub picks: &'a [usize],
    /// Place of the lane's first sample in the batch.
    pub first: usize,
    /// The samples of this run, counted within the lane.
    pub run: Range<usize>,
    /// The conditioning vector.
    pub conditioning: &'a [f32],
    /// Key of the units to drop in this step.
    pub dropout: Key,
}

/// A parameter that a layer trains.
#[derive(Clone, Debug)]
pub(super) struct Trained {
    /// Which of the layer's parameters.
    pub which: usize,
    /// Place in the flat buffer.
    pub range: Range<usize>,
    /// Values that can only be computed together.
    pub row: usize,
}

/// Rows of a trained parameter whose gradient is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    /// Which of the layer's parameters.
    pub which: usize,
    /// Which rows ([`Trained::row`] values each).
    pub rows: Range<usize>,
    /// The layer's packed weights and coefficients.
    pub packed: &'a [f32],
}

/// Which values are still read when they have done their service on the way forward: all others' memory is used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Recalls {
    /// Whether the backward pass looks at what the layer read.
    pub inputs: bool,
    /// Whether the backward pass looks at the layer's value.
    pub output: bool,
    /// Whether [`Layer::gradient`] looks at what the layer read, and at the gradient of its value, of the whole batch.
    pub batch: bool,
}

/// A layer placed in a plan.
pub(super) trait Layer: Debug + Send + Sync {
    /// What it looks at again after the forward pass. What it doesn't name is gone by then: an empty slice.
    fn recalls(&self) -> Recalls {
        Recalls { inputs: true, output: true, batch: false }
    }

    /// What it keeps in a lane.
    fn own(&self) -> OwnLen {
        OwnLen::default()
    }

    /// Packs weights and computes coefficients, once per step.
    fn prepare(&self, _isa: Isa, _params: &[f32], _packed: &mut Aligned) {}

    /// Computes the value of a run of samples.
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane);

    /// Computes the gradient of what was read and adds up parameter gradients.
    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane);

    /// The parameters it trains.
    fn trained(&self) -> Vec<Trained> {
        vec![]
    }

    /// Adds the gradient of rows of a trained parameter to `out`, which holds zeros. Lanes count in their order.
    /// `work` is scratch that callers reuse.
    fn gradient(
        &self,
        _isa: Isa,
        _what: &Wanted<'_>,
        _lanes: &[Lane],
        _work: &mut Vec<f32>,
        _out: &mut [f32],
    ) {
    }

    /// How its lanes meet, if they must.
    fn barrier(&self) -> Option<&dyn Barrier> {
        None
    }
}

/// A layer whose value depends on all samples of a batch: lanes meet before its forward and its backward pass.
pub(super) trait Barrier {
    /// Sums over a lane's samples, before the forward pass.
    fn collect(&self, pass: &Pass<'_>, lane: &mut Lane);
    /// Joins the lanes' sums; updates running statistics.
    fn meet(&self, lanes: &[Lane], samples: usize, params: &mut [f32], packed: &mut [f32]);
    /// Joins the sums of the backward pass.
    fn meet_backward(&self, lanes: &[Lane], samples: usize, params: &[f32], packed: &mut [f32]);
    /// Computes the gradient of what was read, after lanes have met.
    fn finish_backward(&self, pass: &Pass<'_>, lane: &mut Lane);
}

/// Adds what the lanes hold at `place` of a layer's gradient sums.
fn sum_lanes(lanes: &[Lane], layer: usize, place: Range<usize>, out: &mut [f32]) {
    for lane in lanes {
        out.iter_mut().zip(&lane.own[layer].grad[place.clone()]).for_each(|(o, g)| *o += g);
    }
}
