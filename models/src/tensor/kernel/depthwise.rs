//! Depthwise convolution: each channel has a window of its own. Channels are lanes, and all three products are sums over pixels.
//!
//! A [`ConvGeometry`] with as many output as input channels says where pixels are; weights lie `[kh][kw][channel]`.
use super::geometry::ConvGeometry;
use super::isa::Isa;
use std::ops::Range;

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
        isa.table().window_row(geo, x, w, bias, out);
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
        isa.table().window_weight_grad(geo, x, dy, dw);
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
        isa.table().window_scatter(geo, dy, w, dx);
    }
}
