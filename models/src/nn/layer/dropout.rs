//! Dropout: in training each number is dropped with probability p, the others are scaled by 1 / (1 − p). What is dropped depends on
//! the key of the step, the layer and the sample's place in the batch: not on lanes or threads.
use super::{Lane, Layer, OwnLen, Pass, Recalls, Slot};

/// A dropout placed in a plan. Outside training there is none: the plan has a copy in its place.
#[derive(Debug)]
pub(in crate::nn) struct Dropout {
    pub id: usize,
    pub p: f32,
    pub input: Slot,
    pub output: Slot,
}

impl Dropout {
    fn keep(&self) -> f32 {
        1.0 / (1.0 - self.p)
    }

    /// Draws which numbers of a sample stay.
    fn draw(&self, pass: &Pass<'_>, sample: usize, kept: &mut [u8]) {
        let place = ((self.id as u64) << 20) | (pass.first + sample) as u64;
        let key = pass.dropout;
        let mut stream = key.step((key.step << 32) | place).stream();
        kept.iter_mut().for_each(|kept| *kept = u8::from(stream.unit() >= self.p));
    }
}

impl Layer for Dropout {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: false, output: false, batch: false }
    }

    fn own(&self) -> OwnLen {
        OwnLen { bytes: self.output.plane.dims.len(), ..OwnLen::default() }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let (len, row_len) = (self.output.plane.dims.len(), self.output.plane.row_len());
        for s in pass.run.clone() {
            let kept = &mut lane.own[self.id].bytes[self.output.bytes(pass, s, len)];
            self.draw(pass, s, kept);
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let y = &mut out[self.output.value(pass, s)];
            for (r, kept) in kept.chunks_exact(row_len).enumerate() {
                let (x, y) = (&x[self.input.plane.row(r)], &mut y[self.output.plane.row(r)]);
                y.iter_mut()
                    .zip(x)
                    .zip(kept)
                    .for_each(|((y, x), kept)| *y = x * self.keep() * f32::from(*kept));
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let len = self.output.plane.dims.len();
        for s in pass.run.clone() {
            let kept = &lane.own[self.id].bytes[self.output.bytes(pass, s, len)];
            let dy = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let dx = &mut dx[self.input.grad(pass, s)];
            dx.iter_mut()
                .zip(dy)
                .zip(kept)
                .for_each(|((dx, dy), kept)| *dx = dy * self.keep() * f32::from(*kept));
        }
        lane.grads[self.input.node] = dx;
    }
}
