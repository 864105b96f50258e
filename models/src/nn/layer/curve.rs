//! Functions of one number: clipping, leaky ReLU, sigmoid, its piecewise linear kin, hard swish.
//!
//! At a corner the slope is that of PyTorch: of a clip the inner one, of a hard sigmoid and of a hard swish zero outside of
//! the open interval.
use super::{Lane, Layer, Pass, Slot, map_rows, map_rows_back};
use crate::nn::graph::Curve;

/// Whether a function's numbers can be meant. A clip may have no bound on a side.
pub(super) fn sound(curve: Curve) -> bool {
    match curve {
        Curve::Clip { low, high } => low <= high,
        Curve::LeakyRelu { slope } => slope.is_finite(),
        Curve::HardSigmoid { slope, offset } => slope.is_finite() && offset.is_finite(),
        Curve::Sigmoid | Curve::HardSwish => true,
    }
}

/// A function placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Map {
    pub curve: Curve,
    pub input: Slot,
    pub output: Slot,
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

fn hard_sigmoid(slope: f32, offset: f32, x: f32) -> f32 {
    (slope * x + offset).clamp(0.0, 1.0)
}

fn each(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = f(*x));
}

/// `dx = dy · slope(x, y)`.
fn chain(x: &[f32], y: &[f32], dy: &[f32], dx: &mut [f32], slope: impl Fn(f32, f32) -> f32) {
    dx.iter_mut().zip(dy).zip(x.iter().zip(y)).for_each(|((dx, dy), (x, y))| *dx = dy * slope(*x, *y));
}

fn when(inside: bool, slope: f32) -> f32 {
    if inside { slope } else { 0.0 }
}

impl Layer for Map {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| match self.curve {
            Curve::Clip { low, high } => each(x, y, |x| x.max(low).min(high)),
            Curve::LeakyRelu { slope } => each(x, y, |x| if x > 0.0 { x } else { slope * x }),
            Curve::Sigmoid => each(x, y, sigmoid),
            Curve::HardSigmoid { slope, offset } => each(x, y, |x| hard_sigmoid(slope, offset, x)),
            Curve::HardSwish => each(x, y, |x| x * hard_sigmoid(1.0 / 6.0, 0.5, x)),
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows_back(pass, lane, self.input, self.output, |x, y, dy, dx| match self.curve {
            Curve::Clip { low, high } => chain(x, y, dy, dx, |x, _| when(x >= low && x <= high, 1.0)),
            Curve::LeakyRelu { slope } => chain(x, y, dy, dx, |x, _| if x > 0.0 { 1.0 } else { slope }),
            Curve::Sigmoid => chain(x, y, dy, dx, |_, y| y * (1.0 - y)),
            Curve::HardSigmoid { slope, .. } => chain(x, y, dy, dx, |_, y| when(y > 0.0 && y < 1.0, slope)),
            Curve::HardSwish => chain(x, y, dy, dx, |x, _| match x {
                x if x <= -3.0 => 0.0,
                x if x >= 3.0 => 1.0,
                x => x / 3.0 + 0.5,
            }),
        });
    }
}
