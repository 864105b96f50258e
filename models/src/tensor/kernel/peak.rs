//! The most that a core can do: multiply-adds on registers alone, what a bench's figures are a share of.
use super::isa::{Isa, IsaCap};
use super::portable::Portable;
use super::simd::{MAX_LANES, Simd};
use std::hint::black_box;

/// Independent sums: more than a pipeline is deep, few enough for sixteen registers.
const SUMS: usize = 12;

/// `steps` rounds of multiply-adds on all lanes of every sum; returns how many floating-point operations that were, two for each.
pub fn multiply_adds(isa: Isa, steps: u32) -> f64 {
    // SAFETY: an `Isa` of a level exists only where detection found its instructions.
    let sum = unsafe {
        match isa.level() {
            #[cfg(target_arch = "x86_64")]
            IsaCap::Avx512 => avx512(steps),
            #[cfg(target_arch = "x86_64")]
            IsaCap::Avx2 => avx2(steps),
            #[cfg(target_arch = "x86_64")]
            IsaCap::Sse2 => chain::<super::x86::Sse2>(steps),
            #[cfg(target_arch = "aarch64")]
            IsaCap::Neon => chain::<super::neon::Neon>(steps),
            _ => chain::<Portable>(steps),
        }
    };
    black_box(sum);
    2.0 * f64::from(steps) * (SUMS * isa.lanes()) as f64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
unsafe fn avx512(steps: u32) -> f32 {
    // SAFETY: the caller has found these instructions.
    unsafe { chain::<super::x86::Avx512>(steps) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(steps: u32) -> f32 {
    // SAFETY: the caller has found these instructions.
    unsafe { chain::<super::x86::Avx2>(steps) }
}

/// Sums that stay finite: each tends to `add / (1 - factor)`.
///
/// # Safety
/// The CPU has the instructions of `S`.
#[inline(always)]
unsafe fn chain<S: Simd>(steps: u32) -> f32 {
    let mut lanes = [0.0; MAX_LANES];
    // SAFETY: the caller vouches for the instructions; `lanes` has room for any vector.
    unsafe {
        let (factor, add) = (S::splat(black_box(0.5)), S::splat(black_box(1.0)));
        let mut sums = [S::splat(0.0); SUMS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = S::fma(*sum, factor, add);
            }
        }
        sums.iter().for_each(|sum| {
            let old = S::load(lanes.as_ptr());
            S::store(lanes.as_mut_ptr(), S::add(old, *sum));
        });
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_it_does_on_every_instruction_set() {
        for isa in Isa::available() {
            assert_eq!(multiply_adds(isa, 10), (2 * 10 * SUMS * isa.lanes()) as f64);
        }
    }
}
