//! Winograd's transforms against windows as they are written, channel by channel.
use super::{noise, on_each_isa};
use crate::tensor::kernel::*;
use proptest::prelude::*;

/// Roundings of one output or weight, each of half an ulp of what the largest coefficients (4 of the inputs, 8 of the products)
/// make of the operands.
const ROUNDINGS: f32 = 64.0;

fn rows() -> impl Strategy<Value = WinogradRows> {
    (1..4usize, 1..20usize, prop_oneof![1..20usize, Just(32usize), 33..40usize], 0..5usize).prop_map(
        |(rows, columns, channels, slack)| {
            let pitch = (columns + 2) * channels + slack;
            WinogradRows { rows, columns, channels, pitch }
        },
    )
}

/// Multiplies each transformed plane with what stands for it, channel by channel.
fn each_product(at: WinogradRows, mut f: impl FnMut(usize, usize, usize)) {
    let mut place = 0;
    for (p, units) in at.units().into_iter().enumerate() {
        for c in (0..units).flat_map(|_| 0..at.channels) {
            f(p, c, place);
            place += 1;
        }
    }
}

fn window(w: &[f32], c: usize) -> [f32; 3] {
    [w[3 * c], w[3 * c + 1], w[3 * c + 2]]
}

fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, x| max.max(x.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn outputs_are_those_of_the_window(at in rows(), seed in 0..1000u64, with_bias: bool) {
        let (x, w) = (noise(seed, at.rows * at.pitch), noise(seed + 1, 3 * at.channels));
        let bias = noise(seed + 2, at.channels);
        let results = on_each_isa(|isa| {
            let (mut v, mut y) = (vec![f32::NAN; at.transformed_len()], vec![7.5; x.len()]);
            winograd_input(isa, at, &x, &mut v);
            each_product(at, |p, c, place| v[place] *= winograd_weights(window(&w, c))[p]);
            winograd_output(isa, at, &v, with_bias.then_some(&bias), &mut y);
            y
        });
        let bound = ROUNDINGS * f32::EPSILON * (1.0 + 3.0 * largest(&w) * largest(&x));
        for (isa, y) in results {
            for (place, y) in y.into_iter().enumerate() {
                let (row, column, c) = (place / at.pitch, place % at.pitch / at.channels, place % at.pitch % at.channels);
                if column >= at.columns {
                    prop_assert_eq!(y, 7.5, "{:?} {:?}: beyond the columns", isa, at);
                    continue;
                }
                let taps = (0..3).map(|k| window(&w, c)[k] * x[row * at.pitch + (column + k) * at.channels + c]);
                let want = taps.sum::<f32>() + if with_bias { bias[c] } else { 0.0 };
                prop_assert!((y - want).abs() <= bound, "{:?} {:?}: {} at {}, not {}", isa, at, y, place, want);
            }
        }
    }

    #[test]
    fn weight_gradients_are_those_of_the_window(at in rows(), seed in 0..1000u64) {
        let (x, dy) = (noise(seed, at.rows * at.pitch), noise(seed + 1, at.rows * at.pitch));
        let results = on_each_isa(|isa| {
            let mut planes = [vec![f32::NAN; at.transformed_len()], vec![f32::NAN; at.transformed_len()]];
            let [v, dm] = &mut planes;
            winograd_input(isa, at, &x, v);
            winograd_grad(isa, at, &dy, dm);
            let mut u = vec![[0.0f32; WINOGRAD_PLANES]; at.channels];
            each_product(at, |p, c, place| u[c][p] += v[place] * dm[place]);
            u.into_iter().flat_map(winograd_weight_grad).collect()
        });
        let pixels = at.rows * at.columns;
        let bound = ROUNDINGS * f32::EPSILON * pixels as f32 * largest(&x) * largest(&dy);
        for (isa, dw) in results {
            for (i, dw) in dw.into_iter().enumerate() {
                let (c, k) = (i / 3, i % 3);
                let terms = (0..pixels).map(|pixel| {
                    let (row, column) = (pixel / at.columns, pixel % at.columns);
                    let place = row * at.pitch + column * at.channels + c;
                    dy[place] * x[place + k * at.channels]
                });
                let want: f32 = terms.sum();
                prop_assert!((dw - want).abs() <= bound, "{:?} {:?}: {} for tap {} of {}, not {}", isa, at, dw, k, c, want);
            }
        }
    }
}

#[test]
fn a_column_more_than_whole_quads_takes_a_pair_and_three_take_a_quad() {
    let products = |columns| WinogradRows { rows: 1, columns, channels: 1, pitch: 0 }.products();
    assert_eq!([4, 5, 6, 7, 8].map(products), [6, 10, 10, 12, 12]);
}
