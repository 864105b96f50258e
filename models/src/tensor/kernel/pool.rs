//! ReLU and 2x2 max-pooling in one pass over two rows, and the way back.
//!
//! The forward pass keeps one byte per output: which of the four inputs won, or [`POOL_CUT`].
use super::blocks::{block, in_blocks, scaled};
use super::dispatch::vectorised;
use super::isa::Isa;
use super::norm::BnBackward;
use super::pointwise::cut_if;

/// In place of a winner's index: the ReLU cut the output, and no input gets a gradient.
pub const POOL_CUT: u8 = 4;

/// Two neighbouring rows of a channel-last plane and the row that pooling makes of them. An odd last column is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRow {
    /// Columns before pooling.
    pub width: usize,
    /// Channels.
    pub channels: usize,
    /// From the first of the two rows to the second, in floats.
    pub pitch: usize,
}

impl PoolRow {
    /// Floats (and bytes) of the pooled row.
    pub fn pooled_len(&self) -> usize {
        self.width / 2 * self.channels
    }

    /// Floats from the start of the first row to the end of the second.
    pub fn pair_len(&self) -> usize {
        self.pitch + self.width * self.channels
    }

    pub(super) fn check(&self, pair: usize, pooled: usize, argmax: usize) {
        assert!(self.channels > 0 && self.pitch >= self.width * self.channels, "rows overlap: {self:?}");
        assert!(pair >= self.pair_len(), "two rows of {pair} floats for {self:?}");
        assert!(
            pooled == self.pooled_len() && argmax == pooled,
            "pooled row of {pooled} and {argmax} for {self:?}"
        );
    }

    /// Offsets of the four inputs of output column `x`.
    #[inline(always)]
    pub(super) fn corners(&self, x: usize) -> [usize; 4] {
        let left = 2 * x * self.channels;
        [left, left + self.channels, self.pitch + left, self.pitch + left + self.channels]
    }
}

/// `out = max(0, the four inputs)`; of equal inputs the first wins.
pub fn relu_max_pool2(isa: Isa, row: PoolRow, y: &[f32], out: &mut [f32], argmax: &mut [u8]) {
    row.check(y.len(), out.len(), argmax.len());
    vectorised!(isa, relu_max_pool2_body(row: PoolRow, y: &[f32], out: &mut [f32], argmax: &mut [u8]));
}

#[inline(always)]
fn relu_max_pool2_body(row: PoolRow, y: &[f32], out: &mut [f32], argmax: &mut [u8]) {
    in_blocks!(row.channels, relu_max_pool2_block(row, y, out, argmax));
}

#[inline(always)]
fn relu_max_pool2_block<const B: usize>(
    at: usize,
    row: PoolRow,
    y: &[f32],
    out: &mut [f32],
    argmax: &mut [u8],
) {
    let c = row.channels;
    for (x, (out, argmax)) in out.chunks_exact_mut(c).zip(argmax.chunks_exact_mut(c)).enumerate() {
        let corners = row.corners(x).map(|corner| block(y, corner + at));
        relu_max::<B>(corners, &mut out[at..][..B], &mut argmax[at..][..B]);
    }
}

/// The largest of four, or zero, and which one it is. Selects, not branches: this is the inner loop.
#[inline(always)]
fn relu_max<const B: usize>(y: [[f32; B]; 4], out: &mut [f32], argmax: &mut [u8]) {
    let (mut max, mut at) = (y[0], [0u32; B]);
    take_larger(&mut max, &mut at, &y[1], 1);
    take_larger(&mut max, &mut at, &y[2], 2);
    take_larger(&mut max, &mut at, &y[3], 3);
    for j in 0..B {
        let cut = max[j] <= 0.0;
        at[j] = if cut { u32::from(POOL_CUT) } else { at[j] };
        max[j] = cut_if(cut, max[j]);
    }
    out.copy_from_slice(&max);
    argmax.copy_from_slice(&at.map(|at| at as u8));
}

#[inline(always)]
fn take_larger<const B: usize>(max: &mut [f32; B], at: &mut [u32; B], y: &[f32; B], i: u32) {
    for j in 0..B {
        let above = y[j] > max[j];
        at[j] = if above { i } else { at[j] };
        max[j] = if above { y[j] } else { max[j] };
    }
}

/// [`relu_max_pool2`] of `scale[c]·y + shift[c]`, without storing that.
pub fn bn_relu_max_pool2(
    isa: Isa,
    row: PoolRow,
    y: &[f32],
    scale: &[f32],
    shift: &[f32],
    out: &mut [f32],
    argmax: &mut [u8],
) {
    row.check(y.len(), out.len(), argmax.len());
    assert!(scale.len() == row.channels && shift.len() == row.channels, "channels");
    vectorised!(isa, bn_relu_max_pool2_body(
        row: PoolRow, y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32], argmax: &mut [u8],
    ));
}

#[inline(always)]
fn bn_relu_max_pool2_body(
    row: PoolRow,
    y: &[f32],
    scale: &[f32],
    shift: &[f32],
    out: &mut [f32],
    argmax: &mut [u8],
) {
    in_blocks!(row.channels, bn_relu_max_pool2_block(row, y, (scale, shift), out, argmax));
}

