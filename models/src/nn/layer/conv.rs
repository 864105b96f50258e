//! Convolution, with ReLU and 2×2 max pooling fused in where they follow.
//!
//! `y[o][i][j] = b[o] + Σ w[o][c][u][v] · x[c][i·s + u − p][j·s + v − p]`
use super::{After, Lane, Layer, Own, OwnLen, Pass, Plane, Slot, Trained, Wanted, sum_lanes};
use crate::nn::graph::{Conv2d, Dims};
use crate::params::Role;
use crate::tensor::kernel::{self as k, ConvGeometry, Isa, PoolRow};
use std::ops::Range;

pub(super) fn dims(conv: &Conv2d, input: Dims) -> Option<Dims> {
    let groups =
        conv.groups > 0 && input.channels.is_multiple_of(conv.groups) && conv.out.is_multiple_of(conv.groups);
    let windows = |extent: usize, i: usize| {
        let (room, step) = (extent.checked_add(2 * conv.padding[i])?, conv.stride[i]);
        (step > 0 && conv.kernel[i] > 0).then_some(())?;
        Some(room.checked_sub(conv.kernel[i])? / step + 1)
    };
    let (height, width) = (windows(input.height, 0)?, windows(input.width, 1)?);
    (groups && conv.out > 0).then_some(Dims { channels: conv.out, height, width })
}

pub(super) fn parameters(conv: &Conv2d, input: Dims) -> Vec<(&'static str, Vec<usize>, Role)> {
    let weight = vec![conv.out, input.channels / conv.groups, conv.kernel[0], conv.kernel[1]];
    let mut all = vec![("weight", weight, Role::Trainable)];
    if conv.bias {
        all.push(("bias", vec![conv.out], Role::Trainable));
    }
    all
}

/// Places of weight and bias, and whether they are trained.
#[derive(Clone, Debug)]
pub(in crate::nn) struct ConvParams {
    pub weight: Range<usize>,
    pub bias: Option<Range<usize>>,
    pub trains: [bool; 2],
}

/// A convolution placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Conv {
    id: usize,
    conv: Conv2d,
    params: ConvParams,
    /// Geometry of one group.
    geo: ConvGeometry,
    /// Geometry of the input gradient as a convolution; a scatter where there is none.
    back: Option<ConvGeometry>,
    input: Slot,
    output: Slot,
    after: After,
    /// The convolution's own result, as a plane with the border that `back` needs.
    dy: Plane,
    input_grad: bool,
}

impl Conv {
    pub(in crate::nn) fn new(
        id: usize,
        conv: Conv2d,
        params: ConvParams,
        (input, output): (Slot, Slot),
        after: After,
        input_grad: bool,
    ) -> Self {
        let from = input.plane.dims;
        let result = dims(&conv, from).expect("the builder has checked the shapes");
        let geo = ConvGeometry {
            out_h: result.height,
            out_w: result.width,
            ci: from.channels / conv.groups,
            co: conv.out / conv.groups,
            kh: conv.kernel[0],
            kw: conv.kernel[1],
            stride_h: conv.stride[0],
            stride_w: conv.stride[1],
            pitch: input.plane.pitch(),
            x_pixel: from.channels,
            y_pixel: conv.out,
        };
        let border = [0, 1].map(|i| (conv.kernel[i] - 1).checked_sub(conv.padding[i]));
        let border = match border {
            [Some(rows), Some(columns)] if input_grad && conv.stride == [1, 1] => Some([rows, columns]),
            _ => None,
        };
        let dy = Plane { dims: result, border: border.unwrap_or_default() };
        let back = border.map(|_| geo.input_grad(from.height, from.width, dy.pitch()));
        Self { id, conv, params, geo, back, input, output, after, dy, input_grad }
    }

    fn groups(&self) -> Range<usize> {
        0..self.conv.groups
    }

    /// Where the padded window of output (0, 0) starts in the input plane, whose border may be wider.
    fn start(&self) -> usize {
        let [rows, columns] = [0, 1].map(|i| self.input.plane.border[i] - self.conv.padding[i]);
        rows * self.geo.pitch + columns * self.geo.x_pixel
    }

    fn weights(&self) -> usize {
        self.geo.taps() * self.geo.co
    }

