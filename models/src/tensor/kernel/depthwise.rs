//! Depthwise convolution: each channel has a window of its own. Channels are lanes, and all three products are sums over pixels.
//!
//! A [`ConvGeometry`] with as many output as input channels says where pixels are; weights lie `[kh][kw][channel]`.
use super::blocks::{block, in_blocks};
use super::dispatch::vectorised;
use super::geometry::ConvGeometry;
use super::isa::Isa;
use std::ops::Range;

/// Output columns that share the weights they load.
const TILE: usize = 4;

fn check(geo: &ConvGeometry, w: &[f32]) {
    geo.check();
    assert_eq!(geo.ci, geo.co, "channels of a depthwise convolution");
    assert_eq!(w.len(), geo.taps(), "weights of a depthwise convolution");
}

fn check_planes(geo: &ConvGeometry, rows: usize, x: usize, y: usize, y_pitch: usize) {
    assert!(x >= geo.plane_len(rows), "input plane of {x} floats for {geo:?}");
    assert!(y >= geo.output_len(rows, y_pitch), "output of {y} floats for {geo:?}");
}

/// Output rows `rows`, as [`super::conv_forward`].
#[expect(
    clippy::too_many_arguments,
    reason = "operands of one product; a struct would only be taken apart again"
)]
pub fn depthwise_forward(
    isa: Isa,
    geo: &ConvGeometry,
    rows: Range<usize>,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
    out_row_pitch: usize,
) {
    check(geo, w);
    assert!(rows.start <= rows.end && rows.end <= geo.out_h, "rows {rows:?} of {} output rows", geo.out_h);
    check_planes(geo, rows.end, x.len(), out.len() + rows.start * out_row_pitch, out_row_pitch);
    assert!(bias.is_none_or(|bias| bias.len() == geo.co), "bias of a convolution");
    for (y, first) in rows.zip((0..).step_by(out_row_pitch)) {
        let (x, out) = (&x[y * geo.stride_h * geo.pitch..], &mut out[first..]);
        vectorised!(isa, forward_row(geo: &ConvGeometry, x: &[f32], w: &[f32], bias: Option<&[f32]>, out: &mut [f32]));
    }
}

#[inline(always)]
fn forward_row(geo: &ConvGeometry, x: &[f32], w: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
    let (step, whole) = (geo.stride_w * geo.x_pixel, geo.out_w - geo.out_w % TILE);
    for column in (0..whole).step_by(TILE) {
        let (x, out) = (&x[column * step..], &mut out[column * geo.y_pixel..]);
        in_blocks!(geo.co, forward_tile(geo, x, w, bias, out));
    }
    for column in whole..geo.out_w {
        let (x, out) = (&x[column * step..], &mut out[column * geo.y_pixel..]);
        in_blocks!(geo.co, forward_pixel(geo, x, w, bias, out));
    }
}

#[inline(always)]
fn forward_tile<const L: usize>(
    c: usize,
    geo: &ConvGeometry,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    pixels::<TILE, L>(c, geo, x, w, bias, out);
}

#[inline(always)]
fn forward_pixel<const L: usize>(
    c: usize,
    geo: &ConvGeometry,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    pixels::<1, L>(c, geo, x, w, bias, out);
}

