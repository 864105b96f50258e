//! The compiled tiles of one instruction set, behind calls that check: everything above them is safe code.
use super::dot::{Dot, DotFn};
use super::geometry::ConvGeometry;
use super::isa::IsaCap;
use super::panel::{Panel, blocks, many_sums, strips};
use super::tile::{Tile, TileFn};
use super::window;
use super::winograd::{OutputFn, TransformFn, WinogradRows};
use std::ops::Range;

/// The kernels of one instruction set.
pub(super) struct Table {
    pub level: IsaCap,
    /// `f32` per vector.
    pub lanes: usize,
    /// Tiles by panel width, widest first; the last one is a single vector.
    pub widths: &'static [Width],
    /// Blocks of dot products: of single rows, and of several.
    pub dots: [Dots; 2],
    pub windows: Windows,
    pub transforms: Transforms,
}

/// Rows of depthwise windows.
pub(super) struct Windows {
    pub forward: window::ForwardFn,
    pub weight_grad: window::WeightGradFn,
    pub scatter: window::ScatterFn,
}

/// Winograd's transforms.
pub(super) struct Transforms {
    pub input: TransformFn,
    pub output: OutputFn,
    pub grad: TransformFn,
}

/// Blocks of dot products of some rows.
pub(super) struct Dots {
    pub rows: usize,
    /// Of 1, 2, … columns.
    pub columns: &'static [DotFn],
}

/// The tiles of one panel width.
pub(super) struct Width {
    /// Vectors per row.
    pub vectors: usize,
    /// By the number of partial sums.
    pub tiles: &'static [Tiles],
}

/// The tiles of one panel width and number of partial sums.
pub(super) struct Tiles {
    /// Partial sums of each element.
    pub sums: usize,
    /// Tiles of 1, 2, … rows for `a_step == 1`: a row is a pixel, and the reduction runs along its inputs.
    pub pixels: &'static [TileFn],
    /// Tiles of 1, 2, … rows for `a_row == 1`: a row is one of neighbouring inputs, and the reduction runs over pixels.
    pub taps: &'static [TileFn],
}

impl Table {
    /// The widest panels that cover `channels`.
    pub(super) fn panels(&'static self, channels: usize) -> impl Iterator<Item = Panel> {
        let (single, sums) = many_sums(channels);
        self.cover(0..single, 1).chain(self.cover(single..channels, sums))
    }

    /// The widest panels whose elements are summed term by term, in order.
    pub(super) fn ordered_panels(&'static self, channels: usize) -> impl Iterator<Item = Panel> {
        self.cover(0..channels, 1)
    }

    fn cover(&'static self, channels: Range<usize>, sums: usize) -> impl Iterator<Item = Panel> {
        let Range { mut start, end } = channels;
        std::iter::from_fn(move || {
            let left = (end - start).div_ceil(self.lanes);
            let width = self.widths.iter().position(|w| w.vectors <= left)?;
            let padded = self.widths[width].vectors * self.lanes;
            let panel = Panel { start, channels: padded.min(end - start), padded, width, sums };
            start += panel.channels;
            (left > 0).then_some(panel)
        })
    }

