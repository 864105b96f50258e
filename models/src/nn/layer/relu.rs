//! `max(x, 0)`, where it is not fused into the layer before.
use super::{Lane, Layer, Pass, Recalls, Slot, map_grads, map_rows};
use crate::tensor::kernel as k;

/// A rectifier placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Relu {
    pub input: Slot,
    pub output: Slot,
}

impl Layer for Relu {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: true, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.copy_from_slice(x);
            k::relu(pass.isa, y);
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_grads(pass, lane, self.input, self.output, |dy, dx| dx.copy_from_slice(dy));
        let Lane { values, grads, .. } = lane;
        let (plane, len) = (&self.output.plane, self.output.plane.row_len());
        for s in pass.run.clone() {
            let y = &values[self.output.node][self.output.value(pass, s)];
            let dx = grads[self.input.node][self.input.grad(pass, s)].chunks_exact_mut(len);
            dx.enumerate().for_each(|(r, dx)| k::relu_backward(pass.isa, &y[plane.row(r)], dx));
        }
    }
}
