//! Product of two values number by number, or of a value with a gate that has one number per channel.
use super::{Lane, Layer, Pass, Plane, Recalls, Slot};
use crate::nn::graph::Dims;
use std::ops::Range;

pub(super) fn dims(inputs: &[Dims]) -> Option<Dims> {
    let &[a, b] = inputs else { return None };
    let gates = |gate: Dims, value: Dims| gate.is_flat() && gate.channels == value.channels;
    match () {
        () if a == b || gates(b, a) => Some(a),
        () if gates(a, b) => Some(b),
        () => None,
    }
}

/// A product placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Mul {
    pub inputs: [Slot; 2],
    pub output: Slot,
    /// Which inputs need a gradient.
    pub input_grads: [bool; 2],
}

/// The rows of an input against those of the output: its own, or a gate's only pixel again and again.
fn row(dims: Dims, plane: Plane, y: usize) -> Range<usize> {
    plane.row(if plane.dims == dims { y } else { 0 })
}

/// Calls `f(place in the longer row, gate)` pixel by pixel where the row `b` is a gate, else once.
fn cells(len: usize, b: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(b).map(move |at| at..at + b)
}

impl Mul {
    /// Adds (or writes) `dy · other` to the gradient of input `which`.
    fn input_gradient(&self, which: usize, pass: &Pass<'_>, lane: &mut Lane) {
        let (own, other, to) = (self.inputs[which], self.inputs[1 - which], self.output.plane.dims);
        let mut dx = std::mem::take(&mut lane.grads[own.node]);
        let (out, bare) = (Plane::bare(to), Plane::bare(own.plane.dims));
        // A square reads one value twice: both halves of the gradient are the same.
        let factor = if own.node == other.node { 2.0 } else { 1.0 };
        for s in pass.run.clone() {
            let x = &lane.values[other.node][other.value(pass, s)];
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let dx = &mut dx[own.grad(pass, s)];
            dx.fill(0.0);
            for y in 0..to.height {
                let (dy, x) = (&dy[out.row(y)], &x[row(to, other.plane, y)]);
                let dx = &mut dx[row(to, bare, y)];
                let step = x.len().min(dx.len());
                for (cell, at) in cells(dy.len(), step).enumerate() {
                    let x = &x[(cell * step) % x.len()..][..step];
                    let dx = &mut dx[(cell * step) % bare.row_len()..][..step];
                    dx.iter_mut().zip(&dy[at]).zip(x).for_each(|((dx, dy), x)| *dx += factor * dy * x);
                }
            }
        }
        lane.grads[own.node] = dx;
    }
}

impl Layer for Mul {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: true, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let ([a, b], to) = (self.inputs, self.output.plane);
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        for s in pass.run.clone() {
            let (xa, xb) = (&lane.values[a.node][a.value(pass, s)], &lane.values[b.node][b.value(pass, s)]);
            let out = &mut out[self.output.value(pass, s)];
            for y in 0..to.dims.height {
                let (xa, xb) = (&xa[row(to.dims, a.plane, y)], &xb[row(to.dims, b.plane, y)]);
                let out = &mut out[to.row(y)];
                let step = xa.len().min(xb.len());
                for (cell, at) in cells(out.len(), step).enumerate() {
                    let (xa, xb) =
                        (&xa[(cell * step) % xa.len()..][..step], &xb[(cell * step) % xb.len()..][..step]);
                    out[at].iter_mut().zip(xa).zip(xb).for_each(|((out, a), b)| *out = a * b);
                }
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let once = if self.inputs[0].node == self.inputs[1].node { 1 } else { 2 };
        (0..once)
            .filter(|&which| self.input_grads[which])
            .for_each(|which| self.input_gradient(which, pass, lane));
    }
}
