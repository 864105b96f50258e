//! Average pooling: the mean of each window. What lies outside the input counts as zeros, or not at all.
use super::max_pool::{outputs, pixels, windows};
use super::{Lane, Layer, Pass, Plane, Recalls, Slot};
use crate::nn::graph::{Dims, Window};

pub(super) fn dims(window: &Window, input: Dims) -> Option<Dims> {
    windows(window, 1 << 16, input)
}

/// An average pooling placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct AvgPool {
    pub window: Window,
    pub input: Slot,
    pub output: Slot,
}

impl AvgPool {
    /// One over the number of pixels that a window counts.
    fn share(&self, row: usize, column: usize) -> f32 {
        let window = &self.window;
        let inside = |at: usize, i: usize, extent: usize| {
            let start = at * window.stride[i];
            let end = (start + window.kernel[i]).min(extent + window.padding[i]);
            end - start.max(window.padding[i])
        };
        let dims = self.input.plane.dims;
        let [rows, columns] = match window.counted {
            true => window.kernel,
            false => [inside(row, 0, dims.height), inside(column, 1, dims.width)],
        };
        1.0 / (rows * columns) as f32
    }
}

impl Layer for AvgPool {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let (to, c) = (self.output.plane, self.output.plane.dims.channels);
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            for (_, row, column) in outputs(to.dims) {
                let mean = &mut y[to.row(row).start + column * c..][..c];
                mean.fill(0.0);
                for (_, at) in pixels(self.window, self.input.plane, row, column) {
                    mean.iter_mut().zip(&x[at..at + c]).for_each(|(mean, x)| *mean += x);
                }
                let share = self.share(row, column);
                mean.iter_mut().for_each(|mean| *mean *= share);
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
                let share = self.share(row, column);
                for (_, at) in pixels(self.window, bare, row, column) {
                    dx[at..at + to.channels].iter_mut().zip(dy).for_each(|(dx, dy)| *dx += share * dy);
                }
            }
        }
        lane.grads[self.input.node] = dx;
    }
}
