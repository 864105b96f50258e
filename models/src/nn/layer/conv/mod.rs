//! Convolution, with ReLU and 2×2 max pooling fused in where they follow.
//!
//! `y[o][i][j] = b[o] + Σ w[o][c][u][v] · x[c][i·s + u·d − p][j·s + v·d − p]`
mod depthwise;
mod dilated;
mod direct;
mod product;
mod winograd;

use depthwise::Depthwise;
use dilated::Dilated;
use direct::Direct;
use product::{At, Product};
use winograd::Winograd;

use super::{After, Lane, Layer, Own, OwnLen, Pass, Plane, Recalls, Slot, Trained, Wanted, sum_lanes};
use crate::nn::graph::{Conv2d, Dims};
use crate::nn::isa;
use crate::params::Role;
use crate::tensor::Aligned;
use crate::tensor::kernel::{self as k, Isa, PoolRow};
use std::ops::Range;

/// The largest window and padding.
const MOST: usize = 1 << 12;

pub(super) fn dims(conv: &Conv2d, input: Dims) -> Option<Dims> {
    let groups =
        conv.groups > 0 && input.channels.is_multiple_of(conv.groups) && conv.out.is_multiple_of(conv.groups);
    let windows = |extent: usize, i: usize| {
        let (room, step) = (extent.checked_add(conv.padding[i].checked_mul(2)?)?, conv.stride[i]);
        let reach = conv.reach()?[i];
        (step > 0 && conv.dilation[i] > 0 && reach <= MOST && conv.padding[i] <= MOST).then_some(())?;
        Some(room.checked_sub(reach)? / step + 1)
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

/// Where the padded window of output (0, 0) starts in an input plane, whose border may be wider than the padding.
fn start(conv: &Conv2d, plane: &Plane) -> usize {
    let [rows, columns] = [0, 1].map(|i| plane.border[i] - conv.padding[i]);
    rows * plane.pitch() + columns * plane.dims.channels
}

/// The border that an output gradient needs for the input gradient to be a convolution, if it can be one.
fn back_border(conv: &Conv2d) -> Option<[usize; 2]> {
    let border = |i: usize| (conv.kernel[i] - 1).checked_sub(conv.padding[i]);
    (conv.stride == [1, 1]).then_some([border(0)?, border(1)?])
}

/// A convolution placed in a plan.
#[derive(Debug)]
pub(in crate::nn) struct Conv {
    id: usize,
    params: ConvParams,
    product: Box<dyn Product>,
    input: Slot,
    output: Slot,
    after: After,
    /// The convolution's own result, as a plane with the border that the input gradient needs.
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
        let result = dims(&conv, input.plane.dims).expect("the builder has checked the shapes");
        let (dilated, conv) = (conv, dilated::spread(conv));
        let dy =
            Plane { dims: result, border: back_border(&conv).filter(|_| input_grad).unwrap_or_default() };
        let direct = || Direct::new(conv, &input, dy, input_grad);
        let product: Box<dyn Product> = if dilated.dilation != [1, 1] {
            Box::new(Dilated::new(dilated, input.plane.dims, direct()))
        } else if let Some(winograd) = Winograd::new(conv, &input, dy, input_grad) {
            Box::new(winograd)
        } else if let Some(depthwise) = Depthwise::new(conv, &input, dy, input_grad) {
            Box::new(depthwise)
        } else {
            Box::new(direct())
        };
        Self { id, params, product, input, output, after, dy, input_grad }
    }

    fn at<'a>(&self, pass: &Pass<'a>) -> At<'a> {
        let bias = self.params.bias.as_ref().map(|b| &pass.params[b.clone()]);
        At { isa: pass.isa, packed: &pass.packed[self.id][..self.product.packed(pass.isa)], bias }
    }

    /// Two rows of the result, as pooling reads them.
    fn pool_row(&self, pitch: usize) -> PoolRow {
        PoolRow { width: self.dy.dims.width, channels: self.dy.dims.channels, pitch }
    }

    /// Calls `f` with bands of the first `rows` rows.
    fn bands(&self, rows: usize, f: impl FnMut(Range<usize>)) {
        (0..rows).step_by(self.product.band()).map(|y| y..rows.min(y + self.product.band())).for_each(f);
    }

    fn forward_sample(&self, pass: &Pass<'_>, x: &[f32], out: &mut [f32], work: &mut [f32]) {
        let (plane, at) = (&self.output.plane, self.at(pass));
        self.bands(self.dy.dims.height, |rows| {
            self.product.rows(
                at,
                rows.clone(),
                x,
                work,
                &mut out[plane.row(rows.start).start..],
                plane.pitch(),
            );
            if self.after == After::Relu {
                rows.for_each(|y| k::relu(pass.isa, &mut out[plane.row(y)]));
            }
        });
    }

    fn forward_pooled(
        &self,
        pass: &Pass<'_>,
        x: &[f32],
        out: &mut [f32],
        winners: &mut [u8],
        work: &mut [f32],
    ) {
        let (plane, pitch) = (&self.output.plane, self.dy.row_len());
        let (band, work) = work.split_at_mut(self.band_len());
        self.bands(2 * plane.dims.height, |rows| {
            self.product.rows(self.at(pass), rows.clone(), x, work, band, pitch);
            for (y, pair) in (rows.start / 2..rows.end / 2).zip(band.chunks_exact(2 * pitch)) {
                let winners = &mut winners[y * plane.row_len()..(y + 1) * plane.row_len()];
                k::relu_max_pool2(pass.isa, self.pool_row(pitch), pair, &mut out[plane.row(y)], winners);
            }
        });
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

    fn band_len(&self) -> usize {
        if self.after == After::ReluPool { self.product.band() * self.dy.row_len() } else { 0 }
    }

    fn winners(&self) -> usize {
        if self.after == After::ReluPool { self.output.plane.dims.len() } else { 0 }
    }

    fn weight_sums(&self) -> usize {
        if self.params.trains[0] { self.product.sums() } else { 0 }
    }

    fn bias_sums(&self) -> usize {
        if self.params.trains[1] { self.dy.dims.channels } else { 0 }
    }
}

