//! Channels of values one after the other; vectors have channels of one pixel. So the client's statistics join the features.
use super::{Lane, Layer, Pass, Recalls, Slot};
use crate::nn::graph::Dims;

pub(super) fn dims(inputs: &[Dims]) -> Option<Dims> {
    let &first = inputs.first()?;
    let alike = inputs.iter().all(|d| (d.height, d.width) == (first.height, first.width));
    let channels = inputs.iter().try_fold(0_usize, |sum, d| sum.checked_add(d.channels))?;
    alike.then_some(Dims { channels, ..first })
}

/// A concatenation placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Concat {
    pub inputs: Vec<Slot>,
    pub output: Slot,
    /// Which inputs need a gradient.
    pub input_grads: Vec<bool>,
}

impl Concat {
    /// First channel of each input in the output.
    fn firsts(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.inputs.iter().scan(0, |next, input| {
            let first = *next;
            *next += input.plane.dims.channels;
            Some((first, input))
        })
    }
}

impl Layer for Concat {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let to = self.output.plane;
        for s in pass.run.clone() {
            let y = &mut out[self.output.value(pass, s)];
            for (first, input) in self.firsts() {
                let (x, c) = (&lane.values[input.node][input.value(pass, s)], input.plane.dims.channels);
                for row in 0..to.dims.height {
                    let pixels = y[to.row(row)].chunks_exact_mut(to.dims.channels);
                    pixels
                        .zip(x[input.plane.row(row)].chunks_exact(c))
                        .for_each(|(y, x)| y[first..first + c].copy_from_slice(x));
                }
            }
        }
        lane.values[self.output.node] = out;
    }

    /// A value that is read twice gets the sum of both gradients.
    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let dy = std::mem::take(&mut lane.grads[self.output.node]);
        let channels = self.output.plane.dims.channels;
        for s in pass.run.clone() {
            let dy = &dy[self.output.grad(pass, s)];
            for (index, (first, input)) in self.firsts().enumerate().filter(|(i, _)| self.input_grads[*i]) {
                let again = self.inputs[..index].iter().any(|before| before.node == input.node);
                let (dx, c) = (&mut lane.grads[input.node][input.grad(pass, s)], input.plane.dims.channels);
                for (dx, dy) in dx.chunks_exact_mut(c).zip(dy.chunks_exact(channels)) {
                    let dy = &dy[first..first + c];
                    if again {
                        dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy);
                    } else {
                        dx.copy_from_slice(dy);
                    }
                }
            }
        }
        lane.grads[self.output.node] = dy;
    }
}
