//! The arithmetic of one unit, after the table in `mod.rs`.
use super::{A, A2, B, B2};
use crate::tensor::kernel::simd::Simd;

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn quad_input<S: Simd>(d: [S::V; 6]) -> [S::V; 6] {
    // SAFETY: see above.
    unsafe {
        let (b2, outer) = (S::splat(B2), S::splat(-A2));
        let (even, odd) = (S::sub(S::mul(b2, d[2]), d[4]), S::sub(S::mul(b2, d[1]), d[3]));
        let (outer_even, outer_odd) = (S::fma(outer, d[2], d[4]), S::fma(outer, d[1], d[3]));
        let (both, sum) = (S::splat(A2 * B2), S::splat(-(A2 + B2)));
        [
            S::fma(both, d[0], S::fma(sum, d[2], d[4])),
            S::fma(S::splat(A), odd, even),
            S::fma(S::splat(-A), odd, even),
            S::fma(both, d[1], S::fma(sum, d[3], d[5])),
            S::fma(S::splat(B), outer_odd, outer_even),
            S::fma(S::splat(-B), outer_odd, outer_even),
        ]
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn pair_input<S: Simd>(d: [S::V; 4]) -> [S::V; 4] {
    // SAFETY: see above.
    unsafe {
        let (even, factor) = (S::mul(S::splat(B2 - A2), d[2]), (B2 - A2) * A);
        [
            S::mul(S::splat(B2), S::sub(S::mul(S::splat(A2), d[0]), d[2])),
            S::fma(S::splat(factor), d[1], even),
            S::fma(S::splat(-factor), d[1], even),
            S::fma(S::splat(-A2), d[1], d[3]),
        ]
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn quad_output<S: Simd>(bias: S::V, m: [S::V; 6]) -> [S::V; 4] {
    // SAFETY: see above.
    unsafe {
        let (even, odd) = (S::add(m[1], m[2]), S::sub(m[1], m[2]));
        let (outer_even, outer_odd) = (S::add(m[4], m[5]), S::sub(m[4], m[5]));
        [
            S::add(S::add(S::add(m[0], even), outer_even), bias),
            S::fma(S::splat(A), odd, S::fma(S::splat(B), outer_odd, bias)),
            S::fma(S::splat(A2), even, S::fma(S::splat(B2), outer_even, bias)),
            S::fma(S::splat(A2 * A), odd, S::fma(S::splat(B2 * B), outer_odd, S::add(m[3], bias))),
        ]
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn pair_output<S: Simd>(bias: S::V, m: [S::V; 4]) -> [S::V; 2] {
    // SAFETY: see above.
    unsafe {
        [
            S::add(S::add(m[0], S::add(m[1], m[2])), bias),
            S::fma(S::splat(A), S::sub(m[1], m[2]), S::add(m[3], bias)),
        ]
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn quad_grad<S: Simd>(d: [S::V; 4]) -> [S::V; 6] {
    // SAFETY: see above.
    unsafe {
        let (even, odd) = (S::fma(S::splat(A2), d[2], d[0]), S::fma(S::splat(A2), d[3], d[1]));
        let (outer_even, outer_odd) = (S::fma(S::splat(B2), d[2], d[0]), S::fma(S::splat(B2), d[3], d[1]));
        [
            d[0],
            S::fma(S::splat(A), odd, even),
            S::fma(S::splat(-A), odd, even),
            d[3],
            S::fma(S::splat(B), outer_odd, outer_even),
            S::fma(S::splat(-B), outer_odd, outer_even),
        ]
    }
}

/// # Safety
/// The CPU has `S`.
#[inline(always)]
pub(super) unsafe fn pair_grad<S: Simd>(d: [S::V; 2]) -> [S::V; 4] {
    // SAFETY: see above.
    unsafe { [d[0], S::fma(S::splat(A), d[1], d[0]), S::fma(S::splat(-A), d[1], d[0]), d[1]] }
}
