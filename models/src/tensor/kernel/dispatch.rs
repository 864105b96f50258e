//! Compiles a loop in plain Rust once per instruction set, for the compiler to vectorise.

/// `vectorised!(isa, body(a: &[f32], b: &mut [f32]))` calls `body(a, b)`, an `#[inline(always)]` function, as compiled for `isa`.
macro_rules! vectorised {
    ($isa:expr, $body:ident($($arg:ident: $ty:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
        fn avx512($($arg: $ty),*) {
            $body($($arg),*);
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($arg: $ty),*) {
            $body($($arg),*);
        }
        #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls functions that need the detected CPU"))]
        fn choose(isa: $crate::tensor::kernel::Isa, $($arg: $ty),*) {
            match isa.level() {
                // SAFETY: an `Isa` of this level exists only where detection found these instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::tensor::kernel::IsaCap::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::tensor::kernel::IsaCap::Avx2 => unsafe { avx2($($arg),*) },
                _ => $body($($arg),*),
            }
        }
        choose($isa, $($arg),*)
    }};
}
pub(super) use vectorised;
