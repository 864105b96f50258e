//! The compiled tiles of one instruction set, behind calls that check: everything above them is safe code.
use super::dot::{Dot, DotFn};
use super::isa::IsaCap;
use super::panel::{Panel, blocks, strips};
use super::tile::{Tile, TileFn};

/// The kernels of one instruction set.
pub(super) struct Table {
    pub level: IsaCap,
    /// `f32` per vector.
    pub lanes: usize,
    /// Tiles by panel width, widest first; the last one is a single vector.
    pub widths: &'static [Width],
    /// Rows and columns of a block of dot products.
    pub dot_size: (usize, usize),
    /// By whether there is a block of rows, then of columns.
    pub dot: [[DotFn; 2]; 2],
}

/// The tiles of one panel width.
pub(super) struct Width {
    /// Vectors per row.
    pub vectors: usize,
    /// Tiles of 1, 2, … rows for `a_step == 1`: a row is a pixel, and the reduction runs along its inputs.
    pub pixels: &'static [TileFn],
    /// Tiles of 1, 2, … rows for `a_row == 1`: a row is one of neighbouring inputs, and the reduction runs over pixels.
    pub taps: &'static [TileFn],
}

impl Table {
    /// The widest panels that cover `channels`.
    pub(super) fn panels(&'static self, channels: usize) -> impl Iterator<Item = Panel> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let left = (channels - start).div_ceil(self.lanes);
            let width = self.widths.iter().position(|w| w.vectors <= left)?;
            let padded = self.widths[width].vectors * self.lanes;
            let panel = Panel { start, channels: padded.min(channels - start), padded, width };
            start += panel.channels;
            (left > 0).then_some(panel)
        })
    }

    /// Cuts `n` rows into tiles of a [`Table::pixels`] call.
    pub(super) fn pixel_strips(
        &self,
        panel: &Panel,
        n: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        strips(n, self.widths[panel.width].pixels.len())
    }

    /// Cuts `n` rows into tiles of a [`Table::taps`] call, for all panels of `channels`: narrower ones take taller tiles.
    pub(super) fn tap_strips(
        &'static self,
        channels: usize,
        n: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let tallest = self.panels(channels).next().map_or(1, |widest| self.widths[widest.width].taps.len());
        strips(n, tallest)
    }

    /// Runs a tile of `rows` rows whose reduction is contiguous in `a`, and writes the channels that exist.
    pub(super) fn pixels(&self, panel: &Panel, rows: usize, tile: &mut Tile<'_>) {
        assert!(tile.a_step == 1 && tile.fits(rows, panel.padded, panel.channels), "tile outside its slices");
        let lanes = panel.channels + self.lanes - panel.padded;
        // SAFETY: `fits` bounds every access; a table is reachable only on a CPU that has its instructions.
        unsafe { self.widths[panel.width].pixels[rows - 1](tile, lanes) }
    }

    /// Runs a tile of `rows` rows that are neighbours in `a`, and writes the channels that exist.
    pub(super) fn taps(&self, panel: &Panel, rows: usize, tile: &mut Tile<'_>) {
        assert!(tile.a_row == 1 && tile.fits(rows, panel.padded, panel.channels), "tile outside its slices");
        let lanes = panel.channels + self.lanes - panel.padded;
        // SAFETY: as in `pixels`.
        unsafe { self.widths[panel.width].taps[rows - 1](tile, lanes) }
    }

    /// `out[i][j] = bias[j] + a[i]·b[j]` for all `rows` and `columns`.
    pub(super) fn dots(&self, rows: usize, columns: usize, dot: &mut Dot<'_>) {
        assert!(dot.fits(rows, columns), "dot products outside their slices");
        for (j, wide) in blocks(columns, self.dot_size.1) {
            for (i, tall) in blocks(rows, self.dot_size.0) {
                // SAFETY: `fits` bounds every access; a table is reachable only on a CPU that has its instructions.
                unsafe { self.dot[usize::from(tall)][usize::from(wide)](dot, i, j) }
            }
        }
    }
}

/// Writes the table of an instruction set: its vector type, level, target features, and for each panel width (in vectors,
/// widest first) the tile heights to compile; then the block of dot products and the vectors that make sixteen lanes.
macro_rules! tile_table {
    ($simd:ident, $level:expr, features: [$($feature:literal)?],
     widths: [$($nv:literal => [$($mr:literal)*]),*], dot: [$m:literal x $n:literal, $w:literal],) => {
        $(#[target_feature(enable = $feature)])?
        unsafe fn pixels<const MR: usize, const NV: usize>(t: &mut Tile<'_>, lanes: usize) {
            // SAFETY: the caller keeps the contract of `tile::run`.
            unsafe { tile::run::<$simd, MR, NV>(t, t.a_row, 1, lanes) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn taps<const MR: usize, const NV: usize>(t: &mut Tile<'_>, lanes: usize) {
            // SAFETY: the caller keeps the contract of `tile::run`.
            unsafe { tile::run::<$simd, MR, NV>(t, 1, t.a_step, lanes) }
        }
        $(#[target_feature(enable = $feature)])?
        unsafe fn dots<const M: usize, const N: usize>(d: &mut Dot<'_>, i: usize, j: usize) {
            // SAFETY: the caller keeps the contract of `dot::block`.
            unsafe { dot::block::<$simd, M, N, $w>(d, i, j) }
        }
        impl $simd {
            /// The kernels compiled for this instruction set.
            pub(in crate::tensor::kernel) const TABLE: Table = Table {
                level: $level,
                lanes: <$simd as Simd>::LANES,
                widths: &[$(Width { vectors: $nv, pixels: &[$(pixels::<$mr, $nv>),*], taps: &[$(taps::<$mr, $nv>),*] }),*],
                dot_size: ($m, $n),
                dot: [[dots::<1, 1>, dots::<1, $n>], [dots::<$m, 1>, dots::<$m, $n>]],
            };
        }
    };
}
pub(super) use tile_table;
