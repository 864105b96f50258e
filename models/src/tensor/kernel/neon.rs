//! 64-bit ARM: NEON, which every such CPU has.
use super::isa::{IsaCap, Table};
use super::simd::Simd;
use super::tile::{self, Dot, Tile, tile_table};
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
}

tile_table! {
    Neon, IsaCap::Neon, features: [],
    widths: [4 => [1 2 3 4 5 6], 2 => [1 2 3 4 5 6 7 8], 1 => [1 2 3 4 5 6 7 8]],
    dot: [2 x 3, 4],
}
