//! Convolution with windows three columns wide by Winograd's F(4, 3) along rows: half the multiplications in all three
//! products. The rounding differs from the direct way's in the last bits, and is the same wherever the network runs.
//!
//! F(2×2, 3×3) was measured too: it multiplies less than half as much and gains nothing, because its planes pass through the
//! cache and its products are a third as long.
use super::super::{Plane, Slot};
use super::{At, Product};
use crate::nn::graph::Conv2d;
use crate::tensor::kernel::{self as k, ConvGeometry, Isa, WINOGRAD_PLANES, WinogradRows};
use std::ops::Range;

/// A convolution of stride 1 with windows three columns wide.
#[derive(Debug)]
pub(super) struct Winograd {
    ahead: Side,
    /// The input gradient, a convolution of the bordered output gradient.
    back: Side,
    start: usize,
    input: Plane,
    dy: Plane,
    input_grad: bool,
}

/// Input channels from which the transforms cost less than they save.
const WORTHWHILE: usize = 8;
/// Floats of transformed planes that stay in the second-level cache.
const CACHED: usize = 64 * 1024;

/// One of the two convolutions, ahead or back: a sample is computed in bands of rows.
#[derive(Debug)]
struct Side {
    /// Channels read and written.
    ci: usize,
    co: usize,
    /// Rows of the window.
    kh: usize,
    /// Columns written.
    columns: usize,
    /// Rows written, and those of a band.
    all: usize,
    rows: usize,
    /// From one row of what is read to the next.
    pitch: usize,
}

impl Side {
    fn new(kh: usize, read: &Plane, ci: usize, (all, columns): (usize, usize), co: usize) -> Self {
        let row = WinogradRows { rows: 1, columns, channels: ci.max(co), pitch: 0 }.transformed_len();
        let most = (CACHED / row).max(2);
        let rows = all.div_ceil(all.div_ceil(most)).next_multiple_of(2);
        Self { ci, co, kh, columns, all, rows, pitch: read.pitch() }
    }

    fn bands(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (all, rows) = (self.all, self.rows);
        (0..all).step_by(rows).map(move |first| first..all.min(first + rows))
    }

    /// The convolution over a transformed plane of a band that has `units` in each of `rows` rows to write: windows one column
    /// wide, all rows as one.
    fn geometry(&self, units: usize, rows: usize) -> ConvGeometry {
        let &Self { ci, co, kh, .. } = self;
        let (kw, stride_h, stride_w, pitch) = (1, 1, 1, units / rows * ci);
        ConvGeometry {
            out_h: 1,
            out_w: units,
            ci,
            co,
            kh,
            kw,
            stride_h,
            stride_w,
            pitch,
            x_pixel: ci,
            y_pixel: co,
        }
    }

    /// The rows that a band reads.
    fn read(&self, rows: usize) -> WinogradRows {
        let &Self { columns, ci: channels, pitch, kh, .. } = self;
        WinogradRows { rows: rows + kh - 1, columns, channels, pitch }
    }

    /// The rows that a band writes.
    fn written(&self, rows: usize, pitch: usize) -> WinogradRows {
        WinogradRows { rows, columns: self.columns, channels: self.co, pitch }
    }

    fn work(&self) -> usize {
        self.read(self.rows).transformed_len() + self.written(self.rows, 0).transformed_len()
    }

    /// Scratch: transformed planes of what a band reads, and of what it writes.
    fn scratch<'a>(&self, work: &'a mut [f32], rows: usize) -> (&'a mut [f32], &'a mut [f32]) {
        let (v, m) = work.split_at_mut(self.read(rows).transformed_len());
        (v, &mut m[..self.written(rows, 0).transformed_len()])
    }

    /// Calls `f(plane, its convolution, what it reads, what it writes)` for each plane of a band.
    fn planes(
        &self,
        rows: usize,
        (v, m): (&[f32], &mut [f32]),
        mut f: impl FnMut(usize, &ConvGeometry, &[f32], &mut [f32]),
    ) {
        let (mut v, mut m) = (v, m);
        for (p, units) in self.written(rows, 0).units().into_iter().enumerate() {
            if units == 0 {
                continue;
            }
            let geo = self.geometry(units, rows);
            let (mine, rest) = v.split_at((rows + self.kh - 1) * geo.pitch);
            let (out, others) = std::mem::take(&mut m).split_at_mut(units * self.co);
            f(p, &geo, mine, out);
            (v, m) = (rest, others);
        }
    }

    /// A band of the convolution: `x` starts at its first row, `out` (and its pitch) at its first output row.
    fn band(&self, at: At<'_>, rows: usize, x: &[f32], work: &mut [f32], (out, pitch): (&mut [f32], usize)) {
        let (v, m) = self.scratch(work, rows);
        k::winograd_input(at.isa, self.read(rows), x, v);
        let weights = at.packed.len() / WINOGRAD_PLANES;
        self.planes(rows, (v, &mut *m), |p, geo, v, m| {
            let packed = &at.packed[p * weights..(p + 1) * weights];
            k::conv_forward(at.isa, geo, 0..1, v, packed, None, m, geo.out_w * geo.co);
        });
        k::winograd_output(at.isa, self.written(rows, pitch), m, at.bias, out);
    }
}

