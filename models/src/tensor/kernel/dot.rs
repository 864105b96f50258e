//! The register block that linear layers stand on in the forward pass: dot products of contiguous rows.
use super::simd::{MAX_LANES, Simd};

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
    pub(super) fn fits(&self, rows: usize, columns: usize) -> bool {
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
pub(super) unsafe fn block<S: Simd, const M: usize, const N: usize, const W: usize>(
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
            step::<S, M, N, W>(&mut acc, (a.add(p), d.k), (b.add(p), d.k));
        }
        if whole < d.k {
            let (a, b) = (tail::<M>(d.a, i, d.k), tail::<N>(d.b, j, d.k));
            let row = MAX_LANES;
            step::<S, M, N, W>(&mut acc, (a.as_flattened().as_ptr(), row), (b.as_flattened().as_ptr(), row));
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
unsafe fn step<S: Simd, const M: usize, const N: usize, const W: usize>(
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
fn tail<const R: usize>(rows: &[f32], first: usize, k: usize) -> [[f32; MAX_LANES]; R] {
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
