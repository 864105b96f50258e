//! Product with a constant.
use super::{Lane, Layer, Pass, Recalls, Slot, map_grads, map_rows};

/// A factor placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Scale {
    pub input: Slot,
    pub output: Slot,
    pub factor: f32,
}

impl Layer for Scale {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = self.factor * x);
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_grads(pass, lane, self.input, self.output, |dy, dx| {
            dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = self.factor * dy);
        });
    }
}
