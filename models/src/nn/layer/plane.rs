//! Where a sample's numbers lie.
use super::Pass;
use crate::nn::graph::Dims;
use std::ops::Range;

/// One sample of a value in memory: channel-last, with a border of zeros.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::nn) struct Plane {
    /// Extents without the border.
    pub dims: Dims,
    /// Border rows above and below, and columns left and right.
    pub border: [usize; 2],
}

impl Plane {
    /// A plane without border.
    pub(in crate::nn) fn bare(dims: Dims) -> Self {
        Self { dims, border: [0, 0] }
    }

    /// Floats from one row to the next.
    pub(in crate::nn) fn pitch(&self) -> usize {
        (self.dims.width + 2 * self.border[1]) * self.dims.channels
    }

    /// Floats of a sample.
    pub(in crate::nn) fn len(&self) -> usize {
        (self.dims.height + 2 * self.border[0]) * self.pitch()
    }

    /// Floats of a row without its border.
    pub(in crate::nn) fn row_len(&self) -> usize {
        self.dims.width * self.dims.channels
    }

    /// Place of the first inner pixel.
    pub(in crate::nn) fn origin(&self) -> usize {
        self.border[0] * self.pitch() + self.border[1] * self.dims.channels
    }

    /// Place of an inner row.
    pub(in crate::nn) fn row(&self, y: usize) -> Range<usize> {
        let start = self.origin() + y * self.pitch();
        start..start + self.row_len()
    }
}

/// A node's buffers in a lane.
#[derive(Clone, Copy, Debug)]
pub(in crate::nn) struct Slot {
    /// The node.
    pub node: usize,
    /// One sample of its value.
    pub plane: Plane,
    /// Whether the values of all of the lane's samples are kept, or only those of the current run.
    pub kept: bool,
    /// The same of gradients.
    pub kept_grad: bool,
}

impl Slot {
    /// Place of a sample's value in the node's buffer.
    pub(in crate::nn) fn value(&self, pass: &Pass<'_>, sample: usize) -> Range<usize> {
        place(self.kept, pass, sample..sample + 1, self.plane.len())
    }

    /// Place of a sample's gradient in the node's gradient buffer.
    pub(in crate::nn) fn grad(&self, pass: &Pass<'_>, sample: usize) -> Range<usize> {
        place(self.kept_grad, pass, sample..sample + 1, self.plane.dims.len())
    }

    /// Place of a sample's share of something with `len` items per sample.
    pub(in crate::nn) fn bytes(&self, pass: &Pass<'_>, sample: usize, len: usize) -> Range<usize> {
        place(self.kept_bytes(), pass, sample..sample + 1, len)
    }

    /// Whether such items of all of the lane's samples are kept.
    pub(in crate::nn) fn kept_bytes(&self) -> bool {
        self.kept || self.kept_grad
    }

    /// The values of the whole run, where they have no border.
    pub(in crate::nn) fn run_values(&self, pass: &Pass<'_>) -> Range<usize> {
        place(self.kept, pass, pass.run.clone(), self.plane.len())
    }

    /// The gradients of the whole run.
    pub(in crate::nn) fn run_grads(&self, pass: &Pass<'_>) -> Range<usize> {
        place(self.kept_grad, pass, pass.run.clone(), self.plane.dims.len())
    }
}

/// Place of some samples of the run in a buffer of `len` items per sample.
fn place(kept: bool, pass: &Pass<'_>, samples: Range<usize>, len: usize) -> Range<usize> {
    let first = if kept { 0 } else { pass.run.start };
    (samples.start - first) * len..(samples.end - first) * len
}
