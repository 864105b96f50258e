//! Stochastic gradient descent with momentum, as PyTorch defines it.
use super::isa;
use crate::tensor::kernel::{SgdStep, sgd_momentum};

/// `v ← momentum·v + g + weight_decay·w`, then `w ← w − rate·v`; v starts at zero, dampening is 0.
///
/// ```
/// use models::nn::optim::Sgd;
/// let sgd = Sgd { rate: 0.5, momentum: 0.5, weight_decay: 0.0 };
/// let (mut w, mut v) = ([1.0], [0.0]);
/// sgd.step(&mut w, &mut v, &[1.0]);
/// assert_eq!((w, v), ([0.5], [1.0]));
/// sgd.step(&mut w, &mut v, &[1.0]);
/// assert_eq!((w, v), ([-0.25], [1.5]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Step size.
    pub rate: f32,
    /// Share of the old velocity that stays.
    pub momentum: f32,
    /// Pull towards zero (L2).
    pub weight_decay: f32,
}

impl Sgd {
    /// One step of weights `w` with velocity `v` along the gradient `g`.
    ///
    /// # Panics
    /// If the three have different lengths.
    pub fn step(self, w: &mut [f32], v: &mut [f32], g: &[f32]) {
        let Self { rate: lr, momentum, weight_decay } = self;
        sgd_momentum(isa(), SgdStep { lr, momentum, weight_decay }, w, v, g);
    }
}
