//! Linear layers of odd sizes.
use super::reference::Sum;
use super::{noise, on_each_isa};
use crate::tensor::kernel::*;
use proptest::prelude::*;

/// Samples, inputs and outputs.
fn sizes() -> impl Strategy<Value = (usize, usize, usize)> {
    (1..20usize, prop_oneof![1..70usize, Just(400usize)], prop_oneof![1..20usize, 64..80usize])
}

fn product(a: f32, b: f32) -> f64 {
    f64::from(a) * f64::from(b)
}

fn check(isa: Isa, got: &[f32], want: &[Sum], terms: usize) {
    assert_eq!(got.len(), want.len());
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(want.admits(*got, terms), "{isa:?}: [{at}] = {got}, not {want:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn forward_is_the_definition((n, k, o) in sizes(), seed in 0..1000u64, with_bias: bool) {
        let (x, w, bias) = (noise(seed, n * k), noise(seed + 1, o * k), noise(seed + 2, o));
        let bias = with_bias.then_some(&bias[..]);
        let mut want = vec![Sum::default(); n * o];
        for (at, sum) in want.iter_mut().enumerate() {
            sum.add(bias.map_or(0.0, |bias| f64::from(bias[at % o])));
            (0..k).for_each(|i| sum.add(product(x[at / o * k + i], w[at % o * k + i])));
        }
        let results = on_each_isa(|isa| {
            let mut out = vec![f32::NAN; n * o];
            linear_forward(isa, n, k, o, &x, &w, bias, &mut out);
            out
        });
        results.iter().for_each(|(isa, out)| check(*isa, out, &want, k + 1));
    }

    #[test]
    fn input_gradient_is_the_definition((n, k, o) in sizes(), seed in 0..1000u64) {
        let (dy, w) = (noise(seed, n * o), noise(seed + 1, o * k));
        let mut want = vec![Sum::default(); n * k];
        for (at, sum) in want.iter_mut().enumerate() {
            (0..o).for_each(|j| sum.add(product(dy[at / k * o + j], w[j * k + at % k])));
        }
        let results = on_each_isa(|isa| {
            let mut dx = vec![f32::NAN; n * k];
            linear_input_grad(isa, n, k, o, &dy, &w, &mut dx);
            dx
        });
        results.iter().for_each(|(isa, dx)| check(*isa, dx, &want, o));
    }

    #[test]
    fn weight_gradient_is_the_definition((n, k, o) in sizes(), seed in 0..1000u64) {
        let (x, dy, before) = (noise(seed, n * k), noise(seed + 1, n * o), noise(seed + 2, o * k));
        let mut want = vec![Sum::default(); o * k];
        for (at, sum) in want.iter_mut().enumerate() {
            sum.add(f64::from(before[at]));
            (0..n).for_each(|i| sum.add(product(dy[i * o + at / k], x[i * k + at % k])));
        }
        let results = on_each_isa(|isa| {
            let mut dw = before.clone();
            linear_weight_grad(isa, n, k, o, &x, &dy, &mut dw);
            dw
        });
        results.iter().for_each(|(isa, dw)| check(*isa, dw, &want, n + 1));
    }

    #[test]
    fn micro_batches_change_no_bit((n, k, o) in sizes(), cut in 0..20usize, seed in 0..1000u64) {
        let (x, dy, w) = (noise(seed, n * k), noise(seed + 1, n * o), noise(seed + 2, o * k));
        let cut = cut.min(n);
        for isa in Isa::available() {
            let run = |parts: &[(usize, usize)]| {
                let (mut out, mut dx, mut dw) = (vec![0.0; n * o], vec![0.0; n * k], vec![0.0; o * k]);
                for &(a, b) in parts {
                    let (x, dy) = (&x[a * k..b * k], &dy[a * o..b * o]);
                    linear_forward(isa, b - a, k, o, x, &w, None, &mut out[a * o..b * o]);
                    linear_input_grad(isa, b - a, k, o, dy, &w, &mut dx[a * k..b * k]);
                    linear_weight_grad(isa, b - a, k, o, x, dy, &mut dw);
                }
                (out, dx, dw)
            };
            prop_assert_eq!(run(&[(0, n)]), run(&[(0, cut), (cut, n)]));
        }
    }
}

#[test]
fn no_outputs_give_no_input_gradient() {
    let mut dx = [1.0f32; 6];
    linear_input_grad(Isa::detect(), 2, 3, 0, &[], &[], &mut dx);
    assert_eq!(dx, [0.0; 6]);
}