impl Layer for Conv {
    fn recalls(&self) -> Recalls {
        Recalls { inputs: self.params.trains[0], output: self.after == After::Relu, batch: false }
    }

    fn own(&self) -> OwnLen {
        let backward = if self.params.trains != [false; 2] || self.input_grad { self.dy.len() } else { 0 };
        OwnLen {
            bytes: self.winners(),
            grad: self.weight_sums() + self.bias_sums(),
            work: backward,
            scratch: self.band_len() + self.product.work(),
            sums: 0,
            packed: self.product.packed(isa()) + self.product.packing(),
            applying: self.weight_sums() + self.product.packing(),
        }
    }

    fn prepare(&self, isa: Isa, params: &[f32], packed: &mut Aligned) {
        let len = self.product.packed(isa);
        packed.fit(len + self.product.packing());
        let (packed, scratch) = packed.split_at_mut(len);
        self.product.pack(isa, &params[self.params.weight.clone()], packed, scratch);
    }

    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut out = std::mem::take(&mut lane.values[self.output.node]);
        let Own { bytes, scratch, .. } = &mut lane.own[self.id];
        for s in pass.run.clone() {
            let x = &lane.values[self.input.node][self.input.value(pass, s)];
            let out = &mut out[self.output.value(pass, s)];
            if self.after == After::ReluPool {
                let winners = &mut bytes[self.output.bytes(pass, s, self.winners())];
                self.forward_pooled(pass, x, out, winners, scratch);
            } else {
                self.forward_sample(pass, x, out, scratch);
            }
        }
        lane.values[self.output.node] = out;
    }

    fn backward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let mut dx = std::mem::take(&mut lane.grads[self.input.node]);
        // The gradient plane's border is never written: it stays zero.
        let Own { bytes, work: dy, scratch: work, grad, .. } = &mut lane.own[self.id];
        let (weight_grad, bias_grad) = grad.split_at_mut(self.weight_sums());
        for s in pass.run.clone() {
            let y = match self.after {
                After::Relu => &lane.values[self.output.node][self.output.value(pass, s)],
                _ => &[],
            };
            let g = &lane.grads[self.output.node][self.output.grad(pass, s)];
            let winners = &bytes[self.output.bytes(pass, s, self.winners())];
            self.result_grad(pass, y, g, winners, (&mut *dy, &mut *bias_grad));
            if self.params.trains[0] {
                let x = &lane.values[self.input.node][self.input.value(pass, s)];
                self.product.weight_grad(pass.isa, x, dy, work, weight_grad);
            }
            if self.input_grad {
                self.product.input_grad(self.at(pass), dy, &mut dx[self.input.grad(pass, s)], work);
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
        let all = self.weight_sums();
        if wanted.which == 1 {
            return sum_lanes(lanes, self.id, all..all + self.dy.dims.channels, out);
        }
        work.clear();
        work.resize(all + self.product.packing(), 0.0);
        let (sums, scratch) = work.split_at_mut(all);
        sum_lanes(lanes, self.id, 0..all, sums);
        self.product.unpack(sums, out, scratch);
    }
}
