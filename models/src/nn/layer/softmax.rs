//! Softmax over a vector: `dx = p ⊙ (dy − ⟨dy, p⟩)`.
use super::{Lane, Layer, Pass, Slot, map_rows, map_rows_back};
use crate::nn::loss;

/// A softmax placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Softmax {
    pub input: Slot,
    pub output: Slot,
}

impl Layer for Softmax {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.copy_from_slice(x);
            loss::softmax(y);
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows_back(pass, lane, self.input, self.output, |_, p, dy, dx| {
            let along: f32 = p.iter().zip(dy).map(|(p, d)| p * d).sum();
            dx.iter_mut().zip(p).zip(dy).for_each(|((dx, p), d)| *dx = p * (d - along));
        });
    }
}