    fn tiles(&self, panel: &Panel) -> &'static Tiles {
        let tiles = self.widths[panel.width].tiles.iter().find(|tiles| tiles.sums == panel.sums);
        tiles.expect("every width has tiles for the sums of the channels that it covers")
    }

    /// Cuts `n` rows into tiles of a [`Table::pixels`] call.
    pub(super) fn pixel_strips(
        &self,
        panel: &Panel,
        n: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        strips(n, self.tiles(panel).pixels.len())
    }

    /// Cuts `n` rows into tiles of a [`Table::taps`] call, for this panel and narrower ones with as many sums: they take taller tiles.
    pub(super) fn tap_strips(
        &self,
        widest: &Panel,
        n: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        strips(n, self.tiles(widest).taps.len())
    }

    /// Runs a tile of `rows` rows whose reduction is contiguous in `a`, and writes the channels that exist.
    pub(super) fn pixels(&self, panel: &Panel, rows: usize, tile: &mut Tile<'_>) {
        assert!(tile.a_step == 1 && tile.fits(rows, panel.padded, panel.channels), "tile outside its slices");
        let lanes = panel.channels + self.lanes - panel.padded;
        // SAFETY: `fits` bounds every access; a table is reachable only on a CPU that has its instructions.
        unsafe { self.tiles(panel).pixels[rows - 1](tile, lanes) }
    }

    /// Runs a tile of `rows` rows that are neighbours in `a`, and writes the channels that exist.
    pub(super) fn taps(&self, panel: &Panel, rows: usize, tile: &mut Tile<'_>) {
        assert!(tile.a_row == 1 && tile.fits(rows, panel.padded, panel.channels), "tile outside its slices");
        let lanes = panel.channels + self.lanes - panel.padded;
        // SAFETY: as in `pixels`.
        unsafe { self.tiles(panel).taps[rows - 1](tile, lanes) }
    }

    /// A row of outputs of depthwise windows; `x` starts at the first one.
    pub(super) fn window_row(
        &self,
        geo: &ConvGeometry,
        x: &[f32],
        w: &[f32],
        bias: Option<&[f32]>,
        out: &mut [f32],
    ) {
        let fits = x.len() >= geo.plane_len(1) && out.len() >= geo.output_len(1, 0);
        let weights = w.len() >= geo.taps() && bias.is_none_or(|bias| bias.len() >= geo.co);
        assert!(fits && weights, "depthwise windows outside their slices");
        // SAFETY: all accesses are bounded above; a table is reachable only on a CPU that has its instructions.
        unsafe { (self.windows.forward)(geo, x, w, bias, out) }
    }

    /// What a row of output gradients adds to a row of the window.
    pub(super) fn window_weight_grad(&self, geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
        let row = ConvGeometry { kh: 1, ..*geo };
        let fits = x.len() >= row.plane_len(1) && dy.len() >= geo.output_len(1, 0);
        assert!(fits && dw.len() >= row.taps(), "depthwise windows outside their slices");
        // SAFETY: as in `window_row`.
        unsafe { (self.windows.weight_grad)(geo, x, dy, dw) }
    }

    /// What a row of output gradients adds to a row of inputs.
    pub(super) fn window_scatter(&self, geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]) {
        let row = ConvGeometry { kh: 1, ..*geo };
        let fits = dx.len() >= row.plane_len(1) && dy.len() >= geo.output_len(1, 0);
        assert!(fits && w.len() >= row.taps(), "depthwise windows outside their slices");
        // SAFETY: as in `window_row`.
        unsafe { (self.windows.scatter)(geo, dy, w, dx) }
    }

    /// Winograd's transform of inputs.
    pub(super) fn winograd_input(&self, at: WinogradRows, x: &[f32], v: &mut [f32]) {
        at.check(at.columns + 2, x.len(), v.len());
        // SAFETY: `check` bounds every access; a table is reachable only on a CPU that has its instructions.
        unsafe { (self.transforms.input)(at, x, v) }
    }

    /// Winograd's transform of products.
    pub(super) fn winograd_output(&self, at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
        at.check(at.columns, y.len(), m.len());
        assert!(bias.is_none_or(|b| b.len() == at.channels), "bias of a convolution");
        // SAFETY: as in `winograd_input`.
        unsafe { (self.transforms.output)(at, m, bias, y) }
    }

    /// Its transpose.
    pub(super) fn winograd_grad(&self, at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
        at.check(at.columns, dy.len(), dm.len());
        // SAFETY: as in `winograd_input`.
        unsafe { (self.transforms.grad)(at, dy, dm) }
    }

    /// `out[i][j] = bias[j] + a[i]·b[j]` for all `rows` and `columns`.
    pub(super) fn dots(&self, rows: usize, columns: usize, dot: &mut Dot<'_>) {
        assert!(dot.fits(rows, columns), "dot products outside their slices");
        let [single, several] = &self.dots;
        let widest = if rows < several.rows { single } else { several }.columns.len();
        for (j, n) in strips(columns, widest) {
            for (i, whole) in blocks(rows, several.rows) {
                let block = if whole { several } else { single }.columns[n - 1];
                // SAFETY: `fits` bounds every access; a table is reachable only on a CPU that has its instructions.
                unsafe { block(dot, i, j) }
            }
        }
    }
}

