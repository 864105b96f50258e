//! Element by element: activations and the step of the optimiser.
use super::dispatch::vectorised;
use super::isa::Isa;

/// Zero where `cut`, otherwise `value`. Without the addition the compiler stores under a mask when it updates in place on
/// AVX2, and lane by lane on NEON, which costs several times as much.
#[inline(always)]
pub(super) fn cut_if(cut: bool, value: f32) -> f32 {
    (if cut { 0.0 } else { value }) + 0.0
}

/// `x = max(x, 0)`; a NaN stays.
pub fn relu(isa: Isa, x: &mut [f32]) {
    vectorised!(isa, relu_body(x: &mut [f32]));
}

#[inline(always)]
fn relu_body(x: &mut [f32]) {
    for x in x {
        *x = cut_if(*x < 0.0, *x);
    }
}

/// Clears `dy` where the activation `y` (or its input) isn't positive.
pub fn relu_backward(isa: Isa, y: &[f32], dy: &mut [f32]) {
    assert_eq!(y.len(), dy.len(), "activations and their gradients");
    vectorised!(isa, relu_backward_body(y: &[f32], dy: &mut [f32]));
}

#[inline(always)]
fn relu_backward_body(y: &[f32], dy: &mut [f32]) {
    for (dy, y) in dy.iter_mut().zip(y) {
        *dy = cut_if(*y <= 0.0, *dy);
    }
}

/// `y += a · x`.
pub fn axpy(isa: Isa, a: f32, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "operands of axpy");
    vectorised!(isa, axpy_body(a: f32, x: &[f32], y: &mut [f32]));
}

#[inline(always)]
fn axpy_body(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// One step of stochastic gradient descent, as PyTorch defines it: `v = momentum·v + g + weight_decay·w`, then `w -= lr·v`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdStep {
    /// Learning rate.
    pub lr: f32,
    /// Share of the old velocity that stays.
    pub momentum: f32,
    /// Pull towards zero.
    pub weight_decay: f32,
}

/// Applies a step along the gradient `g` to weights `w` with velocity `v`.
pub fn sgd_momentum(isa: Isa, step: SgdStep, w: &mut [f32], v: &mut [f32], g: &[f32]) {
    assert!(w.len() == v.len() && w.len() == g.len(), "weights, velocity and gradient");
    vectorised!(isa, sgd_body(step: SgdStep, w: &mut [f32], v: &mut [f32], g: &[f32]));
}

#[inline(always)]
fn sgd_body(step: SgdStep, w: &mut [f32], v: &mut [f32], g: &[f32]) {
    for ((w, v), g) in w.iter_mut().zip(v).zip(g) {
        *v = step.momentum * *v + (*g + step.weight_decay * *w);
        *w -= step.lr * *v;
    }
}
