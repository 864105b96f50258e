//! Natural logarithm, never of less than the smallest normal number: the last step of an exported mixture.
use super::{Lane, Layer, Pass, Slot, map_rows, map_rows_back};

/// A logarithm placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Log {
    pub input: Slot,
    pub output: Slot,
}

impl Layer for Log {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows(pass, lane, self.input, self.output, |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = libm::logf(x.max(f32::MIN_POSITIVE)));
        });
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        map_rows_back(pass, lane, self.input, self.output, |x, _, dy, dx| {
            dx.iter_mut().zip(dy).zip(x).for_each(|((dx, dy), x)| *dx = dy / x.max(f32::MIN_POSITIVE));
        });
    }
}