/// Writes the table of an instruction set: its vector type, level, target features, and for each panel width (in vectors,
/// widest first) and number of partial sums the tile heights to compile, of pixels and of taps; then blocks of dot products, by rows, and
/// the vectors that make sixteen lanes.
macro_rules! tile_table {
    ($simd:ident, $level:expr, features: [$($feature:literal)?],
     widths: [$($nv:literal => {$($sums:literal: [$($pixels:literal)*] [$($taps:literal)*]),*}),* $(,)?], dots: {1: [$($one:literal)*], $m:literal: [$($n:literal)*]}, $w:literal,) => {
        $(#[target_feature(enable = $feature)])?
        unsafe fn pixels<const MR: usize, const NV: usize, const SUMS: usize>(t: &mut Tile<'_>, lanes: usize) {
            // SAFETY: the caller keeps the contract of `tile::run`.
            unsafe { tile::run::<$simd, MR, NV, SUMS>(t, tile::Along::Reduction, lanes) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn taps<const MR: usize, const NV: usize, const SUMS: usize>(t: &mut Tile<'_>, lanes: usize) {
            // SAFETY: the caller keeps the contract of `tile::run`.
            unsafe { tile::run::<$simd, MR, NV, SUMS>(t, tile::Along::Rows, lanes) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn dots<const M: usize, const N: usize>(d: &mut Dot<'_>, i: usize, j: usize) {
            // SAFETY: the caller keeps the contract of `dot::block`.
            unsafe { dot::block::<$simd, M, N, $w>(d, i, j) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn window_row(geo: &ConvGeometry, x: &[f32], w: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `window::forward`.
            unsafe { window::forward::<$simd>(geo, x, w, bias, out) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn window_weight_grad(geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `window::weight_grad`.
            unsafe { window::weight_grad::<$simd>(geo, x, dy, dw) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn window_scatter(geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `window::scatter`.
            unsafe { window::scatter::<$simd>(geo, dy, w, dx) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn winograd_input(at: WinogradRows, x: &[f32], v: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `transform::input`.
            unsafe { transform::input::<$simd>(at, x, v) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn winograd_output(at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `transform::output`.
            unsafe { transform::output::<$simd>(at, m, bias, y) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn winograd_grad(at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
            // SAFETY: the caller keeps the contract of `transform::grad`.
            unsafe { transform::grad::<$simd>(at, dy, dm) }
        }
        impl $simd {
            /// The kernels compiled for this instruction set.
            pub(in crate::tensor::kernel) const TABLE: Table = Table {
                level: $level,
                lanes: <$simd as Simd>::LANES,
                widths: &[$(Width {
                    vectors: $nv,
                    tiles: &[$(Tiles {
                        sums: $sums,
                        pixels: &[$(pixels::<$pixels, $nv, $sums>),*],
                        taps: &[$(taps::<$taps, $nv, $sums>),*],
                    }),*],
                }),*],
                dots: [
                    Dots { rows: 1, columns: &[$(dots::<1, $one>),*] },
                    Dots { rows: $m, columns: &[$(dots::<$m, $n>),*] },
                ],
                windows: Windows {
                    forward: window_row,
                    weight_grad: window_weight_grad,
                    scatter: window_scatter,
                },
                transforms: Transforms { input: winograd_input, output: winograd_output, grad: winograd_grad },
            };
        }
    };
}
pub(super) use tile_table;
