//! Convolution as it is written, group by group.
use super::super::{Plane, Slot};
use super::{At, Product};
use crate::nn::graph::Conv2d;
use crate::tensor::kernel::{self as k, ConvGeometry, Isa};
use std::ops::Range;

/// Any convolution.
#[derive(Debug)]
pub(super) struct Direct {
    conv: Conv2d,
    /// Geometry of one group.
    geo: ConvGeometry,
    /// Geometry of the input gradient as a convolution; a scatter where there is none.
    back: Option<ConvGeometry>,
    input: Plane,
    dy: Plane,
    input_grad: bool,
}

impl Direct {
    pub(super) fn new(conv: Conv2d, input: &Slot, dy: Plane, input_grad: bool) -> Self {
        let from = input.plane.dims;
        let geo = ConvGeometry {
            out_h: dy.dims.height,
            out_w: dy.dims.width,
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
        let as_conv = input_grad && super::back_border(&conv).is_some();
        let back = as_conv.then(|| geo.input_grad(from.height, from.width, dy.pitch()));
        Self { conv, geo, back, input: input.plane, dy, input_grad }
    }

    /// Weights of a group.
    fn weights(&self) -> usize {
        self.geo.taps() * self.geo.co
    }

    /// Floats of a group's panels, ahead and back.
    fn panels(&self, isa: Isa) -> (usize, usize) {
        let back = if self.input_grad { k::packed_flipped_len(isa, &self.geo) } else { 0 };
        (k::packed_len(isa, &self.geo), back)
    }

    fn start(&self, group: usize) -> usize {
        super::start(&self.conv, &self.input) + group * self.geo.ci
    }
}

impl Product for Direct {
    fn packed(&self, isa: Isa) -> usize {
        let (ahead, back) = self.panels(isa);
        self.conv.groups * (ahead + back)
    }

    fn pack(&self, isa: Isa, w: &[f32], packed: &mut [f32], _: &mut [f32]) {
        let (ahead, back) = self.panels(isa);
        let groups = w.chunks_exact(self.weights()).zip(packed.chunks_exact_mut(ahead + back));
        for (w, panels) in groups {
            let (to, flipped) = panels.split_at_mut(ahead);
            k::pack_conv(isa, &self.geo, w, to);
            if self.input_grad {
                k::pack_conv_flipped(isa, &self.geo, w, flipped);
            }
        }
    }

    fn work(&self) -> usize {
        if self.input_grad && self.back.is_none() { self.input.len() } else { 0 }
    }

    fn sums(&self) -> usize {
        self.conv.groups * self.weights()
    }

    fn band(&self) -> usize {
        4
    }

    fn rows(&self, at: At<'_>, rows: Range<usize>, x: &[f32], _: &mut [f32], out: &mut [f32], pitch: usize) {
        let (ahead, back) = self.panels(at.isa);
        for (g, panels) in at.packed.chunks_exact(ahead + back).enumerate() {
            let first = g * self.geo.co;
            let bias = at.bias.map(|b| &b[first..first + self.geo.co]);
            let (x, weights, out) = (&x[self.start(g)..], &panels[..ahead], &mut out[first..]);
            k::conv_forward(at.isa, &self.geo, rows.clone(), x, weights, bias, out, pitch);
        }
    }

    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], _: &mut [f32], sums: &mut [f32]) {
        for (g, sums) in sums.chunks_exact_mut(self.weights()).enumerate() {
            let (x, dy) = (&x[self.start(g)..], &dy[self.dy.origin() + g * self.geo.co..]);
            k::conv_weight_grad(isa, &self.geo, x, dy, self.dy.pitch(), sums);
        }
    }

    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]) {
        let (ahead, back) = self.panels(at.isa);
        let (from, row) = (&self.input, self.input.row_len());
        work.fill(0.0);
        for (g, panels) in at.packed.chunks_exact(ahead + back).enumerate() {
            let (flipped, dy) = (&panels[ahead..], &dy[g * self.geo.co..]);
            if let Some(back) = &self.back {
                let dx = &mut dx[g * self.geo.ci..];
                k::conv_input_grad(at.isa, back, 0..from.dims.height, dy, flipped, dx, row);
            } else {
                let (dy, to) = (&dy[self.dy.origin()..], &mut work[self.start(g)..]);
                k::conv_input_grad_scatter(at.isa, &self.geo, dy, self.dy.pitch(), flipped, to);
            }
        }
        if self.back.is_none() {
            dx.chunks_exact_mut(row).enumerate().for_each(|(y, dx)| dx.copy_from_slice(&work[from.row(y)]));
        }
    }

    fn unpack(&self, sums: &[f32], out: &mut [f32], _: &mut [f32]) {
        let groups = sums.chunks_exact(self.weights()).zip(out.chunks_exact_mut(self.weights()));
        groups.for_each(|(sums, out)| k::unpack_weight_grad(&self.geo, sums, out));
    }
}
