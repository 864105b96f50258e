//! Zeros around a plane, where the sides differ: what a convolution's own padding can't say.
use super::{Lane, Layer, Pass, Plane, Recalls, Slot};
use crate::nn::graph::Dims;

/// The widest side.
const MOST: usize = 1 << 12;

pub(super) fn dims([top, left, bottom, right]: [usize; 4], input: Dims) -> Option<Dims> {
    let sound = [top, left, bottom, right].iter().all(|&side| side <= MOST);
    sound.then(|| Dims { height: input.height + top + bottom, width: input.width + left + right, ..input })
}

/// A padding placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Pad {
    /// Rows above and columns to the left.
    pub before: [usize; 2],
    pub input: Slot,
    pub output: Slot,
}

impl Pad {
    /// Places of the input's rows in a plane of the output's extents.
    fn rows(&self, to: Plane) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let (dims, [top, left]) = (self.input.plane.dims, self.before);
        (0..dims.height).map(move |y| {
            let start = to.row(top + y).start + left * dims.channels;
            (y, start..start + dims.width * dims.channels)
        })
    }
}

impl Layer for Pad {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            y.fill(0.0);
            self.rows(self.output.plane)
                .for_each(|(row, to)| y[to].copy_from_slice(&x[self.input.plane.row(row)]));
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let (from, bare) = (Plane::bare(self.output.plane.dims), Plane::bare(self.input.plane.dims));
        for s in pass.run.clone() {
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let dx = &mut dx[self.input.grad(pass, s)];
            self.rows(from).for_each(|(row, at)| dx[bare.row(row)].copy_from_slice(&dy[at]));
        }
        lane.grads[self.input.node] = dx;
    }
}
