//! Group normalisation: each sample's channels, in groups, to mean 0 and variance 1, then `γ x̂ + β` per channel.
use super::{Lane, Layer, Own, OwnLen, Pass, Recalls, Slot, Trained, Wanted, sum_lanes};
use crate::nn::graph::Dims;
use crate::params::Role;
use crate::tensor::kernel::{self as k, BnBackward, Isa};
use std::ops::Range;

pub(super) fn dims(groups: usize, input: Dims) -> Option<Dims> {
    (groups > 0 && input.channels.is_multiple_of(groups)).then_some(input)
}

pub(super) fn parameters(input: Dims) -> Vec<(&'static str, Vec<usize>, Role)> {
    let entry = |name| (name, vec![input.channels], Role::Trainable);
    vec![entry("weight"), entry("bias")]
}

/// A group normalisation placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct GroupNorm {
    pub id: usize,
    pub groups: usize,
    pub epsilon: f32,
    pub input: Slot,
    pub output: Slot,
    /// Weight and bias.
    pub params: [Range<usize>; 2],
    pub trains: [bool; 2],
    pub input_grad: bool,
}

impl GroupNorm {
    fn channels(&self) -> usize {
        self.input.plane.dims.channels
    }

    fn per_group(&self) -> usize {
        self.channels() / self.groups
    }

    /// Values in a group.
    fn count(&self) -> f64 {
        (self.per_group() * self.input.plane.dims.pixels()) as f64
    }

    /// Sums per channel of a sample, by `add` for each of its rows.
    fn sums(&self, sums: &mut [f32], add: impl Fn(usize, &mut [f32], &mut [f32])) {
        sums.fill(0.0);
        let (a, b) = sums.split_at_mut(self.channels());
        (0..self.input.plane.dims.height).for_each(|row| add(row, a, b));
    }

    /// A group's share of sums per channel, weighted.
    fn of_group(&self, group: usize, sums: &[f32], weight: impl Fn(usize) -> f64) -> f64 {
        let channels = group * self.per_group()..(group + 1) * self.per_group();
        channels.map(|c| weight(c) * f64::from(sums[c])).sum()
    }

    /// Mean and inverse deviation of each group, from Σ y and Σ y² per channel.
    fn moments(&self, isa: Isa, y: &[f32], sums: &mut [f32], moments: &mut [f64]) {
        let plane = &self.input.plane;
        self.sums(sums, |row, a, b| k::channel_sums(isa, &y[plane.row(row)], a, b));
        for g in 0..self.groups {
            let mean = self.of_group(g, sums, |_| 1.0) / self.count();
            let square = self.of_group(g, &sums[self.channels()..], |_| 1.0) / self.count();
            let var = (square - mean * mean).max(0.0);
            moments[2 * g] = mean;
            moments[2 * g + 1] = 1.0 / libm::sqrt(var + f64::from(self.epsilon));
        }
    }

    fn weight(&self, params: &[f32], which: usize, channel: usize) -> f64 {
        f64::from(params[self.params[which].start + channel])
    }

    /// Coefficients per channel from a rule on (channel, mean, inverse deviation).
    fn per_channel(&self, moments: &[f64], to: &mut [f32], rule: impl Fn(usize, f64, f64) -> f64) {
        for (c, to) in to.iter_mut().enumerate() {
            let g = c / self.per_group();
            *to = rule(c, moments[2 * g], moments[2 * g + 1]) as f32;
        }
    }

