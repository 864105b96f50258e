//! Convolution with windows three columns wide by Winograd's F(2, 3) along rows: a third fewer multiplications in all three
//! products. The rounding differs from the direct way's in the last bits, and is the same wherever the network runs.
use super::super::{Plane, Slot};
use super::{At, Product};
use crate::nn::graph::Conv2d;
use crate::tensor::kernel::{self as k, ConvGeometry, Isa, PairRows};
use std::ops::Range;

/// A convolution of stride 1 with windows three columns wide over an even number of columns.
#[derive(Debug)]
pub(super) struct Winograd {
    /// The convolution over one transformed plane: windows one column wide, all rows as one.
    ahead: ConvGeometry,
    /// The same for the input gradient, over transformed planes of the output gradient.
    back: ConvGeometry,
    /// The whole window, for unpacking.
    window: ConvGeometry,
    start: usize,
    input: Plane,
    dy: Plane,
    input_grad: bool,
}

/// Input channels from which the transforms cost less than they save.
const WORTHWHILE: usize = 8;

impl Winograd {
    /// The convolution, if it is of this kind.
    pub(super) fn new(conv: Conv2d, input: &Slot, dy: Plane, input_grad: bool) -> Option<Self> {
        let (from, to) = (input.plane.dims, dy.dims);
        let plain = conv.kernel[1] == 3 && conv.stride == [1, 1] && conv.groups == 1;
        let even = from.width.is_multiple_of(2) && to.width.is_multiple_of(2);
        let fits = super::back_border(&conv).is_some() && from.channels.min(conv.out) >= WORTHWHILE;
        (plain && even && fits).then_some(())?;
        let one_row = |pixels: usize, pairs: usize, ci: usize, co: usize| ConvGeometry {
            out_h: 1,
            out_w: pixels * pairs,
            ci,
            co,
            kh: conv.kernel[0],
            kw: 1,
            stride_h: 1,
            stride_w: 1,
            pitch: pairs * ci,
            x_pixel: ci,
            y_pixel: co,
        };
        let ahead = one_row(to.height, to.width / 2, from.channels, conv.out);
        let back = one_row(from.height, from.width / 2, conv.out, from.channels);
        let window = ConvGeometry { kw: 3, ..ahead };
        let start = super::start(&conv, &input.plane);
        Some(Self { ahead, back, window, start, input: input.plane, dy, input_grad })
    }

    /// The rows of the bordered input that the windows see.
    fn seen(&self) -> PairRows {
        let (to, channels) = (self.dy.dims, self.ahead.ci);
        PairRows {
            rows: to.height + self.ahead.kh - 1,
            pairs: to.width / 2,
            channels,
            pitch: self.input.pitch(),
        }
    }

    /// All rows of the output gradient with its border.
    fn seen_back(&self) -> PairRows {
        let (from, channels) = (self.input.dims, self.ahead.co);
        PairRows {
            rows: from.height + self.ahead.kh - 1,
            pairs: from.width / 2,
            channels,
            pitch: self.dy.pitch(),
        }
    }

    fn out_rows(&self, rows: usize, pitch: usize) -> PairRows {
        PairRows { rows, pairs: self.dy.dims.width / 2, channels: self.ahead.co, pitch }
    }

    /// Floats of the products of a whole sample.
    fn products(geo: &ConvGeometry) -> usize {
        4 * geo.out_w * geo.co
    }

    /// The four convolutions over transformed planes.
    fn multiply(isa: Isa, geo: &ConvGeometry, v: &[f32], packed: &[f32], m: &mut [f32]) {
        let quarters = v.chunks_exact(v.len() / 4).zip(packed.chunks_exact(packed.len() / 4));
        for ((v, packed), m) in quarters.zip(m.chunks_exact_mut(geo.out_w * geo.co)) {
            k::conv_forward(isa, geo, 0..1, v, packed, None, m, geo.out_w * geo.co);
        }
    }

    /// Scratch: transformed planes first, products behind them.
    fn split<'a>(
        work: &'a mut [f32],
        transformed: &PairRows,
        products: usize,
    ) -> (&'a mut [f32], &'a mut [f32]) {
        let (v, rest) = work.split_at_mut(4 * transformed.quarter());
        (v, &mut rest[..products])
    }

    fn panels(&self, isa: Isa) -> (usize, usize) {
        let back = if self.input_grad { 4 * k::packed_flipped_len(isa, &self.ahead) } else { 0 };
        (4 * k::packed_len(isa, &self.ahead), back)
    }
}

