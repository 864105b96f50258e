//! What each way of computing a convolution offers.
use crate::tensor::kernel::Isa;
use std::ops::Range;

/// What a product reads beside planes.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub isa: Isa,
    pub packed: &'a [f32],
    pub bias: Option<&'a [f32]>,
}

/// A way to compute a convolution's three products. `x` is a whole bordered input plane, `dy` a whole bordered plane of the
/// output gradient, `work` scratch.
pub(super) trait Product: std::fmt::Debug + Send + Sync {
    /// Floats of packed weights.
    fn packed(&self, isa: Isa) -> usize;
    /// Packs weights.
    fn pack(&self, isa: Isa, w: &[f32], packed: &mut [f32], scratch: &mut [f32]);
    /// Floats of scratch that packing and unpacking take.
    fn packing(&self) -> usize {
        0
    }
    /// Floats of scratch.
    fn work(&self) -> usize;
    /// Floats in which weight gradients are added up.
    fn sums(&self) -> usize;
    /// Even number of rows that are best computed together.
    fn band(&self) -> usize;
    /// Output rows, `pitch` floats apart, the first a multiple of [`Product::band`].
    fn rows(
        &self,
        at: At<'_>,
        rows: Range<usize>,
        x: &[f32],
        work: &mut [f32],
        out: &mut [f32],
        pitch: usize,
    );
    /// Adds the weight gradient of a sample.
    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], work: &mut [f32], sums: &mut [f32]);
    /// The input gradient of a sample, without border.
    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]);
    /// Adds what [`Product::weight_grad`] has summed up to a gradient in PyTorch's layout.
    fn unpack(&self, sums: &[f32], out: &mut [f32], scratch: &mut [f32]);
}
