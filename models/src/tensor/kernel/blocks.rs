//! Loops over channels in blocks of a size that the compiler knows: no remainder, no check for overlap, and what belongs to a
//! channel stays in registers from pixel to pixel.

/// Calls `f::<B>(first channel, ..)` for blocks of channels that cover all of them.
macro_rules! in_blocks {
    ($channels:expr, $f:ident($($arg:expr),*)) => {{
        let (channels, mut at) = ($channels, 0);
        while at + 16 <= channels {
            $f::<16>(at, $($arg),*);
            at += 16;
        }
        while at + 4 <= channels {
            $f::<4>(at, $($arg),*);
            at += 4;
        }
        while at < channels {
            $f::<1>(at, $($arg),*);
            at += 1;
        }
    }};
}
pub(super) use in_blocks;

/// The block of `B` values at `at`.
#[inline(always)]
pub(super) fn block<T: Copy, const B: usize>(values: &[T], at: usize) -> [T; B] {
    *values[at..].first_chunk().expect("callers have checked the lengths")
}

/// `scale·x + shift`, lane by lane. Written for one vector: in a loop over several the compiler may take the wrong loop to vectorise.
#[inline(always)]
pub(super) fn scaled<const B: usize>(x: [f32; B], scale: &[f32; B], shift: &[f32; B]) -> [f32; B] {
    let mut out = [0.0; B];
    for j in 0..B {
        out[j] = scale[j] * x[j] + shift[j];
    }
    out
}
