//! 64-bit ARM: NEON, which every such CPU has.
use super::dot::{self, Dot};
use super::isa::IsaCap;
use super::simd::Simd;
use super::table::{Table, Width, tile_table};
use super::tile::{self, Tile};
use std::arch::aarch64::*;

/// Four lanes with fused multiply-add.
pub(super) struct Neon;

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        // SAFETY: the caller vouches for four floats at `from`.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: float32x4_t) {
        // SAFETY: the caller vouches for four floats at `to`.
        unsafe { vst1q_f32(to, v) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> float32x4_t {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn tree_sum(v: float32x4_t) -> f32 {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe {
            let halves = vadd_f32(vget_low_f32(v), vget_high_f32(v));
            vget_lane_f32::<0>(halves) + vget_lane_f32::<1>(halves)
        }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> float32x4_t {
        // SAFETY: the caller vouches for `n` floats at `from`.
        unsafe {
            let zero = vdupq_n_f32(0.0);
            let pair = |from: *const f32| vcombine_f32(vld1_f32(from), vget_low_f32(zero));
            match n {
                1 => vld1q_lane_f32::<0>(from, zero),
                2 => pair(from),
                3 => vld1q_lane_f32::<2>(from.add(2), pair(from)),
                _ => zero,
            }
        }
    }

    #[inline(always)]
    unsafe fn store_part(mut to: *mut f32, v: float32x4_t, n: usize) {
        // SAFETY: the caller vouches for `n` floats at `to`.
        unsafe {
            let mut rest = vget_low_f32(v);
            if n & 2 != 0 {
                vst1_f32(to, rest);
                (to, rest) = (to.add(2), vget_high_f32(v));
            }
            if n & 1 != 0 {
                vst1_lane_f32::<0>(to, rest);
            }
        }
    }
}

tile_table! {
    Neon, IsaCap::Neon, features: [],
    widths: [4 => [1 2 3 4 5 6], 2 => [1 2 3 4 5 6], 1 => [1 2 3 4 5 6 7 8]],
    dot: [2 x 3, 4],
}
