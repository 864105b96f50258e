//! Fully connected layer `y = W x + b`, with ReLU fused in where it follows.
//!
//! The gradients of W and b are computed once over the whole batch, from inputs and output gradients that all lanes have kept, row
//! by row of W: no lane needs a gradient buffer of the size of W.
use super::{Lane, Layer, Pass, Recalls, Slot, Trained, Wanted};
use crate::nn::graph::Dims;
use crate::params::Role;
use crate::tensor::kernel::{self as k, Isa};
use std::ops::Range;

pub(super) fn dims(out: usize, input: Dims) -> Option<Dims> {
    (input.is_flat() && out > 0).then_some(Dims::flat(out))
}

pub(super) fn parameters(out: usize, bias: bool, input: Dims) -> Vec<(&'static str, Vec<usize>, Role)> {
    let mut all = vec![("weight", vec![out, input.len()], Role::Trainable)];
    if bias {
        all.push(("bias", vec![out], Role::Trainable));
    }
    all
}

/// A stretch of a flat vector that is held pixel after pixel (`[pixel][channel]`), although the parameters count
/// `[channel][pixel]`. One pixel or one channel: both orders are the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::nn) struct Piece {
    pub channels: usize,
    pub pixels: usize,
}

/// A linear layer placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Linear {
    pub input: Slot,
    pub output: Slot,
    pub weight: Range<usize>,
    pub bias: Option<Range<usize>>,
    pub trains: [bool; 2],
    pub relu: bool,
    pub input_grad: bool,
}

impl Linear {
    fn extents(&self) -> (usize, usize) {
        (self.input.plane.dims.len(), self.output.plane.dims.len())
    }
}

impl Layer for Linear {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: self.relu, batch: self.trains != [false; 2] }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let ((inputs, outputs), n) = (self.extents(), pass.run.len());
        let x = &lane.values[self.input.node][self.input.run_values(pass)];
        let (w, b) = (&pass.params[self.weight.clone()], self.bias.clone().map(|b| &pass.params[b]));
        let y = &mut out[self.output.run_values(pass)];
        k::linear_forward(pass.isa, n, inputs, outputs, x, w, b, y);
        if self.relu {
            k::relu(pass.isa, y);
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let ((inputs, outputs), n) = (self.extents(), pass.run.len());
        let dy = &mut lane.grads[self.output.node][self.output.run_grads(pass)];
        if self.relu {
            k::relu_backward(pass.isa, &lane.values[self.output.node][self.output.run_values(pass)], dy);
        }
        if self.input_grad {
            let w = &pass.params[self.weight.clone()];
            k::linear_input_grad(pass.isa, n, inputs, outputs, dy, w, &mut dx[self.input.run_grads(pass)]);
        }
        lane.grads[self.input.node] = dx;
    }

    fn trained(&self) -> Vec<Trained> {
        let rows = [(Some(self.weight.clone()), self.extents().0), (self.bias.clone(), 1)];
        let rows = rows.into_iter().enumerate().filter(|(which, _)| self.trains[*which]);
        rows.filter_map(|(which, (range, row))| range.map(|range| Trained { which, range, row })).collect()
    }

    fn gradient(&self, isa: Isa, wanted: &Wanted<'_>, lanes: &[Lane], work: &mut Vec<f32>, out: &mut [f32]) {
        let (inputs, outputs) = self.extents();
        for lane in lanes {
            let n = lane.samples;
            let dy = lane.grads[self.output.node][..n * outputs].chunks_exact(outputs);
            work.clear();
            dy.for_each(|dy| work.extend_from_slice(&dy[wanted.rows.clone()]));
            if wanted.which == 1 {
                k::add_channels(isa, work, out);
            } else {
                let x = &lane.values[self.input.node][..n * inputs];
                k::linear_weight_grad(isa, n, inputs, wanted.rows.len(), x, work, out);
            }
        }
    }
}