    /// Parameter gradients and coefficients of the input gradient `gain·g + offset + slope·y`, from Σ g and Σ g·y per channel.
    fn backward_coefficients(
        &self,
        params: &[f32],
        moments: &[f64],
        sums: &[f32],
        grad: &mut [f32],
        co: &mut [f32],
    ) {
        let c = self.channels();
        let gamma = |j| self.weight(params, 0, j);
        for j in 0..c.min(grad.len()) {
            let (mean, inverse) =
                (moments[2 * (j / self.per_group())], moments[2 * (j / self.per_group()) + 1]);
            grad[j] += ((f64::from(sums[c + j]) - mean * f64::from(sums[j])) * inverse) as f32;
            grad[c + j] += sums[j];
        }
        let (gain, rest) = co.split_at_mut(c);
        let (offset, slope) = rest.split_at_mut(c);
        let group = |j: usize, mean: f64, inverse: f64| {
            let (g, gy) = (
                self.of_group(j / self.per_group(), sums, gamma),
                self.of_group(j / self.per_group(), &sums[c..], gamma),
            );
            let along = (gy - mean * g) * inverse;
            (g / self.count(), along * inverse / self.count())
        };
        self.per_channel(moments, gain, |j, _, inverse| gamma(j) * inverse);
        self.per_channel(moments, offset, |j, mean, inverse| {
            let (g, along) = group(j, mean, inverse);
            inverse * (along * mean - g)
        });
        self.per_channel(moments, slope, |j, mean, inverse| -inverse * group(j, mean, inverse).1);
    }
}

impl Layer for GroupNorm {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: true, output: false, batch: false }
    }

    fn own(&self) -> OwnLen {
        let c = self.channels();
        OwnLen {
            grad: if self.trains == [false; 2] { 0 } else { 2 * c },
            work: 5 * c,
            sums: 2 * self.groups,
            ..OwnLen::default()
        }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let Own { work, sums: moments, .. } = &mut lane.own[self.id];
        let (c, from, to) = (self.channels(), &self.input.plane, &self.output.plane);
        let (sums, co) = work.split_at_mut(2 * c);
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            self.moments(pass.isa, y, sums, moments);
            let (scale, shift) = co[..2 * c].split_at_mut(c);
            let gamma = |j| self.weight(pass.params, 0, j);
            self.per_channel(moments, scale, |j, _, inverse| gamma(j) * inverse);
            self.per_channel(moments, shift, |j, mean, inverse| {
                self.weight(pass.params, 1, j) - gamma(j) * inverse * mean
            });
            let out = &mut out[self.output.value(pass, s)];
            (0..to.dims.height).for_each(|row| {
                k::scale_shift(pass.isa, &y[from.row(row)], scale, shift, &mut out[to.row(row)]);
            });
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let Own { work, sums: moments, grad, .. } = &mut lane.own[self.id];
        let (c, from) = (self.channels(), &self.input.plane);
        let (sums, co) = work.split_at_mut(2 * c);
        let row_len = from.row_len();
        for s in pass.run.clone() {
            let y = &lane.values[self.input.node][self.input.value(pass, s)];
            let g = &lane.grads[self.output.node][self.output.grad(pass, s)];
            self.moments(pass.isa, y, sums, moments);
            self.sums(sums, |row, a, b| {
                k::grad_sums(pass.isa, &g[row * row_len..][..row_len], &y[from.row(row)], a, b);
            });
            self.backward_coefficients(pass.params, moments, sums, grad, co);
            if self.input_grad {
                let back = BnBackward { gain: &co[..c], offset: &co[c..2 * c], slope: &co[2 * c..] };
                let dx = dx[self.input.grad(pass, s)].chunks_exact_mut(row_len);
                for (row, (g, dx)) in g.chunks_exact(row_len).zip(dx).enumerate() {
                    k::bn_backward(pass.isa, g, &y[from.row(row)], back, dx);
                }
            }
        }
        lane.grads[self.input.node] = dx;
    }

    fn trained(&self) -> Vec<Trained> {
        let both = (0..2).filter(|&which| self.trains[which]);
        both.map(|which| Trained { which, range: self.params[which].clone(), row: self.channels() }).collect()
    }

    fn gradient(&self, _: Isa, wanted: &Wanted<'_>, lanes: &[Lane], _: &mut Vec<f32>, out: &mut [f32]) {
        let c = self.channels();
        sum_lanes(lanes, self.id, wanted.which * c..(wanted.which + 1) * c, out);
    }
}
