//! x86-64: SSE2, AVX2 with FMA, and AVX-512.
use super::dot::{self, Dot};
use super::geometry::ConvGeometry;
use super::isa::IsaCap;
use super::simd::Simd;
use super::table::{Dots, Table, Tiles, Transforms, Width, Windows, tile_table};
use super::tile::{self, Tile};
use super::window;
use super::winograd::{WinogradRows, transform};
use std::arch::x86_64::*;

/// Four lanes, no fused multiply-add.
pub(super) struct Sse2;

/// Eight lanes.
pub(super) struct Avx2;

/// Sixteen lanes.
pub(super) struct Avx512;

impl Simd for Sse2 {
    type V = __m128;
    const LANES: usize = 4;
    // An instruction reads one float into all lanes as it multiplies.
    type Near = *const f32;
    const NEAR: usize = 1;

    #[inline(always)]
    unsafe fn near(from: *const f32, _: usize) -> *const f32 {
        from
    }

    #[inline(always)]
    unsafe fn fma_near(near: *const f32, _: usize, i: usize, b: __m128, c: __m128) -> __m128 {
        // SAFETY: the caller vouches for the CPU and for float number `i` at `near`.
        unsafe { Self::fma(Self::splat(*near.add(i)), b, c) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m128 {
        // SAFETY: the caller vouches for four floats at `from`; SSE2 is in every x86-64 CPU.
        unsafe { _mm_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m128) {
        // SAFETY: the caller vouches for four floats at `to`.
        unsafe { _mm_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m128 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe { _mm_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m128, b: __m128, c: __m128) -> __m128 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe { _mm_add_ps(_mm_mul_ps(a, b), c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m128, b: __m128) -> __m128 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe { _mm_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m128, b: __m128) -> __m128 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe { _mm_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m128, b: __m128) -> __m128 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe { _mm_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn tree_sum(v: __m128) -> f32 {
        // SAFETY: SSE2 is in every x86-64 CPU.
        unsafe {
            let pair = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
        }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> __m128 {
        // SAFETY: the caller vouches for `n` floats at `from`.
        unsafe {
            let pair = |from: *const f32| _mm_castsi128_ps(_mm_loadl_epi64(from.cast()));
            match n {
                1 => _mm_load_ss(from),
                2 => pair(from),
                3 => _mm_movelh_ps(pair(from), _mm_load_ss(from.add(2))),
                _ => _mm_setzero_ps(),
            }
        }
    }

    #[inline(always)]
    unsafe fn store_part(mut to: *mut f32, mut v: __m128, n: usize) {
        // SAFETY: the caller vouches for `n` floats at `to`.
        unsafe {
            if n & 2 != 0 {
                _mm_storel_epi64(to.cast(), _mm_castps_si128(v));
                (to, v) = (to.add(2), _mm_movehl_ps(v, v));
            }
            if n & 1 != 0 {
                _mm_store_ss(to, v);
            }
        }
    }
}

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    // An instruction reads one float into all lanes as it multiplies.
    type Near = *const f32;
    const NEAR: usize = 1;

    #[inline(always)]
    unsafe fn near(from: *const f32, _: usize) -> *const f32 {
        from
    }

    #[inline(always)]
    unsafe fn fma_near(near: *const f32, _: usize, i: usize, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller vouches for the CPU and for float number `i` at `near`.
        unsafe { Self::fma(Self::splat(*near.add(i)), b, c) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller vouches for the CPU and for eight floats at `from`.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        // SAFETY: the caller vouches for the CPU and for eight floats at `to`.
        unsafe { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn tree_sum(v: __m256) -> f32 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { Sse2::tree_sum(_mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v))) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and for `n` floats at `from`.
        unsafe {
            if n < 4 {
                return _mm256_zextps128_ps256(Sse2::load_part(from, n));
            }
            _mm256_set_m128(Sse2::load_part(from.add(4), n - 4), Sse2::load(from))
        }
    }

    #[inline(always)]
    unsafe fn store_part(to: *mut f32, v: __m256, n: usize) {
        // SAFETY: the caller vouches for the CPU and for `n` floats at `to`.
        unsafe {
            let (mut to, mut rest) = (to, _mm256_castps256_ps128(v));
            if n & 4 != 0 {
                Sse2::store(to, rest);
                (to, rest) = (to.add(4), _mm256_extractf128_ps::<1>(v));
            }
            Sse2::store_part(to, rest, n & 3);
        }
    }
}

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    // An instruction reads one float into all lanes as it multiplies.
    type Near = *const f32;
    const NEAR: usize = 1;

    #[inline(always)]
    unsafe fn near(from: *const f32, _: usize) -> *const f32 {
        from
    }

    #[inline(always)]
    unsafe fn fma_near(near: *const f32, _: usize, i: usize, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller vouches for the CPU and for float number `i` at `near`.
        unsafe { Self::fma(Self::splat(*near.add(i)), b, c) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller vouches for the CPU and for sixteen floats at `from`.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        // SAFETY: the caller vouches for the CPU and for sixteen floats at `to`.
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn tree_sum(v: __m512) -> f32 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { Avx2::tree_sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v))) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and for `n` floats at `from`; masked lanes aren't read.
        unsafe { _mm512_maskz_loadu_ps(first_lanes(n), from) }
    }

    #[inline(always)]
    unsafe fn store_part(to: *mut f32, v: __m512, n: usize) {
        // SAFETY: the caller vouches for the CPU and for `n` floats at `to`; masked lanes aren't written.
        unsafe { _mm512_mask_storeu_ps(to, first_lanes(n), v) }
    }
}

/// A mask of the first `n` of sixteen lanes.
#[inline(always)]
fn first_lanes(n: usize) -> __mmask16 {
    u16::MAX >> 16usize.saturating_sub(n).min(15)
}

mod sse2 {
    use super::*;
    tile_table! {
        Sse2, IsaCap::Sse2, features: [],
        widths: [
            2 => {1: [1 2 3 4 5 6] [1 2 3 4 5 6], 2: [1 2 3] [1 2 3]},
            1 => {1: [1 2 3 4 5 6 7 8] [1 2 3 4 5 6 7 8], 4: [1 2 3] [1 2 3]},
        ],
        dots: {1: [1 2], 1: [1 2]}, 4,
    }
}

mod avx2 {
    use super::*;
    tile_table! {
        Avx2, IsaCap::Avx2, features: ["avx2,fma"],
        widths: [
            2 => {1: [1 2 3 4 5 6] [1 2 3 4 5 6]},
            1 => {
                1: [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6 7 8 9 10 11 12],
                2: [1 2 3 4 5 6] [1 2 3 4 5 6],
                4: [1 2 3] [1 2 3]
            },
        ],
        dots: {1: [1 2 3 4 5 6], 2: [1 2 3]}, 2,
    }
}

mod avx512 {
    use super::*;
    tile_table! {
        Avx512, IsaCap::Avx512, features: ["avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"],
        widths: [
            2 => {1: [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6 7 8 9 10 11 12]},
            1 => {
                1: [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6 7 8 9 10 11 12],
                2: [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6 7 8 9 10 11 12],
                4: [1 2 3 4 5 6] [1 2 3 4 5 6]
            },
        ],
        dots: {1: [1 2 3 4 5 6], 4: [1 2 3 4 5 6]}, 1,
    }
}
