//! Depthwise convolutions of odd sizes against sums in `f64`.
use super::reference::Sum;
use super::{noise, on_each_isa};
use crate::tensor::kernel::*;
use proptest::prelude::*;

fn geometry() -> impl Strategy<Value = ConvGeometry> {
    let channels = prop_oneof![1..20usize, Just(32usize), 33..40usize];
    let window = (1..4usize, 1..6usize, 1..3usize, 1..3usize);
    (1..5usize, 1..12usize, channels, window, 0..3usize, 0..3usize, 0..3usize).prop_map(
        |(out_h, out_w, c, (kh, kw, stride_h, stride_w), slack, x_gap, y_gap)| {
            let (x_pixel, y_pixel) = (c + x_gap, c + y_gap);
            let pitch = ((out_w - 1) * stride_w + kw) * x_pixel + slack;
            ConvGeometry { out_h, out_w, ci: c, co: c, kh, kw, stride_h, stride_w, pitch, x_pixel, y_pixel }
        },
    )
}

/// Visits every product as (place in the output, in the plane, in `[kh][kw][channel]`).
fn each_product(geo: &ConvGeometry, y_pitch: usize, mut visit: impl FnMut(usize, usize, usize)) {
    for (y, x) in (0..geo.out_h).flat_map(|y| (0..geo.out_w).map(move |x| (y, x))) {
        for at in 0..geo.taps() {
            let (tap, c) = (at / geo.co, at % geo.co);
            let (ky, kx) = (tap / geo.kw, tap % geo.kw);
            let from = (y * geo.stride_h + ky) * geo.pitch + (x * geo.stride_w + kx) * geo.x_pixel + c;
            visit(y * y_pitch + x * geo.y_pixel + c, from, at);
        }
    }
}

/// Compares what kernels give with sums, or with `untouched` where there is none.
fn compare(
    geo: &ConvGeometry,
    results: Vec<(Isa, Vec<f32>)>,
    sums: &[Option<Sum>],
    untouched: f32,
    terms: usize,
) {
    for (isa, got) in results {
        for (at, (got, want)) in got.iter().zip(sums).enumerate() {
            let good = want.map_or(*got == untouched, |want| want.admits(*got, terms));
            assert!(good, "{isa:?} {geo:?}: {got} at {at}, not {want:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_three_products_are_the_definition(geo in geometry(), seed in 0..1000u64, with_bias: bool) {
        let y_pitch = geo.out_w * geo.y_pixel + seed as usize % 3;
        let (x, w) = (noise(seed, geo.plane_len(geo.out_h)), noise(seed + 1, geo.taps()));
        let (dy, bias) = (noise(seed + 2, geo.output_len(geo.out_h, y_pitch)), noise(seed + 3, geo.co));
        let (mut ahead, mut back, mut weights) = (vec![None; dy.len()], vec![None; x.len()], vec![None; w.len()]);
        each_product(&geo, y_pitch, |to, from, at| {
            let start = Sum { value: if with_bias { f64::from(bias[at % geo.co]) } else { 0.0 }, size: 1.0 };
            ahead[to].get_or_insert(start).add(f64::from(x[from]) * f64::from(w[at]));
            back[from].get_or_insert(Sum::default()).add(f64::from(dy[to]) * f64::from(w[at]));
            weights[at].get_or_insert(Sum::default()).add(f64::from(dy[to]) * f64::from(x[from]));
        });
        let forward = on_each_isa(|isa| {
            let mut out = vec![7.5; dy.len()];
            depthwise_forward(isa, &geo, 0..geo.out_h, &x, &w, with_bias.then_some(&bias), &mut out, y_pitch);
            out
        });
        compare(&geo, forward, &ahead, 7.5, geo.taps());
        let scattered = on_each_isa(|isa| {
            let mut dx = vec![0.0; x.len()];
            depthwise_scatter(isa, &geo, &dy, y_pitch, &w, &mut dx);
            dx
        });
        compare(&geo, scattered, &back, 0.0, geo.taps());
        let gradient = on_each_isa(|isa| {
            let mut dw = vec![0.0; w.len()];
            depthwise_weight_grad(isa, &geo, &x, &dy, y_pitch, &mut dw);
            dw
        });
        compare(&geo, gradient, &weights, 0.0, geo.out_h * geo.out_w);
    }

    #[test]
    fn bands_of_rows_are_the_whole(geo in geometry(), seed in 0..1000u64) {
        let y_pitch = geo.out_w * geo.y_pixel;
        let (x, w) = (noise(seed, geo.plane_len(geo.out_h)), noise(seed + 1, geo.taps()));
        for isa in Isa::available() {
            let mut whole = vec![0.0; geo.output_len(geo.out_h, y_pitch)];
            let mut parts = whole.clone();
            depthwise_forward(isa, &geo, 0..geo.out_h, &x, &w, None, &mut whole, y_pitch);
            for y in 0..geo.out_h {
                depthwise_forward(isa, &geo, y..y + 1, &x, &w, None, &mut parts[y * y_pitch..], y_pitch);
            }
            prop_assert_eq!(&whole, &parts, "{:?} bands of {:?}", isa, geo);
        }
    }
}
