//! Average pooling: the mean of each window.
use super::max_pool::{outputs, pixels};
use super::{Lane, Layer, Pass, Plane, Slot};
use crate::nn::graph::Window;

/// An average pooling placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct AvgPool {
    pub window: Window,
    pub input: Slot,
    pub output: Slot,
}

impl AvgPool {
    fn share(&self) -> f32 {
        1.0 / (self.window.kernel[0] * self.window.kernel[1]) as f32
    }
}

impl Layer for AvgPool {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let (to, c) = (self.output.plane, self.output.plane.dims.channels);
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            for (_, row, column) in outputs(to.dims) {
                let mean = &mut y[to.row(row).start + column * c..][..c];
                mean.fill(0.0);
                for at in pixels(self.window, self.input.plane, row, column) {
                    mean.iter_mut().zip(&x[at..at + c]).for_each(|(mean, x)| *mean += x);
                }
                mean.iter_mut().for_each(|mean| *mean *= self.share());
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let (to, bare) = (self.output.plane.dims, Plane::bare(self.input.plane.dims));
        for s in pass.run.clone() {
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let dx = &mut dx[self.input.grad(pass, s)];
            dx.fill(0.0);
            for (n, row, column) in outputs(to) {
                let dy = &dy[n * to.channels..][..to.channels];
                for at in pixels(self.window, bare, row, column) {
                    dx[at..at + to.channels].iter_mut().zip(dy).for_each(|(dx, dy)| *dx += self.share() * dy);
                }
            }
        }
        lane.grads[self.input.node] = dx;
    }
}
