//! The few vector operations that a register tile is made of.

/// The most lanes that any instruction set has.
pub(super) const MAX_LANES: usize = 16;

/// A vector of `f32` lanes of one instruction set.
///
/// # Safety
/// Every method may run only on a CPU that has the instruction set of the implementing type; pointers need no alignment.
pub(super) trait Simd {
    /// The vector register.
    type V: Copy;
    /// Its number of `f32`.
    const LANES: usize;
    /// Neighbouring floats that are multiplicands one by one.
    type Near: Copy;
    /// How many of them are best read together along a reduction.
    const NEAR: usize;

    /// Reads `LANES` floats.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Writes `LANES` floats.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// One float in every lane.
    unsafe fn splat(x: f32) -> Self::V;
    /// `a * b + c`, rounded once where the instruction set can.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;

    /// Reads `n` floats, 1 to 8, to be multiplied one by one.
    unsafe fn near(from: *const f32, n: usize) -> Self::Near;
    /// `a * b + c`, rounded as by [`Simd::fma`], where `a` is number `i` of `n` neighbours. Known numbers make it one instruction.
    unsafe fn fma_near(near: Self::Near, n: usize, i: usize, b: Self::V, c: Self::V) -> Self::V;

    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// The sum of the lanes as a tree: lane `i` and lane `i + half`, then the halves of what remains.
    unsafe fn tree_sum(v: Self::V) -> f32;

    /// Reads the first `n < LANES` floats, zeros in the other lanes.
    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self::V {
        let mut lanes = [0.0f32; MAX_LANES];
        // SAFETY: the caller vouches for `n <= LANES` floats at `from`; `lanes` holds `LANES`.
        unsafe {
            for (i, lane) in lanes.iter_mut().enumerate().take(n) {
                *lane = *from.add(i);
            }
            Self::load(lanes.as_ptr())
        }
    }

    /// Writes the first `n < LANES` lanes.
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, v: Self::V, n: usize) {
        let mut lanes = [0.0f32; MAX_LANES];
        // SAFETY: `lanes` holds `LANES`; the caller vouches for `n <= LANES` floats at `to`.
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            for (i, lane) in lanes.iter().enumerate().take(n) {
                *to.add(i) = *lane;
            }
        }
    }
}

/// The first `lanes` lanes; known to be all of them where `FULL`.
///
/// # Safety
/// The CPU has `S`; there are so many floats.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, const FULL: bool>(from: *const f32, lanes: usize) -> S::V {
    // SAFETY: see above.
    unsafe { if FULL { S::load(from) } else { S::load_part(from, lanes) } }
}

/// # Safety
/// As [`load`].
#[inline(always)]
pub(super) unsafe fn store<S: Simd, const FULL: bool>(to: *mut f32, v: S::V, lanes: usize) {
    // SAFETY: see above.
    unsafe { if FULL { S::store(to, v) } else { S::store_part(to, v, lanes) } }
}
