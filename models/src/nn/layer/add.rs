//! Sum of two values of one shape.
use super::{Lane, Layer, Pass, Recalls, Slot, map_grads, map_rows};
use crate::nn::graph::Dims;

pub(super) fn dims(inputs: &[Dims]) -> Option<Dims> {
    matches!(inputs, [a, b] if a == b).then(|| inputs[0])
}

/// A sum placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Add {
    pub inputs: [Slot; 2],
    pub output: Slot,
    /// Which inputs need a gradient.
    pub input_grads: [bool; 2],
}

impl Layer for Add {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let [a, b] = self.inputs;
        map_rows(pass, lane, a, self.output, |x, y| y.copy_from_slice(x));
        map_rows(pass, lane, b, self.output, |x, y| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        // The sum of a value with itself has one input gradient: twice the output's.
        let factor = if self.inputs[0].node == self.inputs[1].node { 2.0 } else { 1.0 };
        for (input, _) in self.inputs.iter().zip(self.input_grads).filter(|(_, needed)| *needed) {
            map_grads(pass, lane, *input, self.output, |dy, dx| {
                dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = factor * dy);
            });
        }
    }
}
