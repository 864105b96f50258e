//! The register tile that convolutions and gradients stand on: a strip of rows times a panel of vectors.
use super::simd::Simd;

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
    pub(super) fn fits(&self, rows: usize, width: usize, stored: usize) -> bool {
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
