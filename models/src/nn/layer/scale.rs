//! Product with a constant.
use super::{Lane, Layer, Pass, Slot, map_rows, map_rows_back};

/// A factor placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Scale {
    pub input: Slot,
    pub output: Slot,
    pub factor: f32,
}

impl Layer for Scale {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = self.factor * x);
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows_back(pass, lane, self.input, self.output, |_, _, dy, dx| {
            dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = self.factor * dy);
        });
    }
}
