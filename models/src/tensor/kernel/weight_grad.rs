//! The weight gradient of a convolution.
use super::geometry::ConvGeometry;
use super::isa::Isa;
use super::panel::{PADDED_ROWS, PaddedRows, Panel, strips};
use super::tile::{Init, Tile};

/// Output pixels that one pass over all taps covers, in whole rows. More would leave the first-level cache, fewer would load
/// and store the gradients too often.
const BAND_PIXELS: usize = 256;

/// Adds the weight gradient of one sample to `dw`, laid out `[kh][kw][ci][co]`.
///
/// `x` is the bordered input plane, `dy` the output gradient: its first float is channel 0 of pixel (0, 0) (of the interior,
/// if it has a border), rows are `dy_row_pitch` floats apart. A weight's terms are added one by one in the order of the
/// pixels, so samples may come in any grouping.
pub fn conv_weight_grad(
    isa: Isa,
    geo: &ConvGeometry,
    x: &[f32],
    dy: &[f32],
    dy_row_pitch: usize,
    dw: &mut [f32],
) {
    geo.check();
    assert!(x.len() >= geo.plane_len(geo.out_h), "input plane of {} floats for {geo:?}", x.len());
    assert!(
        dy.len() >= geo.output_len(geo.out_h, dy_row_pitch),
        "output gradient of {} floats for {geo:?}",
        dy.len()
    );
    assert_eq!(dw.len(), geo.taps() * geo.co, "weight gradient of a convolution");
    let mut padded = PaddedRows::new();
    for (y, rows) in strips(geo.out_h, (BAND_PIXELS / geo.out_w).max(1)) {
        for panel in isa.table().panels(geo.co) {
            if panel.is_copied() {
                padded_band(
                    isa,
                    geo,
                    &panel,
                    x,
                    (&dy[y * dy_row_pitch..], dy_row_pitch),
                    (y, rows),
                    &mut padded,
                    dw,
                );
            } else {
                let (b, b_seg, b_step) = (&dy[y * dy_row_pitch + panel.start..], dy_row_pitch, geo.y_pixel);
                let block = Block { y, column: 0, rows, columns: geo.out_w, b, b_seg, b_step };
                block.accumulate(isa, geo, &panel, x, dw);
            }
        }
    }
}

/// A band whose gradients must be padded to whole vectors: one stretch of a row at a time, for all taps.
#[expect(clippy::too_many_arguments, reason = "the operands of the convolution and where the band is")]
fn padded_band(
    isa: Isa,
    geo: &ConvGeometry,
    panel: &Panel,
    x: &[f32],
    (dy, dy_row_pitch): (&[f32], usize),
    (first, rows): (usize, usize),
    padded: &mut PaddedRows,
    dw: &mut [f32],
) {
    for row in 0..rows {
        for column in (0..geo.out_w).step_by(PADDED_ROWS) {
            let columns = PADDED_ROWS.min(geo.out_w - column);
            let b =
                padded.fill(panel, &dy[row * dy_row_pitch + column * geo.y_pixel..], geo.y_pixel, columns);
            let block = Block { y: first + row, column, rows: 1, columns, b, b_seg: 0, b_step: panel.padded };
            block.accumulate(isa, geo, panel, x, dw);
        }
    }
}

/// The pixels that a pass covers, and their gradients of one panel.
struct Block<'a> {
    y: usize,
    column: usize,
    rows: usize,
    columns: usize,
    b: &'a [f32],
    b_seg: usize,
    b_step: usize,
}

impl Block<'_> {
    fn accumulate(&self, isa: Isa, geo: &ConvGeometry, panel: &Panel, x: &[f32], dw: &mut [f32]) {
        let (runs, run) = if geo.is_dense() { (1, geo.kw * geo.ci) } else { (geo.kw, geo.ci) };
        let x_step = geo.stride_w * geo.x_pixel;
        for ky in 0..geo.kh {
            let x = &x[(self.y * geo.stride_h + ky) * geo.pitch + self.column * x_step..];
            for kx in 0..runs {
                let dw = &mut dw[(ky * geo.kw + kx) * geo.ci * geo.co + panel.start..];
                self.accumulate_run(isa, geo, panel, &x[kx * geo.x_pixel..], run, dw);
            }
        }
    }

    /// `run` neighbouring inputs of the window.
    fn accumulate_run(
        &self,
        isa: Isa,
        geo: &ConvGeometry,
        panel: &Panel,
        x: &[f32],
        run: usize,
        dw: &mut [f32],
    ) {
        let table = isa.table();
        for (tap, taps) in table.tap_strips(panel, run) {
            let mut tile = Tile {
                segs: self.rows,
                len: self.columns,
                a: &x[tap..],
                a_seg: geo.stride_h * geo.pitch,
                a_row: 1,
                a_step: geo.stride_w * geo.x_pixel,
                b: self.b,
                b_seg: self.b_seg,
                b_step: self.b_step,
                init: Init::Keep,
                out: &mut dw[tap * geo.co..],
                out_row: geo.co,
            };
            table.taps(panel, taps, &mut tile);
        }
    }
}
