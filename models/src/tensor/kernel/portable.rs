//! The twin of every vector kernel in plain Rust: four lanes as an array.
use super::dot::{self, Dot};
use super::geometry::ConvGeometry;
use super::isa::IsaCap;
use super::simd::Simd;
use super::table::{Dots, Table, Tiles, Transforms, Width, Windows, tile_table};
use super::tile::{self, Tile};
use super::window;
use super::winograd::{WinogradRows, transform};

/// Four lanes without intrinsics; the product is rounded before it is added.
pub(super) struct Portable;

impl Simd for Portable {
    type V = [f32; 4];
    const LANES: usize = 4;
    // An instruction reads one float into all lanes as it multiplies.
    type Near = *const f32;
    const NEAR: usize = 1;

    #[inline(always)]
    unsafe fn near(from: *const f32, _: usize) -> *const f32 {
        from
    }

    #[inline(always)]
    unsafe fn fma_near(near: *const f32, _: usize, i: usize, b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        // SAFETY: the caller vouches for the CPU and for float number `i` at `near`.
        unsafe { Self::fma(Self::splat(*near.add(i)), b, c) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        // SAFETY: the caller vouches for four floats at `from`.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: [f32; 4]) {
        // SAFETY: the caller vouches for four floats at `to`.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 4] {
        [x; 4]
    }

    #[inline(always)]
    unsafe fn fma(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    unsafe fn tree_sum(v: [f32; 4]) -> f32 {
        (v[0] + v[2]) + (v[1] + v[3])
    }
}

tile_table! {
    Portable, IsaCap::Generic, features: [],
    widths: [
        2 => {1: [1 2 3 4] [1 2 3 4], 2: [1 2] [1 2]},
        1 => {1: [1 2 3 4] [1 2 3 4], 4: [1 2] [1 2]},
    ],
    dots: {1: [1 2], 2: [1 2]}, 4,
}
