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
/// vectors of one panel. Each element is summed in the order of `s`, then `k`, in as many partial sums as its panel has, whatever the size
/// of the tile.
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

/// A tile compiled for one instruction set, number of rows, of vectors and of partial sums; the last argument is the number of lanes of
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

/// In which direction a tile's scalar multiplicands are neighbours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// `a_step` is 1.
    Reduction,
    /// `a_row` is 1.
    Rows,
}

/// What a tile's elements are added up in: by partial sum, row and vector.
type Sums<V, const MR: usize, const NV: usize, const SUMS: usize> = [[[V; NV]; MR]; SUMS];

/// The body of every tile. Term `k` of a segment goes to partial sum `k % SUMS`; the first one starts from `init`, and they meet as a tree.
///
/// # Safety
/// The CPU has `S`; every access is inside the tile's slices, whose neighbours are `along`; `lanes` is at least 1 and at most `S::LANES`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd, const MR: usize, const NV: usize, const SUMS: usize>(
    t: &mut Tile<'_>,
    along: Along,
    lanes: usize,
) {
    // SAFETY: see above; pointers only wrap past the last step, where nothing reads them.
    unsafe {
        let mut sums = [[[S::splat(0.0); NV]; MR]; SUMS];
        sums[0] = start::<S, MR, NV>(t, lanes);
        let (mut a, mut b) = (t.a.as_ptr(), t.b.as_ptr());
        for _ in 0..t.segs {
            segment::<S, MR, NV, SUMS>(t, along, (a, b), &mut sums);
            a = a.wrapping_add(t.a_seg);
            b = b.wrapping_add(t.b_seg);
        }
        let mut half = SUMS / 2;
        while half > 0 {
            for s in 0..half {
                sums[s] = add::<S, MR, NV>(sums[s], sums[s + half]);
            }
            half /= 2;
        }
        finish::<S, MR, NV>(t, lanes, &sums[0]);
    }
}

/// Runs the block for each `u` below a number that is at most four. Written out: which sum is meant must be known where it is compiled, or sums
/// would not stay in registers; a loop the compiler unrolls or doesn't.
macro_rules! below {
    ($u:ident < $end:expr, $block:block) => {{
        below!(@ 0, $u, $end, $block);
        below!(@ 1, $u, $end, $block);
        below!(@ 2, $u, $end, $block);
        below!(@ 3, $u, $end, $block);
    }};
    (@ $number:literal, $u:ident, $end:expr, $block:block) => {
        if $number < $end {
            let $u = $number;
            $block
        }
    };
}

/// Adds the terms of one segment.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn segment<S: Simd, const MR: usize, const NV: usize, const SUMS: usize>(
    t: &Tile<'_>,
    along: Along,
    (mut a, mut b): (*const f32, *const f32),
    sums: &mut Sums<S::V, MR, NV, SUMS>,
) {
    let (a_row, a_step) = if along == Along::Rows { (1, t.a_step) } else { (t.a_row, 1) };
    let (len, b_step) = (t.len, t.b_step);
    // Registers for the sums, the rows' neighbours and a row of `b`: with fewer, each float is read when it is needed.
    let near = along == Along::Reduction && S::NEAR > 1 && SUMS * MR * NV + MR + NV <= REGISTERS;
    // A single row has too few terms to hide what a loop itself takes.
    let unroll = if near || MR == 1 && S::NEAR > SUMS { S::NEAR } else { SUMS };
    // SAFETY: the caller vouches for all steps; pointers only wrap past the last one, where nothing reads them.
    unsafe {
        for _ in 0..len / unroll {
            if near {
                let mut rows = [S::near(a, unroll); MR];
                for (i, row) in rows.iter_mut().enumerate() {
                    *row = S::near(a.add(i * a_row), unroll);
                }
                below!(u < unroll, {
                    let bv = load_row::<S, NV>(b.wrapping_add(u * b_step), S::LANES);
                    for (i, row) in sums[u % SUMS].iter_mut().enumerate() {
                        for v in 0..NV {
                            row[v] = S::fma_near(rows[i], unroll, u, bv[v], row[v]);
                        }
                    }
                });
            } else {
                below!(u < unroll, {
                    let (a, b) = (a.wrapping_add(u * a_step), b.wrapping_add(u * b_step));
                    term::<S, MR, NV>(along, (a, a_row), b, &mut sums[u % SUMS]);
                });
            }
            a = a.wrapping_add(unroll * a_step);
            b = b.wrapping_add(unroll * b_step);
        }
        if SUMS == 1 {
            for _ in 0..len % unroll {
                term::<S, MR, NV>(along, (a, a_row), b, &mut sums[0]);
                a = a.wrapping_add(a_step);
                b = b.wrapping_add(b_step);
            }
        } else {
            let rest = len % unroll;
            below!(u < rest, {
                let (a, b) = (a.wrapping_add(u * a_step), b.wrapping_add(u * b_step));
                term::<S, MR, NV>(along, (a, a_row), b, &mut sums[u % SUMS]);
            });
        }
    }
}

/// Vector registers of the instruction sets that read neighbours together.
const REGISTERS: usize = 32;

/// Adds one term to a tile's sums.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn term<S: Simd, const MR: usize, const NV: usize>(
    along: Along,
    (a, a_row): (*const f32, usize),
    b: *const f32,
    sums: &mut [[S::V; NV]; MR],
) {
    // SAFETY: the caller vouches for the step.
    unsafe {
        let bv = load_row::<S, NV>(b, S::LANES);
        if along == Along::Rows {
            let near = S::near(a, MR);
            for (i, row) in sums.iter_mut().enumerate() {
                for v in 0..NV {
                    row[v] = S::fma_near(near, MR, i, bv[v], row[v]);
                }
            }
            return;
        }
        for (i, row) in sums.iter_mut().enumerate() {
            let x = S::splat(*a.add(i * a_row));
            for v in 0..NV {
                row[v] = S::fma(x, bv[v], row[v]);
            }
        }
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
unsafe fn add<S: Simd, const MR: usize, const NV: usize>(
    mut a: [[S::V; NV]; MR],
    b: [[S::V; NV]; MR],
) -> [[S::V; NV]; MR] {
    for i in 0..MR {
        for v in 0..NV {
            // SAFETY: the caller vouches for the CPU.
            a[i][v] = unsafe { S::add(a[i][v], b[i][v]) };
        }
    }
    a
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