/// `T` neighbouring pixels of `L` channels; each sum runs over the window's rows, then its columns.
#[inline(always)]
fn pixels<const T: usize, const L: usize>(
    c: usize,
    geo: &ConvGeometry,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let start = bias.map_or([0.0; L], |bias| block(bias, c));
    let (step, mut sums) = (geo.stride_w * geo.x_pixel, [start; T]);
    for ky in 0..geo.kh {
        for kx in 0..geo.kw {
            let w: [f32; L] = block(w, (ky * geo.kw + kx) * geo.co + c);
            let from = ky * geo.pitch + kx * geo.x_pixel + c;
            for (i, sum) in sums.iter_mut().enumerate() {
                add_product(sum, &w, &block(x, from + i * step));
            }
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        out[i * geo.y_pixel + c..][..L].copy_from_slice(sum);
    }
}

#[inline(always)]
fn add_product<const L: usize>(sum: &mut [f32; L], a: &[f32; L], b: &[f32; L]) {
    for j in 0..L {
        sum[j] += a[j] * b[j];
    }
}

/// Adds the weight gradient of one sample to `dw`, as [`super::conv_weight_grad`].
pub fn depthwise_weight_grad(
    isa: Isa,
    geo: &ConvGeometry,
    x: &[f32],
    dy: &[f32],
    dy_row_pitch: usize,
    dw: &mut [f32],
) {
    check(geo, dw);
    check_planes(geo, geo.out_h, x.len(), dy.len(), dy_row_pitch);
    for (y, ky) in (0..geo.out_h).flat_map(|y| (0..geo.kh).map(move |ky| (y, ky))) {
        let (x, dy) = (&x[(y * geo.stride_h + ky) * geo.pitch..], &dy[y * dy_row_pitch..]);
        let dw = &mut dw[ky * geo.kw * geo.co..][..geo.kw * geo.co];
        vectorised!(isa, weight_row(geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]));
    }
}

/// What an output row gives to a row of the window, three columns of it at a time.
#[inline(always)]
fn weight_row(geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let whole = geo.kw - geo.kw % 3;
    for kx in (0..whole).step_by(3) {
        in_blocks!(geo.co, weight_three(geo, &x[kx * geo.x_pixel..], dy, &mut dw[kx * geo.co..]));
    }
    for kx in whole..geo.kw {
        in_blocks!(geo.co, weight_one(geo, &x[kx * geo.x_pixel..], dy, &mut dw[kx * geo.co..]));
    }
}

#[inline(always)]
fn weight_three<const L: usize>(c: usize, geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    weights::<3, L>(c, geo, x, dy, dw);
}

#[inline(always)]
fn weight_one<const L: usize>(c: usize, geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    weights::<1, L>(c, geo, x, dy, dw);
}

#[inline(always)]
fn weights<const N: usize, const L: usize>(
    c: usize,
    geo: &ConvGeometry,
    x: &[f32],
    dy: &[f32],
    dw: &mut [f32],
) {
    let mut sums = [[0.0; L]; N];
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = block(dw, i * geo.co + c);
    }
    for column in 0..geo.out_w {
        let dy: [f32; L] = block(dy, column * geo.y_pixel + c);
        let from = column * geo.stride_w * geo.x_pixel + c;
        for (i, sum) in sums.iter_mut().enumerate() {
            add_product(sum, &dy, &block(x, from + i * geo.x_pixel));
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        dw[i * geo.co + c..][..L].copy_from_slice(sum);
    }
}

/// The input gradient as a scatter, as [`super::conv_input_grad_scatter`] but with the weights as they are. With strides of 1
/// [`depthwise_forward`] does it, over the bordered gradient with the window turned around.
pub fn depthwise_scatter(
    isa: Isa,
    geo: &ConvGeometry,
    dy: &[f32],
    dy_row_pitch: usize,
    w: &[f32],
    dx: &mut [f32],
) {
    check(geo, w);
    check_planes(geo, geo.out_h, dx.len(), dy.len(), dy_row_pitch);
    for (y, ky) in (0..geo.out_h).flat_map(|y| (0..geo.kh).map(move |ky| (y, ky))) {
        let (dx, dy) = (&mut dx[(y * geo.stride_h + ky) * geo.pitch..], &dy[y * dy_row_pitch..]);
        let w = &w[ky * geo.kw * geo.co..][..geo.kw * geo.co];
        vectorised!(isa, scatter_row(geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]));
    }
}

#[inline(always)]
fn scatter_row(geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]) {
    in_blocks!(geo.co, scatter_block(geo, dy, w, dx));
}

#[inline(always)]
fn scatter_block<const L: usize>(c: usize, geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]) {
    for kx in 0..geo.kw {
        let w: [f32; L] = block(w, kx * geo.co + c);
        for column in 0..geo.out_w {
            let at = (column * geo.stride_w + kx) * geo.x_pixel + c;
            let mut sum: [f32; L] = block(dx, at);
            add_product(&mut sum, &w, &block(dy, column * geo.y_pixel + c));
            dx[at..][..L].copy_from_slice(&sum);
        }
    }
}