impl Product for Winograd {
    fn packed(&self, isa: Isa) -> usize {
        let (ahead, back) = self.panels(isa);
        ahead + back
    }

    fn pack(&self, isa: Isa, w: &[f32], packed: &mut [f32]) {
        let (ahead, back) = self.panels(isa);
        let (to, flipped) = packed.split_at_mut(ahead);
        let mut part = vec![0.0; w.len() / 3];
        for q in 0..4 {
            let windows = part.iter_mut().zip(w.chunks_exact(3));
            windows.for_each(|(u, g)| *u = k::winograd_weights([g[0], g[1], g[2]])[q]);
            k::pack_conv(isa, &self.ahead, &part, &mut to[q * ahead / 4..(q + 1) * ahead / 4]);
            if self.input_grad {
                // Turned around, the window's ends change places.
                let q = [3, 1, 2, 0][q];
                k::pack_conv_flipped(isa, &self.ahead, &part, &mut flipped[q * back / 4..(q + 1) * back / 4]);
            }
        }
    }

    fn work(&self) -> usize {
        let ahead = 4 * self.seen().quarter() + Self::products(&self.ahead);
        let back = 4 * self.seen_back().quarter() + Self::products(&self.back);
        ahead.max(if self.input_grad { back } else { 0 })
    }

    fn sums(&self) -> usize {
        4 * self.ahead.taps() * self.ahead.co
    }

    fn begin(&self, at: At<'_>, x: &[f32], work: &mut [f32]) {
        let (v, m) = Self::split(work, &self.seen(), Self::products(&self.ahead));
        k::winograd_input(at.isa, self.seen(), &x[self.start..], v);
        Self::multiply(at.isa, &self.ahead, v, &at.packed[..self.panels(at.isa).0], m);
    }

    fn rows(&self, at: At<'_>, rows: Range<usize>, _: &[f32], work: &[f32], out: &mut [f32], pitch: usize) {
        let m = &work[4 * self.seen().quarter()..][..Self::products(&self.ahead)];
        k::winograd_output(at.isa, self.out_rows(rows.len(), pitch), m, rows.start, at.bias, out);
    }

    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], work: &mut [f32], sums: &mut [f32]) {
        let (v, dm) = Self::split(work, &self.seen(), Self::products(&self.ahead));
        k::winograd_input(isa, self.seen(), &x[self.start..], v);
        let rows = self.out_rows(self.dy.dims.height, self.dy.pitch());
        k::winograd_grad(isa, rows, &dy[self.dy.origin()..], dm);
        let quarter = self.ahead.out_w * self.ahead.co;
        let parts = v.chunks_exact(self.seen().quarter()).zip(dm.chunks_exact(quarter));
        for ((v, dm), sums) in parts.zip(sums.chunks_exact_mut(self.ahead.taps() * self.ahead.co)) {
            k::conv_weight_grad(isa, &self.ahead, v, dm, quarter, sums);
        }
    }

    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]) {
        let (v, m) = Self::split(work, &self.seen_back(), Self::products(&self.back));
        k::winograd_input(at.isa, self.seen_back(), dy, v);
        Self::multiply(at.isa, &self.back, v, &at.packed[self.panels(at.isa).0..], m);
        let (dims, pitch) = (self.input.dims, self.input.row_len());
        let rows = PairRows { rows: dims.height, pairs: dims.width / 2, channels: dims.channels, pitch };
        k::winograd_output(at.isa, rows, m, 0, None, dx);
    }

    fn unpack(&self, sums: &[f32], out: &mut [f32]) {
        let (taps, co, quarter) = (self.ahead.taps(), self.ahead.co, sums.len() / 4);
        let mut whole = vec![0.0; 3 * quarter];
        let row = self.ahead.ci * co;
        for ky in 0..taps / self.ahead.ci {
            for i in 0..row {
                let u = [0, 1, 2, 3].map(|q| sums[q * quarter + ky * row + i]);
                for (kx, g) in k::winograd_weight_grad(u).into_iter().enumerate() {
                    whole[(ky * 3 + kx) * row + i] = g;
                }
            }
        }
        k::unpack_weight_grad(&self.window, &whole, out);
    }
}
