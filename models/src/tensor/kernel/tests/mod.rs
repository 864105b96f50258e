//! Every kernel on every instruction set of this CPU against its definition, and the instruction sets against each other.
mod bits;
mod conv;
mod depthwise;
mod linear;
mod pointwise;
mod pool;
mod reference;
mod winograd;

use super::{Isa, IsaCap};
use proptest::prelude::*;

/// Floats with exact zeros among them, of a size at which rounding shows.
fn floats(n: usize) -> impl Strategy<Value = Vec<f32>> {
    let float = prop_oneof![9 => -1.0f32..1.0, 1 => Just(0.0f32)];
    proptest::collection::vec(float, n)
}

/// A cheap source of floats for shapes too large for a strategy.
fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Runs `f` on every instruction set, and compares the bits of those that round alike.
fn on_each_isa(mut f: impl FnMut(Isa) -> Vec<f32>) -> Vec<(Isa, Vec<f32>)> {
    let results: Vec<_> = Isa::available().map(|isa| (isa, f(isa))).collect();
    for pair in results.windows(2) {
        let [(a, left), (b, right)] = pair else { continue };
        if fused(*a) == fused(*b) {
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(left), bits(right), "{a:?} and {b:?} differ");
        }
    }
    results
}

fn fused(isa: Isa) -> bool {
    !matches!(isa.level(), IsaCap::Generic | IsaCap::Sse2)
}

#[test]
fn a_cap_is_a_ceiling() {
    for isa in Isa::available() {
        assert_eq!(Isa::detect_capped(Some(isa.level())), isa);
    }
    assert_eq!(Some(Isa::detect()), Isa::available().last());
    assert_eq!(Isa::detect_capped(Some(IsaCap::Generic)), Isa::generic());
}

#[test]
fn a_cap_of_another_architecture_leaves_generic() {
    let foreign = if cfg!(target_arch = "aarch64") { IsaCap::Avx2 } else { IsaCap::Neon };
    assert_eq!(Isa::detect_capped(Some(foreign)), Isa::generic());
}

#[test]
fn caps_are_spelled_as_they_are_read() {
    for name in ["generic", "sse2", "avx2", "avx512", "neon"] {
        assert_eq!(name.parse::<IsaCap>().map(IsaCap::name), Ok(name));
    }
    let error = "AVX2".parse::<IsaCap>().unwrap_err();
    assert!(error.to_string().contains("AVX2"), "{error}");
}
