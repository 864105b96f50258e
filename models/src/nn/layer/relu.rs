//! `max(x, 0)`, where it is not fused into the layer before.
use super::{Lane, Layer, Pass, Slot, map_rows, map_rows_back};
use crate::tensor::kernel as k;

/// A rectifier placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Relu {
    pub input: Slot,
    pub output: Slot,
}

impl Layer for Relu {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.copy_from_slice(x);
            k::relu(pass.isa, y);
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows_back(pass, lane, self.input, self.output, |_, y, dy, dx| {
            dx.copy_from_slice(dy);
            k::relu_backward(pass.isa, y, dx);
        });
    }
}
