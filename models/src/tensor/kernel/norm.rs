//! Batch normalisation over channel-last pixels: every function takes whole pixels and a slice per channel.
use super::blocks::{block, in_blocks, scaled};
use super::dispatch::vectorised;
use super::isa::Isa;

/// Panics unless `x` is whole pixels of `channels`.
pub(super) fn check_pixels(channels: usize, x: &[f32]) {
    assert!(channels > 0 && x.len().is_multiple_of(channels), "{} floats in pixels of {channels}", x.len());
}

/// `out = scale[c]·y + shift[c]`: a normalisation whose statistics are folded in.
pub fn scale_shift(isa: Isa, y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    check_scale(y, scale, shift, out);
    vectorised!(isa, scale_shift_body(y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]));
}

#[inline(always)]
fn scale_shift_body(y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    in_blocks!(scale.len(), scale_shift_block(y, (scale, shift), out));
}

#[inline(always)]
fn scale_shift_block<const B: usize>(
    at: usize,
    y: &[f32],
    (scale, shift): (&[f32], &[f32]),
    out: &mut [f32],
) {
    let (c, scale, shift): (_, [f32; B], [f32; B]) = (scale.len(), block(scale, at), block(shift, at));
    for (out, y) in out.chunks_exact_mut(c).zip(y.chunks_exact(c)) {
        out[at..][..B].copy_from_slice(&scaled(block(y, at), &scale, &shift));
    }
}

/// `out = max(scale[c]·y + shift[c], 0)`; a NaN stays.
pub fn scale_shift_relu(isa: Isa, y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    check_scale(y, scale, shift, out);
    vectorised!(isa, scale_shift_relu_body(y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]));
}

#[inline(always)]
fn scale_shift_relu_body(y: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    in_blocks!(scale.len(), scale_shift_relu_block(y, (scale, shift), out));
}

#[inline(always)]
fn scale_shift_relu_block<const B: usize>(
    at: usize,
    y: &[f32],
    (scale, shift): (&[f32], &[f32]),
    out: &mut [f32],
) {
    let (c, scale, shift): (_, [f32; B], [f32; B]) = (scale.len(), block(scale, at), block(shift, at));
    for (out, y) in out.chunks_exact_mut(c).zip(y.chunks_exact(c)) {
        let mut z = scaled(block(y, at), &scale, &shift);
        for z in &mut z {
            *z = if *z < 0.0 { 0.0 } else { *z };
        }
        out[at..][..B].copy_from_slice(&z);
    }
}

pub(super) fn check_scale(y: &[f32], scale: &[f32], shift: &[f32], out: &[f32]) {
    check_pixels(scale.len(), y);
    assert_eq!(scale.len(), shift.len(), "channels");
    assert_eq!(y.len(), out.len(), "inputs and outputs of a normalisation");
}

/// The backward pass of a batch normalisation, per channel: `dy = gain·g + offset + slope·y`.
#[derive(Clone, Copy, Debug)]
pub struct BnBackward<'a> {
    /// Factor of the gradient.
    pub gain: &'a [f32],
    /// Constant.
    pub offset: &'a [f32],
    /// Factor of the value before normalisation.
    pub slope: &'a [f32],
}

impl BnBackward<'_> {
    /// Panics unless there is one of each per channel.
    pub(super) fn check(&self, channels: usize) {
        let lens = [self.gain.len(), self.offset.len(), self.slope.len()];
        assert_eq!(lens, [channels; 3], "channels of a normalisation");
    }
}

/// `out = gain[c]·g + offset[c] + slope[c]·y`.
pub fn bn_backward(isa: Isa, g: &[f32], y: &[f32], bn: BnBackward<'_>, out: &mut [f32]) {
    check_pixels(bn.gain.len(), y);
    bn.check(bn.gain.len());
    assert!(g.len() == y.len() && out.len() == y.len(), "gradients and values of a normalisation");
    vectorised!(isa, bn_backward_body(g: &[f32], y: &[f32], bn: BnBackward<'_>, out: &mut [f32]));
}

#[inline(always)]
fn bn_backward_body(g: &[f32], y: &[f32], bn: BnBackward<'_>, out: &mut [f32]) {
    in_blocks!(bn.gain.len(), bn_backward_block(g, y, bn, out));
}

#[inline(always)]
fn bn_backward_block<const B: usize>(at: usize, g: &[f32], y: &[f32], bn: BnBackward<'_>, out: &mut [f32]) {
    let c = bn.gain.len();
    let (gain, offset, slope): ([f32; B], [f32; B], [f32; B]) =
        (block(bn.gain, at), block(bn.offset, at), block(bn.slope, at));
    for (out, (g, y)) in out.chunks_exact_mut(c).zip(g.chunks_exact(c).zip(y.chunks_exact(c))) {
        let (mut sum, y): ([f32; B], [f32; B]) = (scaled(block(g, at), &gain, &offset), block(y, at));
        for j in 0..B {
            sum[j] += slope[j] * y[j];
        }
        out[at..][..B].copy_from_slice(&sum);
    }
}
