//! Convolution forward, and the input gradient, which is a convolution too.
use super::geometry::ConvGeometry;
use super::isa::Isa;
use super::pack::{packed_flipped_len, packed_len};
use super::panel::Panel;
use super::tile::{Init, Tile};
use std::ops::Range;

/// Output rows `rows` of a convolution, with weights from [`super::pack_conv`].
///
/// `x` is the whole bordered input plane of one sample. `out[0]` is channel 0 of pixel (`rows.start`, 0), rows are
/// `out_row_pitch` floats apart: a caller can take a band of rows, pool it while it is in the cache, and go on; or write into
/// the interior of a bordered plane. Other floats of `out` stay as they are.
#[expect(
    clippy::too_many_arguments,
    reason = "operands of one product; a struct would only be taken apart again"
)]
pub fn conv_forward(
    isa: Isa,
    geo: &ConvGeometry,
    rows: Range<usize>,
    x: &[f32],
    packed: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
    out_row_pitch: usize,
) {
    geo.check();
    assert!(rows.start <= rows.end && rows.end <= geo.out_h, "rows {rows:?} of {} output rows", geo.out_h);
    assert!(x.len() >= geo.plane_len(rows.end), "input plane of {} floats for {geo:?}", x.len());
    assert!(
        out.len() >= geo.output_len(rows.len(), out_row_pitch),
        "output of {} floats for {geo:?}",
        out.len()
    );
    assert_eq!(packed.len(), packed_len(isa, geo), "packed weights of a convolution");
    assert!(bias.is_none_or(|bias| bias.len() == geo.co), "bias of a convolution");
    for panel in isa.table().panels(geo.co) {
        let weights = &packed[geo.taps() * panel.start..][..geo.taps() * panel.padded];
        let bias = bias.map(|bias| &bias[panel.start..][..panel.channels]);
        for y in rows.clone() {
            let x = &x[y * geo.stride_h * geo.pitch..];
            let out = &mut out[(y - rows.start) * out_row_pitch + panel.start..];
            conv_row(isa, geo, &panel, x, weights, bias, out);
        }
    }
}

/// One output row of one panel; `x` starts at the row's first window.
fn conv_row(
    isa: Isa,
    geo: &ConvGeometry,
    panel: &Panel,
    x: &[f32],
    weights: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let table = isa.table();
    let kernel_row = geo.kw * geo.ci;
    for (column, pixels) in table.pixel_strips(panel, geo.out_w) {
        let mut tile = Tile {
            segs: geo.kh,
            len: kernel_row,
            a: &x[column * geo.stride_w * geo.x_pixel..],
            a_seg: geo.pitch,
            a_row: geo.stride_w * geo.x_pixel,
            a_step: 1,
            b: weights,
            b_seg: kernel_row * panel.padded,
            b_step: panel.padded,
            init: bias.map_or(Init::Zero, Init::Row),
            out: &mut out[column * geo.y_pixel..],
            out_row: geo.y_pixel,
        };
        if geo.is_dense() {
            table.pixels(panel, pixels, &mut tile);
            continue;
        }
        // Pixels with other channels between them: one kernel row at a time, a segment per kernel column.
        (tile.segs, tile.len, tile.a_seg, tile.b_seg) = (geo.kw, geo.ci, geo.x_pixel, geo.ci * panel.padded);
        for ky in 0..geo.kh {
            tile.a = &x[ky * geo.pitch + column * geo.stride_w * geo.x_pixel..];
            tile.b = &weights[ky * kernel_row * panel.padded..];
            table.pixels(panel, pixels, &mut tile);
            tile.init = Init::Keep;
        }
    }
}

/// The input gradient of a convolution with strides of 1: `grad` is [`ConvGeometry::input_grad`] of the forward geometry, `dy`
/// the bordered output gradient, `packed` from [`super::pack_conv_flipped`]. Overwrites rows `rows` of `dx`, as [`conv_forward`].
pub fn conv_input_grad(
    isa: Isa,
    grad: &ConvGeometry,
    rows: Range<usize>,
    dy: &[f32],
    packed: &[f32],
    dx: &mut [f32],
    dx_row_pitch: usize,
) {
    conv_forward(isa, grad, rows, dy, packed, None, dx, dx_row_pitch);
}

/// The input gradient of any convolution, as a scatter: *adds* to the bordered plane `dx`, laid out as the forward input. The
/// part that lands in the border is the gradient of the padding, for the caller to ignore.
///
/// `geo` is the forward geometry, `dy` the output gradient without border, its rows `dy_row_pitch` floats apart, `packed`
/// from [`super::pack_conv_flipped`].
pub fn conv_input_grad_scatter(
    isa: Isa,
    geo: &ConvGeometry,
    dy: &[f32],
    dy_row_pitch: usize,
    packed: &[f32],
    dx: &mut [f32],
) {
    geo.check();
    assert!(dx.len() >= geo.plane_len(geo.out_h), "input gradient of {} floats for {geo:?}", dx.len());
    assert!(
        dy.len() >= geo.output_len(geo.out_h, dy_row_pitch),
        "output gradient of {} floats for {geo:?}",
        dy.len()
    );
    assert_eq!(packed.len(), packed_flipped_len(isa, geo), "flipped weights of a convolution");
    let window = geo.kh * geo.kw;
    for panel in isa.table().panels(geo.ci) {
        let weights = &packed[window * geo.co * panel.start..][..window * geo.co * panel.padded];
        for (y, ky) in (0..geo.out_h).flat_map(|y| (0..geo.kh).map(move |ky| (y, ky))) {
            let dx = &mut dx[(y * geo.stride_h + ky) * geo.pitch + panel.start..];
            for kx in 0..geo.kw {
                let tap = window - 1 - (ky * geo.kw + kx);
                let weights = &weights[tap * geo.co * panel.padded..][..geo.co * panel.padded];
                scatter_row(isa, geo, &panel, &dy[y * dy_row_pitch..], weights, &mut dx[kx * geo.x_pixel..]);
            }
        }
    }
}

/// What one output row gives to the inputs that one tap of the window sees.
fn scatter_row(isa: Isa, geo: &ConvGeometry, panel: &Panel, dy: &[f32], weights: &[f32], dx: &mut [f32]) {
    let (table, dx_step) = (isa.table(), geo.stride_w * geo.x_pixel);
    for (column, pixels) in table.pixel_strips(panel, geo.out_w) {
        let mut tile = Tile {
            segs: 1,
            len: geo.co,
            a: &dy[column * geo.y_pixel..],
            a_seg: 0,
            a_row: geo.y_pixel,
            a_step: 1,
            b: weights,
            b_seg: 0,
            b_step: panel.padded,
            init: Init::Keep,
            out: &mut dx[column * dx_step..],
            out_row: dx_step,
        };
        table.pixels(panel, pixels, &mut tile);
    }
}
