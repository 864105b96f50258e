//! Batch normalisation per channel, with ReLU and 2×2 max pooling fused in where they follow.
//!
//! `z = γ (y − mean) / √(var + ε) + β`. In training over the whole batch, wherever its samples are: lanes meet once on the way
//! forward (Σ y, Σ y²) and once on the way back (Σ g, Σ g·y). The biased variance normalises; the running variance takes the
//! unbiased one as its share, the momentum, as in PyTorch. Where it is not trained, the running statistics normalise.
use super::{After, Barrier, Lane, Layer, Own, OwnLen, Pass, Plane, Recalls, Slot, Trained, Wanted};
use crate::nn::graph::Dims;
use crate::params::Role;
use crate::tensor::Aligned;
use crate::tensor::kernel::{self as k, BnBackward, Isa, PoolRow};
use std::ops::Range;

pub(super) fn parameters(input: Dims) -> Vec<(&'static str, Vec<usize>, Role)> {
    let entry = |name, role| (name, vec![input.channels], role);
    vec![
        entry("weight", Role::Trainable),
        entry("bias", Role::Trainable),
        entry("running_mean", Role::Statistic),
        entry("running_var", Role::Statistic),
    ]
}

/// A batch normalisation placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct BatchNorm {
    pub id: usize,
    pub epsilon: f32,
    pub momentum: f64,
    pub input: Slot,
    pub output: Slot,
    pub after: After,
    /// Weight, bias, running mean, running variance.
    pub params: [Range<usize>; 4],
    pub trains: [bool; 2],
    /// Whether the batch's own statistics normalise.
    pub of_batch: bool,
    pub input_grad: bool,
}

/// Coefficients per channel, in this order, in the layer's packed buffer.
struct Coefficients<'a> {
    scale: &'a [f32],
    shift: &'a [f32],
    back: BnBackward<'a>,
    mean: &'a [f32],
    inverse: &'a [f32],
}

impl<'a> Coefficients<'a> {
    const COUNT: usize = 7;

    fn of(packed: &'a [f32], c: usize) -> Self {
        let at = |i: usize| &packed[i * c..(i + 1) * c];
        let back = BnBackward { gain: at(2), offset: at(3), slope: at(4) };
        Self { scale: at(0), shift: at(1), back, mean: at(5), inverse: at(6) }
    }
}

impl BatchNorm {
    fn channels(&self) -> usize {
        self.input.plane.dims.channels
    }

    fn pool_row(&self, plane: &Plane) -> PoolRow {
        PoolRow { width: plane.dims.width, channels: self.channels(), pitch: plane.pitch() }
    }

    /// Folds mean and variance into one factor and one summand per channel.
    fn fold(&self, params: &[f32], moments: impl Fn(usize) -> (f64, f64), packed: &mut [f32]) {
        let c = self.channels();
        for j in 0..c {
            let (mean, var) = moments(j);
            let inverse = 1.0 / libm::sqrt(var + f64::from(self.epsilon));
            let gain = f64::from(params[self.params[0].start + j]) * inverse;
            let shift = f64::from(params[self.params[1].start + j]) - gain * mean;
            for (i, v) in [gain, shift, gain, 0.0, 0.0, mean, inverse].into_iter().enumerate() {
                packed[i * c + j] = v as f32;
            }
        }
    }

    fn forward_sample(
        &self,
        isa: Isa,
        co: &Coefficients<'_>,
        y: &[f32],
        out: &mut [f32],
        winners: &mut [u8],
    ) {
        let (from, to) = (&self.input.plane, &self.output.plane);
        for row in 0..to.dims.height {
            let out = &mut out[to.row(row)];
            match self.after {
                After::Nothing => k::scale_shift(isa, &y[from.row(row)], co.scale, co.shift, out),
                After::Relu => k::scale_shift_relu(isa, &y[from.row(row)], co.scale, co.shift, out),
                After::ReluPool => {
                    let (pair, len) = (&y[from.row(2 * row).start..], to.row_len());
                    let winners = &mut winners[row * len..(row + 1) * len];
                    k::bn_relu_max_pool2(isa, self.pool_row(from), pair, co.scale, co.shift, out, winners);
                }
            }
        }
    }

