//! The two register tiles that all the multiplying stands on: [`Tile`], a strip of rows times a panel of vectors, and
//! [`Dot`], a block of dot products. Both check their slices against their strides at each call, so that everything above
//! them is safe code.
use super::isa::Table;
use super::simd::{MAX_LANES, Simd};

/// What the accumulators of a [`Tile`] start from.
#[derive(Clone, Copy)]
pub(super) enum Init<'a> {
    /// Zeros.
    Zero,
    /// The same row (a bias) for every row of the tile.
    Row(&'a [f32]),
    /// What `out` holds: the tile accumulates.
    Keep,
}

/// `out[i][v] = init + Σ_s Σ_k a[s·a_seg + k·a_step + i·a_row] · b[s·b_seg + k·b_step + v]`, for `rows` values of `i` and the
/// vectors of one panel. Each element is summed in the order of `s`, then `k`, whatever the size of the tile.
pub(super) struct Tile<'a> {
    /// Outer steps of the reduction.
    pub segs: usize,
    /// Inner steps of the reduction.
    pub len: usize,
    /// Multiplicand that is read one float at a time.
    pub a: &'a [f32],
    pub a_seg: usize,
    pub a_row: usize,
    pub a_step: usize,
    /// Multiplicand that is read in vectors: whole ones, so a panel's last vector must be padded.
    pub b: &'a [f32],
    pub b_seg: usize,
    pub b_step: usize,
    pub init: Init<'a>,
    pub out: &'a mut [f32],
    pub out_row: usize,
}

/// A tile compiled for one instruction set, number of rows and number of vectors; the last argument is the number of lanes of
/// the last vector that exist in `out`.
pub(super) type TileFn = unsafe fn(&mut Tile<'_>, usize);

/// The largest offset that `steps` (count, stride) reach; no count may be zero.
fn reach(steps: [(usize, usize); 3]) -> usize {
    steps.iter().fold(0, |sum, &(count, stride)| sum.saturating_add((count - 1).saturating_mul(stride)))
}

impl Tile<'_> {
    /// Whether every access of a tile of `rows` x `width` floats (`stored` of them in `out`) is inside its slices.
    fn fits(&self, rows: usize, width: usize, stored: usize) -> bool {
        let init = if let Init::Row(row) = self.init { row.len() >= stored } else { true };
        let out = reach([(rows, self.out_row), (1, 0), (1, 0)]).saturating_add(stored) <= self.out.len();
        init && out && (self.segs == 0 || self.len == 0 || self.reads_fit(rows, width))
    }

    fn reads_fit(&self, rows: usize, width: usize) -> bool {
        let a = reach([(self.segs, self.a_seg), (self.len, self.a_step), (rows, self.a_row)]);
        let b = reach([(self.segs, self.b_seg), (self.len, self.b_step), (1, 0)]);
        a < self.a.len() && b.saturating_add(width) <= self.b.len()
    }
}

/// The widest panel in floats, and the rows of [`PaddedRows`].
const MAX_PANEL: usize = 2 * MAX_LANES;
pub(super) const PADDED_ROWS: usize = 64;

/// A panel's rows of `b` copied next to each other with zeros after the last channel, for the panel whose last vector would
/// read past the end of a row.
pub(super) struct PaddedRows([f32; PADDED_ROWS * MAX_PANEL]);

impl PaddedRows {
    pub(super) fn new() -> Self {
        Self([0.0; PADDED_ROWS * MAX_PANEL])
    }

    /// Takes the panel's channels of rows that are `step` apart; `b` starts at the first of `n` rows.
    pub(super) fn fill(&mut self, panel: &Panel, b: &[f32], step: usize, n: usize) -> &[f32] {
        for (i, row) in self.0.chunks_exact_mut(panel.padded).take(n).enumerate() {
            row[..panel.channels].copy_from_slice(&b[i * step + panel.start..][..panel.channels]);
        }
        &self.0[..n * panel.padded]
    }
}

/// One panel of output channels (or columns): where it starts, and the vectors that cover it.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    /// First channel.
    pub start: usize,
    /// Channels in it.
    pub channels: usize,
    /// Floats of the vectors that cover it: `channels`, rounded up to whole vectors.
    pub padded: usize,
    /// Index into [`Table::widths`].
    width: usize,
}

