//! Vectors one after the other: how the client's statistics join the features.
use super::{Lane, Layer, Pass, Slot};
use crate::nn::graph::Dims;

pub(super) fn dims(inputs: &[Dims]) -> Option<Dims> {
    inputs.iter().all(|d| d.is_flat()).then(|| Dims::flat(inputs.iter().map(|d| d.len()).sum()))
}

/// A concatenation placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Concat {
    pub inputs: Vec<Slot>,
    pub output: Slot,
    /// Which inputs need a gradient.
    pub input_grads: Vec<bool>,
}

impl Layer for Concat {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        for s in pass.run.clone() {
            let mut y = &mut out[self.output.value(pass, s)];
            for input in &self.inputs {
                let x = &lane.values[input.node][input.value(pass, s)];
                let (place, rest) = y.split_at_mut(input.plane.dims.len());
                place.copy_from_slice(&x[input.plane.row(0)]);
                y = rest;
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let dy = std::mem::take(&mut lane.grads[self.output.node]);
        for s in pass.run.clone() {
            let mut dy = &dy[self.output.grad(pass, s)];
            for (input, needed) in self.inputs.iter().zip(&self.input_grads) {
                let (place, rest) = dy.split_at(input.plane.dims.len());
                if *needed {
                    lane.grads[input.node][input.grad(pass, s)].copy_from_slice(place);
                }
                dy = rest;
            }
        }
        lane.grads[self.output.node] = dy;
    }
}