    /// Adds Σ g and Σ g·y of a sample; clears `g` where ReLU has cut.
    fn grad_sums(
        &self,
        isa: Isa,
        co: &Coefficients<'_>,
        y: &[f32],
        g: &mut [f32],
        winners: &[u8],
        sums: &mut [f32],
    ) {
        let (from, len) = (&self.input.plane, self.output.plane.row_len());
        let (sum, product) = sums.split_at_mut(self.channels());
        for (row, g) in g.chunks_exact_mut(len).enumerate() {
            match self.after {
                After::Nothing => k::grad_sums(isa, g, &y[from.row(row)], sum, product),
                After::Relu => k::relu_grad_sums(isa, g, &y[from.row(row)], co.scale, co.shift, sum, product),
                After::ReluPool => {
                    let (pair, winners) =
                        (&y[from.row(2 * row).start..], &winners[row * len..(row + 1) * len]);
                    k::pool_grad_sums(isa, self.pool_row(from), g, winners, pair, sum, product);
                }
            }
        }
    }

    fn backward_sample(
        &self,
        isa: Isa,
        back: BnBackward<'_>,
        y: &[f32],
        g: &[f32],
        winners: &[u8],
        dy: &mut [f32],
    ) {
        let (from, to) = (&self.input.plane, Plane::bare(self.input.plane.dims));
        let len = self.output.plane.row_len();
        if self.after != After::ReluPool {
            for (row, g) in g.chunks_exact(len).enumerate() {
                k::bn_backward(isa, g, &y[from.row(row)], back, &mut dy[to.row(row)]);
            }
            return;
        }
        for (row, (g, winners)) in g.chunks_exact(len).zip(winners.chunks_exact(len)).enumerate() {
            let (pair, dy) = (&y[from.row(2 * row).start..], &mut dy[to.row(2 * row).start..]);
            k::bn_unpool2(isa, self.pool_row(&to), g, winners, pair, from.pitch(), back, dy);
        }
        if from.dims.height % 2 == 1 {
            // Pooling has dropped the last row: its gradient is zero, that of the normalisation is not.
            let last = from.dims.height - 1;
            k::scale_shift(isa, &y[from.row(last)], back.slope, back.offset, &mut dy[to.row(last)]);
        }
    }

    fn winners(&self) -> usize {
        if self.after == After::ReluPool { self.output.plane.dims.len() } else { 0 }
    }

    /// Sums of lanes: number `which` of the four (Σ y, Σ y², Σ g, Σ g·y).
    fn total(&self, lanes: &[Lane], which: usize, channel: usize) -> f64 {
        lanes.iter().map(|l| l.own[self.id].sums[which * self.channels() + channel]).sum()
    }

    fn count(&self, samples: usize) -> f64 {
        (samples * self.input.plane.dims.pixels()) as f64
    }

    /// Adds the `f32` sums of one sample to the lane's, from number `which` on.
    fn add(&self, which: usize, sample: &mut [f32], sums: &mut [f64]) {
        let c = self.channels();
        sums[which * c..(which + 2) * c].iter_mut().zip(sample.iter()).for_each(|(s, v)| *s += f64::from(*v));
        sample.fill(0.0);
    }

    fn input_gradients(&self, pass: &Pass<'_>, lane: &mut Lane) {
        if !self.input_grad {
            return;
        }
        let back = Coefficients::of(&pass.packed[self.id], self.channels()).back;
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            let g = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let winners = &lane.own[self.id].bytes[self.output.bytes(pass, s, self.winners())];
            self.backward_sample(pass.isa, back, y, g, winners, &mut dx[self.input.grad(pass, s)]);
        }
        lane.grads[self.input.node] = dx;
    }
}