impl Panel {
    /// Whether the last vector reaches past the last channel.
    pub(super) fn is_partial(&self) -> bool {
        self.channels < self.padded
    }
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

/// Cuts `0..n` into nearly equal strips of at most `max`, as (start, length).
pub(super) fn strips(n: usize, max: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = n.div_ceil(max);
    (0..count).map(move |t| (n * t / count, n * (t + 1) / count - n * t / count))
}

/// Cuts `0..n` into blocks of `size` and single ones, as (start, whether it is a block).
fn blocks(n: usize, size: usize) -> impl Iterator<Item = (usize, bool)> {
    let whole = n - n % size;
    (0..whole).step_by(size).map(|i| (i, true)).chain((whole..n).map(|i| (i, false)))
}

/// The body of every tile. `a_row` and `a_step` come as arguments so that a caller can make one of them a constant.
///
/// # Safety
/// The CPU has `S`; every access is inside the tile's slices; `lanes` is at least 1 and at most `S::LANES`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd, const MR: usize, const NV: usize>(
    t: &mut Tile<'_>,
    a_row: usize,
    a_step: usize,
    lanes: usize,
) {
    // SAFETY: see above; pointers only wrap past the last step, where nothing reads them.
    unsafe {
        let mut acc = start::<S, MR, NV>(t, lanes);
        let (mut a_seg, mut b_seg) = (t.a.as_ptr(), t.b.as_ptr());
        let (len, b_step) = (t.len, t.b_step);
        for _ in 0..t.segs {
            let (mut a, mut b) = (a_seg, b_seg);
            for _ in 0..len {
                let bv = load_row::<S, NV>(b, S::LANES);
                for (i, row) in acc.iter_mut().enumerate() {
                    let x = S::splat(*a.add(i * a_row));
                    for v in 0..NV {
                        row[v] = S::fma(x, bv[v], row[v]);
                    }
                }
                a = a.wrapping_add(a_step);
                b = b.wrapping_add(b_step);
            }
            a_seg = a_seg.wrapping_add(t.a_seg);
            b_seg = b_seg.wrapping_add(t.b_seg);
        }
        finish::<S, MR, NV>(t, lanes, &acc);
    }
}

/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn start<S: Simd, const MR: usize, const NV: usize>(t: &Tile<'_>, lanes: usize) -> [[S::V; NV]; MR] {
    // SAFETY: `Tile::fits` has bounded the rows of `init` and `out`.
    unsafe {
        match t.init {
            Init::Zero => [[S::splat(0.0); NV]; MR],
            Init::Row(bias) => [load_row::<S, NV>(bias.as_ptr(), lanes); MR],
            Init::Keep => {
                let mut acc = [[S::splat(0.0); NV]; MR];
                for (i, row) in acc.iter_mut().enumerate() {
                    *row = load_row::<S, NV>(t.out.as_ptr().add(i * t.out_row), lanes);
                }
                acc
            }
        }
    }
}

/// No closures in here: `array::from_fn` may stay a call to code that is compiled for the wrong instruction set.
///
/// # Safety
/// The CPU has `S`, and `from` has the floats of a row whose last vector has `lanes` lanes.
#[inline(always)]
unsafe fn load_row<S: Simd, const NV: usize>(from: *const f32, lanes: usize) -> [S::V; NV] {
    // SAFETY: see above.
    unsafe {
        let mut row = [S::splat(0.0); NV];
        for (v, value) in row.iter_mut().enumerate() {
            let from = from.add(v * S::LANES);
            *value = if v + 1 == NV && lanes < S::LANES { S::load_part(from, lanes) } else { S::load(from) };
        }
        row
    }
}

/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn finish<S: Simd, const MR: usize, const NV: usize>(
    t: &mut Tile<'_>,
    lanes: usize,
    acc: &[[S::V; NV]; MR],
) {
    let (out, whole) = (t.out.as_mut_ptr(), if lanes < S::LANES { NV - 1 } else { NV });
    // SAFETY: `Tile::fits` has bounded the rows of `out`.
    unsafe {
        if whole == NV {
            for (i, row) in acc.iter().enumerate() {
                for (v, &value) in row.iter().enumerate() {
                    S::store(out.add(i * t.out_row + v * S::LANES), value);
                }
            }
            return;
        }
        for (i, row) in acc.iter().enumerate() {
            for (v, &value) in row.iter().enumerate() {
                let to = out.add(i * t.out_row + v * S::LANES);
                if v < whole { S::store(to, value) } else { S::store_part(to, value, lanes) }
            }
        }
    }
}

/// A matrix of dot products of the rows of `a` with the rows of `b`, both `k` long and contiguous.
///
/// A dot product is summed in sixteen lanes, then as a tree, on every instruction set.
pub(super) struct Dot<'a> {
    pub k: usize,
    pub a: &'a [f32],
    pub b: &'a [f32],
    pub bias: Option<&'a [f32]>,
    pub out: &'a mut [f32],
    pub out_row: usize,
}

/// A block of dot products at (row, column) compiled for one instruction set.
pub(super) type DotFn = unsafe fn(&mut Dot<'_>, usize, usize);

impl Dot<'_> {
    fn fits(&self, rows: usize, columns: usize) -> bool {
        let inputs =
            self.a.len() >= rows.saturating_mul(self.k) && self.b.len() >= columns.saturating_mul(self.k);
        let bias = self.bias.is_none_or(|bias| bias.len() >= columns);
        let out =
            rows == 0 || (rows - 1).saturating_mul(self.out_row).saturating_add(columns) <= self.out.len();
        inputs && bias && out
    }
}