#[inline(always)]
fn bn_relu_max_pool2_block<const B: usize>(
    at: usize,
    row: PoolRow,
    y: &[f32],
    (scale, shift): (&[f32], &[f32]),
    out: &mut [f32],
    argmax: &mut [u8],
) {
    let c = row.channels;
    let (scale, shift): ([f32; B], [f32; B]) = (block(scale, at), block(shift, at));
    for (x, (out, argmax)) in out.chunks_exact_mut(c).zip(argmax.chunks_exact_mut(c)).enumerate() {
        let [a, b, c, d] = row.corners(x).map(|corner| block(y, corner + at));
        let corners = [a, b, c, d].map(|corner| scaled(corner, &scale, &shift));
        relu_max::<B>(corners, &mut out[at..][..B], &mut argmax[at..][..B]);
    }
}

/// The gradient of [`relu_max_pool2`]: the winner gets `g`, the others zero. Overwrites two rows of `dy`, an odd last column
/// with zeros.
pub fn unpool2(isa: Isa, row: PoolRow, g: &[f32], argmax: &[u8], dy: &mut [f32]) {
    row.check(dy.len(), g.len(), argmax.len());
    vectorised!(isa, unpool2_body(row: PoolRow, g: &[f32], argmax: &[u8], dy: &mut [f32]));
}

#[inline(always)]
fn unpool2_body(row: PoolRow, g: &[f32], argmax: &[u8], dy: &mut [f32]) {
    in_blocks!(row.channels, unpool2_block(row, g, argmax, dy));
    if row.width % 2 == 1 {
        let last = (row.width - 1) * row.channels;
        dy[last..][..row.channels].fill(0.0);
        dy[row.pitch + last..][..row.channels].fill(0.0);
    }
}

#[inline(always)]
fn unpool2_block<const B: usize>(at: usize, row: PoolRow, g: &[f32], argmax: &[u8], dy: &mut [f32]) {
    let c = row.channels;
    for (x, (g, argmax)) in g.chunks_exact(c).zip(argmax.chunks_exact(c)).enumerate() {
        let (g, won): ([f32; B], [u32; B]) = (block(g, at), block::<u8, B>(argmax, at).map(u32::from));
        for (i, corner) in (0u32..).zip(row.corners(x)) {
            dy[corner + at..][..B].copy_from_slice(&share(&g, &won, i));
        }
    }
}

/// The gradients of those outputs that input `i` won.
#[inline(always)]
fn share<const B: usize>(g: &[f32; B], won: &[u32; B], i: u32) -> [f32; B] {
    let mut share = [0.0; B];
    for j in 0..B {
        share[j] = cut_if(won[j] != i, g[j]);
    }
    share
}

/// The gradient of [`bn_relu_max_pool2`] through the normalisation: [`unpool2`], then [`super::bn_backward`] with the values
/// `y` before it. `y` and `dy` have pitches of their own: `row.pitch` is that of `dy`.
#[expect(clippy::too_many_arguments, reason = "operands of a fused pass, all different")]
pub fn bn_unpool2(
    isa: Isa,
    row: PoolRow,
    g: &[f32],
    argmax: &[u8],
    y: &[f32],
    y_pitch: usize,
    bn: BnBackward<'_>,
    dy: &mut [f32],
) {
    row.check(dy.len(), g.len(), argmax.len());
    PoolRow { pitch: y_pitch, ..row }.check(y.len(), g.len(), argmax.len());
    bn.check(row.channels);
    vectorised!(isa, bn_unpool2_body(
        row: PoolRow, g: &[f32], argmax: &[u8], y: &[f32], y_pitch: usize, bn: BnBackward<'_>, dy: &mut [f32],
    ));
}

#[inline(always)]
fn bn_unpool2_body(
    row: PoolRow,
    g: &[f32],
    argmax: &[u8],
    y: &[f32],
    y_pitch: usize,
    bn: BnBackward<'_>,
    dy: &mut [f32],
) {
    let c = row.channels;
    in_blocks!(c, bn_unpool2_block(row, (g, argmax), (y, y_pitch), bn, dy));
    if row.width % 2 == 1 {
        let last = (row.width - 1) * c;
        for (at, y_at) in [(last, last), (row.pitch + last, y_pitch + last)] {
            for j in 0..c {
                dy[at + j] = bn.offset[j] + bn.slope[j] * y[y_at + j];
            }
        }
    }
}

#[inline(always)]
fn bn_unpool2_block<const B: usize>(
    at: usize,
    row: PoolRow,
    (g, argmax): (&[f32], &[u8]),
    (y, y_pitch): (&[f32], usize),
    bn: BnBackward<'_>,
    dy: &mut [f32],
) {
    let c = row.channels;
    let y_row = PoolRow { pitch: y_pitch, ..row };
    let (gain, offset, slope): ([f32; B], [f32; B], [f32; B]) =
        (block(bn.gain, at), block(bn.offset, at), block(bn.slope, at));
    for (x, (g, argmax)) in g.chunks_exact(c).zip(argmax.chunks_exact(c)).enumerate() {
        let (g, won): ([f32; B], [u32; B]) = (block(g, at), block::<u8, B>(argmax, at).map(u32::from));
        for (i, (corner, y_corner)) in (0u32..).zip(row.corners(x).into_iter().zip(y_row.corners(x))) {
            let (mut share, y): ([f32; B], [f32; B]) = (share(&g, &won, i), block(y, y_corner + at));
            for j in 0..B {
                share[j] = gain[j] * share[j] + offset[j] + slope[j] * y[j];
            }
            dy[corner + at..][..B].copy_from_slice(&share);
        }
    }
}
