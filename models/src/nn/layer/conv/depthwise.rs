//! Convolution that gives each channel a window of its own.
use super::super::{Plane, Slot};
use super::{At, Product};
use crate::nn::graph::Conv2d;
use crate::tensor::kernel::{self as k, ConvGeometry, Isa};
use std::ops::Range;

/// A convolution with as many groups as input and output channels.
#[derive(Debug)]
pub(super) struct Depthwise {
    geo: ConvGeometry,
    /// Geometry of the input gradient as a convolution; a scatter where there is none.
    back: Option<ConvGeometry>,
    start: usize,
    input: Plane,
    dy: Plane,
    input_grad: bool,
}

impl Depthwise {
    /// The convolution, if it is of this kind.
    pub(super) fn new(conv: Conv2d, input: &Slot, dy: Plane, input_grad: bool) -> Option<Self> {
        let from = input.plane.dims;
        (conv.groups > 1 && conv.groups == from.channels && conv.groups == conv.out).then_some(())?;
        let geo = ConvGeometry {
            out_h: dy.dims.height,
            out_w: dy.dims.width,
            ci: conv.out,
            co: conv.out,
            kh: conv.kernel[0],
            kw: conv.kernel[1],
            stride_h: conv.stride[0],
            stride_w: conv.stride[1],
            pitch: input.plane.pitch(),
            x_pixel: conv.out,
            y_pixel: conv.out,
        };
        let as_conv = input_grad && super::back_border(&conv).is_some();
        let back = as_conv.then(|| geo.input_grad(from.height, from.width, dy.pitch()));
        let start = super::start(&conv, &input.plane);
        Some(Self { geo, back, start, input: input.plane, dy, input_grad })
    }

    /// Calls `f(place in a parameter, tap, channel)` for each weight.
    fn each_weight(&self, mut f: impl FnMut(usize, usize, usize)) {
        let window = self.geo.kh * self.geo.kw;
        (0..self.geo.taps()).for_each(|at| f(at, at % window, at / window));
    }
}

impl Product for Depthwise {
    fn packed(&self, _: Isa) -> usize {
        self.geo.taps() * if self.back.is_some() { 2 } else { 1 }
    }

    fn pack(&self, _: Isa, w: &[f32], packed: &mut [f32], _: &mut [f32]) {
        let (window, c) = (self.geo.kh * self.geo.kw, self.geo.co);
        let (ahead, back) = packed.split_at_mut(self.geo.taps());
        self.each_weight(|at, tap, channel| ahead[tap * c + channel] = w[at]);
        if self.back.is_some() {
            self.each_weight(|at, tap, channel| back[(window - 1 - tap) * c + channel] = w[at]);
        }
    }

    fn work(&self) -> usize {
        if self.input_grad && self.back.is_none() { self.input.len() } else { 0 }
    }

    fn sums(&self) -> usize {
        self.geo.taps()
    }

    fn band(&self) -> usize {
        4
    }

    fn rows(&self, at: At<'_>, rows: Range<usize>, x: &[f32], _: &mut [f32], out: &mut [f32], pitch: usize) {
        let w = &at.packed[..self.geo.taps()];
        k::depthwise_forward(at.isa, &self.geo, rows, &x[self.start..], w, at.bias, out, pitch);
    }

    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], _: &mut [f32], sums: &mut [f32]) {
        let (x, dy) = (&x[self.start..], &dy[self.dy.origin()..]);
        k::depthwise_weight_grad(isa, &self.geo, x, dy, self.dy.pitch(), sums);
    }

    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]) {
        let (w, flipped) = at.packed.split_at(self.geo.taps());
        let (from, row) = (&self.input, self.input.row_len());
        if let Some(back) = &self.back {
            return k::depthwise_forward(at.isa, back, 0..from.dims.height, dy, flipped, None, dx, row);
        }
        work.fill(0.0);
        let dy = &dy[self.dy.origin()..];
        k::depthwise_scatter(at.isa, &self.geo, dy, self.dy.pitch(), w, &mut work[self.start..]);
        dx.chunks_exact_mut(row).enumerate().for_each(|(y, dx)| dx.copy_from_slice(&work[from.row(y)]));
    }

    fn unpack(&self, sums: &[f32], out: &mut [f32], _: &mut [f32]) {
        self.each_weight(|at, tap, channel| out[at] += sums[tap * self.geo.co + channel]);
    }
}