    fn bias<'a>(&self, params: &'a [f32], group: usize) -> Option<&'a [f32]> {
        self.params.bias.as_ref().map(|b| &params[b.clone()][group * self.geo.co..][..self.geo.co])
    }

    /// Packed weights of a group, and of the way back.
    fn panels<'a>(&self, isa: Isa, packed: &'a [f32], group: usize) -> (&'a [f32], &'a [f32]) {
        let (ahead, back) = (k::packed_len(isa, &self.geo), k::packed_flipped_len(isa, &self.geo));
        let flipped =
            if self.input_grad { &packed[self.conv.groups * ahead + group * back..][..back] } else { &[] };
        (&packed[group * ahead..][..ahead], flipped)
    }

    /// Two rows of the result, as pooling reads them.
    fn pool_row(&self, pitch: usize) -> PoolRow {
        PoolRow { width: self.geo.out_w, channels: self.conv.out, pitch }
    }

    /// Rows of the result into `out`.
    fn rows(&self, pass: &Pass<'_>, rows: Range<usize>, x: &[f32], out: &mut [f32], pitch: usize) {
        for g in self.groups() {
            let (weights, _) = self.panels(pass.isa, &pass.packed[self.id], g);
            let (x, out) = (&x[self.start() + g * self.geo.ci..], &mut out[g * self.geo.co..]);
            k::conv_forward(
                pass.isa,
                &self.geo,
                rows.clone(),
                x,
                weights,
                self.bias(pass.params, g),
                out,
                pitch,
            );
        }
    }

    fn forward_sample(&self, pass: &Pass<'_>, x: &[f32], out: &mut [f32]) {
        let (plane, h) = (&self.output.plane, self.geo.out_h);
        self.rows(pass, 0..h, x, &mut out[plane.origin()..], plane.pitch());
        if self.after == After::Relu {
            (0..h).for_each(|y| k::relu(pass.isa, &mut out[plane.row(y)]));
        }
    }

    fn forward_pooled(
        &self,
        pass: &Pass<'_>,
        x: &[f32],
        out: &mut [f32],
        winners: &mut [u8],
        band: &mut [f32],
    ) {
        let (plane, pitch) = (&self.output.plane, self.dy.row_len());
        for (y, winners) in winners.chunks_exact_mut(plane.row_len()).enumerate() {
            self.rows(pass, 2 * y..2 * y + 2, x, band, pitch);
            k::relu_max_pool2(pass.isa, self.pool_row(pitch), band, &mut out[plane.row(y)], winners);
        }
    }

    /// The gradient of the result before pooling and ReLU, into the plane `dy`; and that of the bias.
    fn result_grad(
        &self,
        pass: &Pass<'_>,
        y: &[f32],
        g: &[f32],
        winners: &[u8],
        own: (&mut [f32], &mut [f32]),
    ) {
        let (dy, bias_grad) = own;
        let trains_bias = self.params.trains[1];
        if self.after == After::ReluPool {
            let (pooled, pitch) = (self.output.plane.row_len(), self.dy.pitch());
            for (i, (g, winners)) in g.chunks_exact(pooled).zip(winners.chunks_exact(pooled)).enumerate() {
                k::unpool2(pass.isa, self.pool_row(pitch), g, winners, &mut dy[self.dy.row(2 * i).start..]);
            }
            if trains_bias {
                k::pool_channel_sums(pass.isa, g, winners, bias_grad);
            }
            return;
        }
        for (i, g) in g.chunks_exact(self.dy.row_len()).enumerate() {
            let dy = &mut dy[self.dy.row(i)];
            dy.copy_from_slice(g);
            if self.after == After::Relu {
                k::relu_backward(pass.isa, &y[self.output.plane.row(i)], dy);
            }
            if trains_bias {
                k::add_channels(pass.isa, dy, bias_grad);
            }
        }
    }

    fn weight_grad(&self, pass: &Pass<'_>, x: &[f32], dy: &[f32], grad: &mut [f32]) {
        for (g, grad) in grad.chunks_exact_mut(self.weights()).enumerate() {
            let (x, dy) = (&x[self.start() + g * self.geo.ci..], &dy[self.dy.origin() + g * self.geo.co..]);
            k::conv_weight_grad(pass.isa, &self.geo, x, dy, self.dy.pitch(), grad);
        }
    }

    fn input_grad(&self, pass: &Pass<'_>, dy: &[f32], dx: &mut [f32], scratch: &mut [f32]) {
        let from = self.input.plane;
        scratch.fill(0.0);
        for g in self.groups() {
            let (_, flipped) = self.panels(pass.isa, &pass.packed[self.id], g);
            let (to, from_h) = (g * self.geo.ci, from.dims.height);
            if let Some(back) = &self.back {
                let dy = &dy[g * self.geo.co..];
                k::conv_input_grad(pass.isa, back, 0..from_h, dy, flipped, &mut dx[to..], from.row_len());
            } else {
                let (dy, scratch) =
                    (&dy[self.dy.origin() + g * self.geo.co..], &mut scratch[self.start() + to..]);
                k::conv_input_grad_scatter(pass.isa, &self.geo, dy, self.dy.pitch(), flipped, scratch);
            }
        }
        if self.back.is_none() {
            dx.chunks_exact_mut(from.row_len())
                .enumerate()
                .for_each(|(y, dx)| dx.copy_from_slice(&scratch[from.row(y)]));
        }
    }

    fn band_len(&self) -> usize {
        if self.after == After::ReluPool { 2 * self.dy.row_len() } else { 0 }
    }

    fn winners(&self) -> usize {
        if self.after == After::ReluPool { self.output.plane.dims.len() } else { 0 }
    }

    fn trains(&self) -> bool {
        self.params.trains[0] || self.params.trains[1]
    }
}