impl Winograd {
    /// The convolution, if it is of this kind.
    pub(super) fn new(conv: Conv2d, input: &Slot, dy: Plane, input_grad: bool) -> Option<Self> {
        let (from, to) = (input.plane.dims, dy.dims);
        let plain = conv.kernel[1] == 3 && conv.stride == [1, 1] && conv.groups == 1;
        let saves = |columns| {
            let row = WinogradRows { rows: 1, columns, channels: 1, pitch: 0 };
            columns > 0 && 4 * row.products() <= 9 * columns
        };
        let fits = super::back_border(&conv).is_some() && from.channels.min(conv.out) >= WORTHWHILE;
        (plain && fits && saves(from.width) && saves(to.width)).then_some(())?;
        let ahead = Side::new(conv.kernel[0], &input.plane, from.channels, (to.height, to.width), conv.out);
        let back = Side::new(conv.kernel[0], &dy, conv.out, (from.height, from.width), from.channels);
        let start = super::start(&conv, &input.plane);
        Some(Self { ahead, back, start, input: input.plane, dy, input_grad })
    }

    /// Floats of packed weights, ahead and back.
    fn panels(&self, isa: Isa) -> (usize, usize) {
        let geo = self.ahead.geometry(1, 1);
        let back = if self.input_grad { WINOGRAD_PLANES * k::packed_flipped_len(isa, &geo) } else { 0 };
        (WINOGRAD_PLANES * k::packed_len(isa, &geo), back)
    }
}

impl Product for Winograd {
    fn packed(&self, isa: Isa) -> usize {
        let (ahead, back) = self.panels(isa);
        ahead + back
    }

    fn pack(&self, isa: Isa, w: &[f32], packed: &mut [f32], _: &mut [f32]) {
        let (ahead, _) = self.panels(isa);
        let ((to, flipped), geo) = (packed.split_at_mut(ahead), self.ahead.geometry(1, 1));
        k::pack_winograd(isa, &geo, w, to);
        if self.input_grad {
            k::pack_winograd_flipped(isa, &geo, w, flipped);
        }
    }

    fn work(&self) -> usize {
        self.ahead.work().max(if self.input_grad { self.back.work() } else { 0 })
    }

    fn sums(&self) -> usize {
        WINOGRAD_PLANES * self.ahead.kh * self.ahead.ci * self.ahead.co
    }

    fn band(&self) -> usize {
        self.ahead.rows
    }

    fn rows(
        &self,
        at: At<'_>,
        rows: Range<usize>,
        x: &[f32],
        work: &mut [f32],
        out: &mut [f32],
        pitch: usize,
    ) {
        let at = At { packed: &at.packed[..self.panels(at.isa).0], ..at };
        let x = &x[self.start + rows.start * self.ahead.pitch..];
        self.ahead.band(at, rows.len(), x, work, (out, pitch));
    }

    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], work: &mut [f32], sums: &mut [f32]) {
        let (side, pitch) = (&self.ahead, self.dy.pitch());
        for band in side.bands() {
            let (v, dm) = side.scratch(work, band.len());
            k::winograd_input(isa, side.read(band.len()), &x[self.start + band.start * side.pitch..], v);
            let dy = &dy[self.dy.origin() + band.start * pitch..];
            k::winograd_grad(isa, side.written(band.len(), pitch), dy, dm);
            let weights = sums.len() / WINOGRAD_PLANES;
            side.planes(band.len(), (v, dm), |p, geo, v, dm| {
                let sums = &mut sums[p * weights..(p + 1) * weights];
                k::conv_weight_grad(isa, geo, v, dm, dm.len(), sums);
            });
        }
    }

    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]) {
        let (side, pitch) = (&self.back, self.input.row_len());
        let at = At { packed: &at.packed[self.panels(at.isa).0..], bias: None, ..at };
        for band in side.bands() {
            let (dy, dx) = (&dy[band.start * side.pitch..], &mut dx[band.start * pitch..]);
            side.band(at, band.len(), dy, work, (dx, pitch));
        }
    }

    fn unpack(&self, sums: &[f32], out: &mut [f32], _: &mut [f32]) {
        let &Side { ci, co, kh, .. } = &self.ahead;
        for (i, window) in out.chunks_exact_mut(3).enumerate() {
            // The window's row `y`, input channel `c` and output channel `o`.
            let (y, c, o) = (i % kh, i / kh % ci, i / (kh * ci));
            let at = (y * ci + c) * co + o;
            let gradient = k::winograd_weight_grad(std::array::from_fn(|q| sums[q * kh * ci * co + at]));
            window.iter_mut().zip(gradient).for_each(|(w, g)| *w += g);
        }
    }
}
