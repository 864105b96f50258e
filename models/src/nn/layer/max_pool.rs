//! Max pooling over any window, where it is not fused into the layer before. Of equal numbers the first wins.
use super::{Lane, Layer, OwnLen, Pass, Plane, Slot};
use crate::nn::graph::{Dims, Window};

/// Shape of any pooling. A window of more than 256 pixels would not fit the byte that remembers the winner.
pub(super) fn dims(window: &Window, input: Dims) -> Option<Dims> {
    let area = window.kernel[0].checked_mul(window.kernel[1])?;
    let windows =
        |extent: usize, i: usize| Some(extent.checked_sub(window.kernel[i])? / window.stride[i] + 1);
    let sound = (1..=256).contains(&area) && window.stride.iter().all(|&s| s > 0);
    sound.then_some(())?;
    Some(Dims { height: windows(input.height, 0)?, width: windows(input.width, 1)?, ..input })
}

/// Places of a window's pixels in a plane, by output pixel.
pub(super) fn pixels(window: Window, plane: Plane, y: usize, x: usize) -> impl Iterator<Item = usize> {
    let [kh, kw] = window.kernel;
    let (top, left) = (y * window.stride[0], x * window.stride[1]);
    let places = (0..kh).flat_map(move |v| (0..kw).map(move |u| (v, u)));
    places.map(move |(v, u)| plane.row(top + v).start + (left + u) * plane.dims.channels)
}

/// Output pixels as (number, row, column).
pub(super) fn outputs(dims: Dims) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..dims.height).flat_map(move |y| (0..dims.width).map(move |x| (y * dims.width + x, y, x)))
}

/// A max pooling placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct MaxPool {
    pub id: usize,
    pub window: Window,
    pub input: Slot,
    pub output: Slot,
}

impl Layer for MaxPool {
    fn own(&self) -> OwnLen {
        OwnLen { bytes: self.output.plane.dims.len(), ..OwnLen::default() }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let (to, c) = (self.output.plane, self.output.plane.dims.channels);
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            let winners = &mut lane.own[self.id].bytes[self.output.bytes(pass, s, to.dims.len())];
            for (n, row, column) in outputs(to.dims) {
                let best = &mut y[to.row(row).start + column * c..][..c];
                let winners = &mut winners[n * c..][..c];
                best.fill(f32::NEG_INFINITY);
                for (i, at) in (0u8..=255).zip(pixels(self.window, self.input.plane, row, column)) {
                    for ((best, won), x) in best.iter_mut().zip(winners.iter_mut()).zip(&x[at..at + c]) {
                        if *x > *best || (i == 0) {
                            (*best, *won) = (*x, i);
                        }
                    }
                }
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let (to, c, bare) =
            (self.output.plane.dims, self.output.plane.dims.channels, Plane::bare(self.input.plane.dims));
        for s in pass.run.clone() {
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let winners = &lane.own[self.id].bytes[self.output.bytes(pass, s, to.len())];
            let dx = &mut dx[self.input.grad(pass, s)];
            dx.fill(0.0);
            for (n, row, column) in outputs(to) {
                let (dy, winners) = (&dy[n * c..][..c], &winners[n * c..][..c]);
                for (i, at) in (0u8..=255).zip(pixels(self.window, bare, row, column)) {
                    for ((dx, dy), won) in dx[at..at + c].iter_mut().zip(dy).zip(winners) {
                        *dx += if *won == i { *dy } else { 0.0 };
                    }
                }
            }
        }
        lane.grads[self.input.node] = dx;
    }
}