impl Layer for Conv {
    fn own(&self) -> OwnLen {
        let backward = self.trains() || self.input_grad;
        let scatter = if self.input_grad && self.back.is_none() { self.input.plane.len() } else { 0 };
        OwnLen {
            bytes: self.winners(),
            grad: if self.trains() { self.conv.groups * self.weights() + self.conv.out } else { 0 },
            work: self.band_len() + if backward { self.dy.len() + scatter } else { 0 },
            sums: 0,
        }
    }

    fn prepare(&self, isa: Isa, params: &[f32], packed: &mut Vec<f32>) {
        let (ahead, back) = (k::packed_len(isa, &self.geo), k::packed_flipped_len(isa, &self.geo));
        let back = if self.input_grad { back } else { 0 };
        packed.resize(self.conv.groups * (ahead + back), 0.0);
        let (to, flipped) = packed.split_at_mut(self.conv.groups * ahead);
        for (g, w) in params[self.params.weight.clone()].chunks_exact(self.weights()).enumerate() {
            k::pack_conv(isa, &self.geo, w, &mut to[g * ahead..][..ahead]);
            if self.input_grad {
                k::pack_conv_flipped(isa, &self.geo, w, &mut flipped[g * back..][..back]);
            }
        }
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let Own { bytes, work, .. } = &mut lane.own[self.id];
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let out = &mut out[self.output.value(pass, s)];
            if self.after == After::ReluPool {
                let winners = &mut bytes[self.output.bytes(pass, s, self.winners())];
                self.forward_pooled(pass, x, out, winners, &mut work[..self.band_len()]);
            } else {
                self.forward_sample(pass, x, out);
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        let Own { bytes, work, grad, .. } = &mut lane.own[self.id];
        let (dy, scratch) = work[self.band_len()..].split_at_mut(self.dy.len());
        let weights = grad.len().min(self.conv.groups * self.weights());
        let (weight_grad, bias_grad) = grad.split_at_mut(weights);
        for s in pass.run.clone() {
            let y = &lane.values[self.output.node][self.output.value(pass, s)];
            let g = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let winners = &bytes[self.output.bytes(pass, s, self.winners())];
            self.result_grad(pass, y, g, winners, (&mut *dy, &mut *bias_grad));
            if self.params.trains[0] {
                let x = &lane.values[self.input.node][self.input.value(pass, s)];
                self.weight_grad(pass, x, dy, weight_grad);
            }
            if self.input_grad {
                self.input_grad(pass, dy, &mut dx[self.input.grad(pass, s)], scratch);
            }
        }
        lane.grads[self.input.node] = dx;
    }

    fn trained(&self) -> Vec<Trained> {
        let ranges = [Some(self.params.weight.clone()), self.params.bias.clone()].into_iter().enumerate();
        ranges
            .filter(|(which, _)| self.params.trains[*which])
            .filter_map(|(which, range)| range.map(|range| Trained { which, row: range.len(), range }))
            .collect()
    }

    fn gradient(&self, _: Isa, wanted: &Wanted<'_>, lanes: &[Lane], work: &mut Vec<f32>, out: &mut [f32]) {
        let all = self.conv.groups * self.weights();
        if wanted.which == 1 {
            return sum_lanes(lanes, self.id, all..all + self.conv.out, out);
        }
        work.clear();
        work.resize(all, 0.0);
        sum_lanes(lanes, self.id, 0..all, work);
        for (sum, out) in work.chunks_exact(self.weights()).zip(out.chunks_exact_mut(self.weights())) {
            k::unpack_weight_grad(&self.geo, sum, out);
        }
    }
}