impl Layer for BatchNorm {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: true, output: false, batch: false }
    }

    fn own(&self) -> OwnLen {
        let c = self.channels();
        OwnLen {
            bytes: self.winners(),
            work: 2 * c,
            sums: 4 * c,
            packed: Coefficients::COUNT * c,
            ..OwnLen::default()
        }
    }

    fn prepare(&self, _: Isa, params: &[f32], packed: &mut Aligned) {
        packed.fit(Coefficients::COUNT * self.channels());
        if !self.of_batch {
            let at = |i: usize, j: usize| f64::from(params[self.params[i].start + j]);
            self.fold(params, |j| (at(2, j), at(3, j)), packed);
        }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let co = Coefficients::of(&pass.packed[self.id], self.channels());
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            let winners = &mut lane.own[self.id].bytes[self.output.bytes(pass, s, self.winners())];
            self.forward_sample(pass.isa, &co, y, &mut out[self.output.value(pass, s)], winners);
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let co = Coefficients::of(&pass.packed[self.id], self.channels());
        let mut g = std::mem::take(&mut lane.grads[self.output.node]);
        let Own { bytes, work, sums, .. } = &mut lane.own[self.id];
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            let winners = &bytes[self.output.bytes(pass, s, self.winners())];
            self.grad_sums(pass.isa, &co, y, &mut g[self.output.grad(pass, s)], winners, work);
            self.add(2, work, sums);
        }
        lane.grads[self.output.node] = g;
        if !self.of_batch {
            self.input_gradients(pass, lane);
        }
    }

    fn trained(&self) -> Vec<Trained> {
        let both = (0..2).filter(|&which| self.trains[which]);
        both.map(|which| Trained { which, range: self.params[which].clone(), row: self.channels() }).collect()
    }

    fn gradient(&self, _: Isa, wanted: &Wanted<'_>, lanes: &[Lane], _: &mut Vec<f32>, out: &mut [f32]) {
        let c = self.channels();
        let co = Coefficients::of(wanted.packed, c);
        for (j, out) in out.iter_mut().enumerate() {
            let g = self.total(lanes, 2, j);
            let slope = (self.total(lanes, 3, j) - f64::from(co.mean[j]) * g) * f64::from(co.inverse[j]);
            *out += if wanted.which == 0 { slope } else { g } as f32;
        }
    }

    fn barrier(&self) -> Option<&dyn Barrier> {
        self.of_batch.then_some(self)
    }
}

impl Barrier for BatchNorm {
    fn collect(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let Own { work, sums, .. } = &mut lane.own[self.id];
        let plane = &self.input.plane;
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            let (sum, squares) = work.split_at_mut(self.channels());
            (0..plane.dims.height)
                .for_each(|row| k::channel_sums(pass.isa, &y[plane.row(row)], sum, squares));
            self.add(0, work, sums);
        }
    }

    fn meet(&self, lanes: &[Lane], samples: usize, params: &mut [f32], packed: &mut [f32]) {
        let n = self.count(samples);
        let moments = |j: usize| {
            let mean = self.total(lanes, 0, j) / n;
            (mean, (self.total(lanes, 1, j) / n - mean * mean).max(0.0))
        };
        self.fold(params, moments, packed);
        for j in 0..self.channels() {
            let (mean, var) = moments(j);
            for (i, new) in [(2, mean), (3, var * n / (n - 1.0).max(1.0))] {
                let running = &mut params[self.params[i].start + j];
                *running = ((1.0 - self.momentum) * f64::from(*running) + self.momentum * new) as f32;
            }
        }
    }

    fn meet_backward(&self, lanes: &[Lane], samples: usize, params: &[f32], packed: &mut [f32]) {
        let (c, n) = (self.channels(), self.count(samples));
        for j in 0..c {
            let (mean, inverse) = (f64::from(packed[5 * c + j]), f64::from(packed[6 * c + j]));
            let g = self.total(lanes, 2, j);
            let slope = (self.total(lanes, 3, j) - mean * g) * inverse;
            let gain = f64::from(params[self.params[0].start + j]) * inverse;
            packed[3 * c + j] = (gain / n * (slope * inverse * mean - g)) as f32;
            packed[4 * c + j] = (-gain / n * slope * inverse) as f32;
        }
    }

    fn finish_backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        self.input_gradients(pass, lane);
    }
}