/// # Safety
/// The CPU has `S`, `W * S::LANES` is [`MAX_LANES`], and the block is inside the matrix that `Dot::fits` has checked.
#[inline(always)]
pub(super) unsafe fn dot<S: Simd, const M: usize, const N: usize, const W: usize>(
    d: &mut Dot<'_>,
    i: usize,
    j: usize,
) {
    // SAFETY: see above; a tail shorter than sixteen floats is read from zero-padded copies.
    unsafe {
        let (a, b) = (d.a.as_ptr().add(i * d.k), d.b.as_ptr().add(j * d.k));
        let mut acc = [[[S::splat(0.0); W]; N]; M];
        let whole = d.k - d.k % MAX_LANES;
        for p in (0..whole).step_by(MAX_LANES) {
            dot_step::<S, M, N, W>(&mut acc, (a.add(p), d.k), (b.add(p), d.k));
        }
        if whole < d.k {
            let (a, b) = (dot_tail::<M>(d.a, i, d.k), dot_tail::<N>(d.b, j, d.k));
            let step = MAX_LANES;
            dot_step::<S, M, N, W>(
                &mut acc,
                (a.as_flattened().as_ptr(), step),
                (b.as_flattened().as_ptr(), step),
            );
        }
        for (r, row) in acc.iter().enumerate() {
            for (c, sum) in row.iter().enumerate() {
                let bias = d.bias.map_or(0.0, |bias| bias[j + c]);
                d.out[(i + r) * d.out_row + j + c] = tree_sum::<S, W>(*sum) + bias;
            }
        }
    }
}

/// # Safety
/// The CPU has `S`; `a` and `b` are pointers to `M` and `N` rows of [`MAX_LANES`] floats and the steps between rows.
#[inline(always)]
unsafe fn dot_step<S: Simd, const M: usize, const N: usize, const W: usize>(
    acc: &mut [[[S::V; W]; N]; M],
    (a, a_row): (*const f32, usize),
    (b, b_row): (*const f32, usize),
) {
    #[expect(clippy::needless_range_loop, reason = "`w` also indexes the inner arrays")]
    for w in 0..W {
        // SAFETY: `w * S::LANES` stays below `MAX_LANES`.
        unsafe {
            let mut av = [S::splat(0.0); M];
            for (i, av) in av.iter_mut().enumerate() {
                *av = S::load(a.add(i * a_row + w * S::LANES));
            }
            for j in 0..N {
                let bv = S::load(b.add(j * b_row + w * S::LANES));
                for i in 0..M {
                    acc[i][j][w] = S::fma(av[i], bv, acc[i][j][w]);
                }
            }
        }
    }
}

/// The last `k % 16` floats of rows `first..first + R`, padded with zeros.
fn dot_tail<const R: usize>(rows: &[f32], first: usize, k: usize) -> [[f32; MAX_LANES]; R] {
    let mut tail = [[0.0; MAX_LANES]; R];
    for (r, lanes) in tail.iter_mut().enumerate() {
        let end = (first + r + 1) * k;
        lanes[..k % MAX_LANES].copy_from_slice(&rows[end - k % MAX_LANES..end]);
    }
    tail
}

/// # Safety
/// The CPU has `S`; `W` is a power of two.
#[inline(always)]
unsafe fn tree_sum<S: Simd, const W: usize>(mut sum: [S::V; W]) -> f32 {
    let mut half = W / 2;
    while half > 0 {
        for i in 0..half {
            // SAFETY: the caller vouches for the CPU.
            sum[i] = unsafe { S::add(sum[i], sum[i + half]) };
        }
        half /= 2;
    }
    // SAFETY: as above.
    unsafe { S::tree_sum(sum[0]) }
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
        unsafe fn dot<const M: usize, const N: usize>(d: &mut Dot<'_>, i: usize, j: usize) {
            // SAFETY: the caller keeps the contract of `tile::dot`.
            unsafe { tile::dot::<$simd, M, N, $w>(d, i, j) }
        }
        impl $simd {
            /// The kernels compiled for this instruction set.
            pub(in crate::tensor::kernel) const TABLE: Table = Table {
                level: $level,
                lanes: <$simd as Simd>::LANES,
                widths: &[$(tile::Width { vectors: $nv, pixels: &[$(pixels::<$mr, $nv>),*], taps: &[$(taps::<$mr, $nv>),*] }),*],
                dot_size: ($m, $n),
                dot: [[dot::<1, 1>, dot::<1, $n>], [dot::<$m, 1>, dot::<$m, $n>]],
            };
        }
    };
}
pub(super) use tile_table;
