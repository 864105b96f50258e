//! Max pooling over any window, where it is not fused into the layer before. Of equal numbers the first wins.
use super::{Lane, Layer, OwnLen, Pass, Plane, Recalls, Slot};
use crate::nn::graph::{Dims, Window};

/// A window of more than 256 pixels would not fit the byte that remembers the winner.
pub(super) fn dims(window: &Window, input: Dims) -> Option<Dims> {
    windows(window, 256, input)
}

/// Shape of any pooling with windows of at most `most` pixels, each of which has one in the input at least.
pub(super) fn windows(window: &Window, most: usize, input: Dims) -> Option<Dims> {
    let area = window.kernel[0].checked_mul(window.kernel[1])?;
    let along = |extent: usize, i: usize| {
        let (before, after) = (window.padding[i], window.padding[i + 2]);
        (before < window.kernel[i] && after < window.kernel[i] && window.stride[i] > 0).then_some(())?;
        let count = (extent + before + after).checked_sub(window.kernel[i])? / window.stride[i] + 1;
        ((count - 1).checked_mul(window.stride[i])? < extent + before).then_some(count)
    };
    (1..=most).contains(&area).then_some(())?;
    Some(Dims { height: along(input.height, 0)?, width: along(input.width, 1)?, ..input })
}

/// A window's pixels in a plane, by output pixel: number in the window and place in the plane.
pub(super) fn pixels(window: Window, plane: Plane, y: usize, x: usize) -> impl Iterator<Item = (u8, usize)> {
    let within = |at: usize, i: usize, extent: usize| {
        let start = at * window.stride[i];
        let first = window.padding[i].saturating_sub(start);
        let end = window.kernel[i].min((extent + window.padding[i]).saturating_sub(start));
        (first..end, start)
    };
    let (rows, top) = within(y, 0, plane.dims.height);
    let (columns, left) = within(x, 1, plane.dims.width);
    let places = rows.flat_map(move |v| columns.clone().map(move |u| (v, u)));
    places.map(move |(v, u)| {
        let (row, column) = (top + v - window.padding[0], left + u - window.padding[1]);
        ((v * window.kernel[1] + u) as u8, plane.row(row).start + column * plane.dims.channels)
    })
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
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

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
                for (first, (i, at)) in std::iter::once(true).chain(std::iter::repeat(false)).zip(pixels(
                    self.window,
                    self.input.plane,
                    row,
                    column,
                )) {
                    for ((best, won), x) in best.iter_mut().zip(winners.iter_mut()).zip(&x[at..at + c]) {
                        if *x > *best || first {
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
                for (i, at) in pixels(self.window, bare, row, column) {
                    for ((dx, dy), won) in dx[at..at + c].iter_mut().zip(dy).zip(winners) {
                        *dx += if *won == i { *dy } else { 0.0 };
                    }
                }
            }
        }
        lane.grads[self.input.node] = dx;
    }
}
