//! A vector of all numbers of a plane. Readers that are linear layers get it pixel after pixel, as it lies in memory (their weights are reordered
//! once per training instead); everyone else channel after channel.
use super::{Lane, Layer, Pass, Recalls, Slot};

/// A flattening placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Flatten {
    pub input: Slot,
    pub output: Slot,
    /// Whether the vector runs channel after channel.
    pub by_channel: bool,
}

impl Flatten {
    /// Calls `f(place in the plane, place in the vector, count)` for stretches that are contiguous in both.
    fn stretches(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (plane, dims) = (&self.input.plane, self.input.plane.dims);
        if !self.by_channel {
            return (0..dims.height)
                .for_each(|r| f(plane.row(r).start, r * plane.row_len(), plane.row_len()));
        }
        for (r, x) in (0..dims.height).flat_map(|r| (0..dims.width).map(move |x| (r, x))) {
            let from = plane.row(r).start + x * dims.channels;
            (0..dims.channels).for_each(|c| f(from + c, c * dims.pixels() + r * dims.width + x, 1));
        }
    }
}

impl Layer for Flatten {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            self.stretches(|from, to, n| y[to..to + n].copy_from_slice(&x[from..from + n]));
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let bare = Slot { plane: super::Plane::bare(self.input.plane.dims), ..self.input };
        let flat = Self { input: bare, output: self.output, by_channel: self.by_channel };
        for s in pass.run.clone() {
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let dx = &mut dx[self.input.grad(pass, s)];
            flat.stretches(|from, to, n| dx[from..from + n].copy_from_slice(&dy[to..to + n]));
        }
        lane.grads[self.input.node] = dx;
    }
}
