//! 64-bit ARM: NEON, which every such CPU has.
use super::dot::{self, Dot};
use super::geometry::ConvGeometry;
use super::isa::IsaCap;
use super::simd::Simd;
use super::table::{Dots, Table, Tiles, Transforms, Width, Windows, tile_table};
use super::tile::{self, Tile};
use super::window;
use super::winograd::{WinogradRows, transform};
use std::arch::aarch64::*;

/// Four lanes with fused multiply-add.
pub(super) struct Neon;

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;
    // An instruction multiplies by one lane of a register.
    type Near = [float32x4_t; 3];
    const NEAR: usize = 4;

    #[inline(always)]
    unsafe fn near(from: *const f32, n: usize) -> [float32x4_t; 3] {
        // SAFETY: the caller vouches for `n` floats at `from`.
        unsafe {
            let zero = vdupq_n_f32(0.0);
            let (quads, mut near) = (n / 4, [zero; 3]);
            for (quad, near) in near.iter_mut().enumerate().take(quads) {
                *near = vld1q_f32(from.add(4 * quad));
            }
            let rest = from.add(4 * quads);
            if n & 2 != 0 {
                near[quads] = vcombine_f32(vld1_f32(rest), vget_low_f32(zero));
            }
            if n & 1 != 0 {
                near[quads + usize::from(n & 2 != 0)] = one(from, n - 1);
            }
            near
        }
    }

    #[inline(always)]
    unsafe fn fma_near(
        near: [float32x4_t; 3],
        n: usize,
        i: usize,
        b: float32x4_t,
        c: float32x4_t,
    ) -> float32x4_t {
        // A last one of three has a register of its own.
        let alone = n & 3 == 3 && i + 1 == n;
        let (register, lane) = if alone { (n / 4 + 1, 0) } else { (i / 4, i % 4) };
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe {
            match lane {
                0 => vfmaq_laneq_f32::<0>(c, b, near[register]),
                1 => vfmaq_laneq_f32::<1>(c, b, near[register]),
                2 => vfmaq_laneq_f32::<2>(c, b, near[register]),
                _ => vfmaq_laneq_f32::<3>(c, b, near[register]),
            }
        }
    }

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
    unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is in every AArch64 CPU.
        unsafe { vmulq_f32(a, b) }
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

/// Number `i` of the floats at `from`, an even one, in the lowest lane. The compiler would spread it over all lanes (`ld1r`), which takes a
/// multiplier's time, and let the next address wait for it.
///
/// # Safety
/// There is such a float.
#[inline(always)]
unsafe fn one(from: *const f32, i: usize) -> float32x4_t {
    macro_rules! load {
        ($bytes:literal) => {{
            let lowest: float32x4_t;
            // SAFETY: reads the float that the caller vouches for, and nothing else.
            unsafe {
                std::arch::asm!(
                    concat!("ldr {v:s}, [{from}, #", $bytes, "]"),
                    v = out(vreg) lowest,
                    from = in(reg) from,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            lowest
        }};
    }
    match i {
        0 => load!("0"),
        2 => load!("8"),
        4 => load!("16"),
        _ => load!("24"),
    }
}

tile_table! {
    Neon, IsaCap::Neon, features: [],
    widths: [
        4 => {1: [1 2 3 4 5 6] [1 2 3 4 5 6]},
        3 => {1: [1 2 3 4 5 6] [1 2 3 4 5 6]},
        2 => {1: [] [1 2 3 4 5 6], 2: [1 2 3 4 5] [1 2 3 4 5]},
        1 => {1: [] [1 2 3 4 5 6 7 8], 4: [1 2 3 4 5] [1 2 3 4 5]},
    ],
    dots: {1: [1 2 3 4 5], 2: [1 2 3]}, 4,
}
