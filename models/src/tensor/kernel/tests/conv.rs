//! Convolutions of odd sizes.
use super::reference::{Sum, each_product};
use super::{noise, on_each_isa};
use crate::tensor::kernel::*;
use proptest::prelude::*;

/// Channels around the sizes of tiles and vectors.
fn channels() -> impl Strategy<Value = usize> {
    prop_oneof![1..20usize, Just(32usize), 33..40usize]
}

fn geometry() -> impl Strategy<Value = ConvGeometry> {
    let sizes = (1..6usize, 1..20usize, channels(), channels());
    let window = (1..4usize, 1..6usize, 1..3usize, 1..3usize);
    let gaps = (0..3usize, prop_oneof![3 => Just(0usize), 1 => 1..5usize], 0..3usize);
    (sizes, window, gaps).prop_map(
        |((out_h, out_w, ci, co), (kh, kw, stride_h, stride_w), (slack, x_gap, y_gap))| {
            let x_pixel = ci + x_gap;
            let pitch = ((out_w - 1) * stride_w + kw) * x_pixel + slack;
            ConvGeometry {
                out_h,
                out_w,
                ci,
                co,
                kh,
                kw,
                stride_h,
                stride_w,
                pitch,
                x_pixel,
                y_pixel: co + y_gap,
            }
        },
    )
}

/// Everything that a test of `geo` needs, with output rows `y_pitch` apart.
struct Case {
    geo: ConvGeometry,
    y_pitch: usize,
    x: Vec<f32>,
    w: Vec<f32>,
    dy: Vec<f32>,
}

impl Case {
    fn new(geo: ConvGeometry, seed: u64) -> Self {
        let y_pitch = geo.out_w * geo.y_pixel + seed as usize % 3;
        let x = noise(seed, geo.plane_len(geo.out_h));
        let w = noise(seed + 1, geo.taps() * geo.co);
        let dy = noise(seed + 2, geo.output_len(geo.out_h, y_pitch));
        Self { geo, y_pitch, x, w, dy }
    }

    fn pack(&self, isa: Isa) -> Vec<f32> {
        let mut packed = vec![f32::NAN; packed_len(isa, &self.geo)];
        pack_conv(isa, &self.geo, &self.w, &mut packed);
        packed
    }

    fn pack_flipped(&self, isa: Isa) -> Vec<f32> {
        let mut packed = vec![f32::NAN; packed_flipped_len(isa, &self.geo)];
        pack_conv_flipped(isa, &self.geo, &self.w, &mut packed);
        packed
    }

    fn weight_grad(&self, isa: Isa) -> Vec<f32> {
        let (mut dw, mut grad) = (vec![0.0; self.w.len()], vec![0.0; self.w.len()]);
        conv_weight_grad(isa, &self.geo, &self.x, &self.dy, self.y_pitch, &mut dw);
        unpack_weight_grad(&self.geo, &dw, &mut grad);
        grad
    }
}

const UNTOUCHED: f32 = 7.5;

fn check_forward(case: &Case, bias: Option<&[f32]>) {
    let Case { geo, y_pitch, x, w, dy } = case;
    let results = on_each_isa(|isa| {
        let mut out = vec![UNTOUCHED; dy.len()];
        conv_forward(isa, geo, 0..geo.out_h, x, &case.pack(isa), bias, &mut out, *y_pitch);
        out
    });
    let mut want = vec![None; dy.len()];
    each_product(geo, |[row, column], at, weight| {
        let start = Sum { value: bias.map_or(0.0, |b| f64::from(b[column % geo.y_pixel])), size: 1.0 };
        want[row * y_pitch + column].get_or_insert(start).add(f64::from(x[at]) * f64::from(w[weight]));
    });
    for (isa, out) in results {
        for (at, (got, want)) in out.iter().zip(&want).enumerate() {
            let good = want.map_or(*got == UNTOUCHED, |want| want.admits(*got, geo.taps()));
            assert!(good, "{isa:?} {geo:?}: out[{at}] = {got}, not {want:?}");
        }
    }
}

fn check_bands(case: &Case) {
    let Case { geo, y_pitch, x, dy, .. } = case;
    on_each_isa(|isa| {
        let packed = case.pack(isa);
        let (mut whole, mut parts) = (vec![0.0; dy.len()], vec![0.0; dy.len()]);
        conv_forward(isa, geo, 0..geo.out_h, x, &packed, None, &mut whole, *y_pitch);
        for y in 0..geo.out_h {
            conv_forward(isa, geo, y..y + 1, x, &packed, None, &mut parts[y * y_pitch..], *y_pitch);
        }
        assert_eq!(whole, parts, "bands of {geo:?}");
        whole
    });
}

fn check_weight_grad(case: &Case) {
    let Case { geo, y_pitch, x, w, dy } = case;
    let mut want = vec![Sum::default(); w.len()];
    each_product(geo, |[row, column], at, weight| {
        want[weight].add(f64::from(x[at]) * f64::from(dy[row * y_pitch + column]));
    });
    for (isa, grad) in on_each_isa(|isa| case.weight_grad(isa)) {
        for (at, (got, want)) in grad.iter().zip(&want).enumerate() {
            assert!(
                want.admits(*got, geo.out_h * geo.out_w),
                "{isa:?} {geo:?}: dw[{at}] = {got}, not {want:?}"
            );
        }
    }
}

fn check_scatter(case: &Case) {
    let Case { geo, y_pitch, x, w, dy } = case;
    let mut want = vec![Sum::default(); x.len()];
    each_product(geo, |[row, column], at, weight| {
        want[at].add(f64::from(w[weight]) * f64::from(dy[row * y_pitch + column]));
    });
    let results = on_each_isa(|isa| {
        let mut dx = vec![0.0; x.len()];
        conv_input_grad_scatter(isa, geo, dy, *y_pitch, &case.pack_flipped(isa), &mut dx);
        dx
    });
    for (isa, dx) in results {
        for (at, (got, want)) in dx.iter().zip(&want).enumerate() {
            assert!(
                want.admits(*got, geo.kh * geo.kw * geo.co),
                "{isa:?} {geo:?}: dx[{at}] = {got}, not {want:?}"
            );
        }
    }
}

/// With strides of 1, gathering from a bordered gradient gives what scattering gives.
fn check_gather(case: &Case) {
    let Case { geo, y_pitch, x, dy, .. } = case;
    let (border_h, border_w) = (geo.kh - 1, geo.kw - 1);
    let pitch = (geo.out_w + 2 * border_w) * geo.y_pixel;
    let mut bordered = vec![0.0; (geo.out_h + 2 * border_h) * pitch];
    for y in 0..geo.out_h {
        let row = &dy[y * y_pitch..][..(geo.out_w - 1) * geo.y_pixel + geo.co];
        bordered[(y + border_h) * pitch + border_w * geo.y_pixel..][..row.len()].copy_from_slice(row);
    }
    let (in_h, in_w) = (geo.out_h + border_h, geo.out_w + border_w);
    let grad = geo.input_grad(in_h, in_w, pitch);
    for isa in Isa::available() {
        let packed = case.pack_flipped(isa);
        let (mut scattered, mut gathered) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        conv_input_grad_scatter(isa, geo, dy, *y_pitch, &packed, &mut scattered);
        conv_input_grad(isa, &grad, 0..in_h, &bordered, &packed, &mut gathered, geo.pitch);
        let bound = (geo.kh * geo.kw * geo.co) as f32 * 4.0 * f32::EPSILON * geo.co as f32;
        for (a, b) in scattered.iter().zip(&gathered) {
            assert!((a - b).abs() <= bound, "{isa:?} {geo:?}: {a} and {b}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn forward_is_the_definition(geo in geometry(), seed in 0..1000u64, with_bias: bool) {
        let bias = noise(seed + 3, geo.co);
        check_forward(&Case::new(geo, seed), with_bias.then_some(&bias));
    }

    #[test]
    fn bands_of_rows_are_the_whole(geo in geometry(), seed in 0..1000u64) {
        check_bands(&Case::new(geo, seed));
    }

    #[test]
    fn weight_gradient_is_the_definition(geo in geometry(), seed in 0..1000u64) {
        check_weight_grad(&Case::new(geo, seed));
    }

    #[test]
    fn scattered_input_gradient_is_the_definition(geo in geometry(), seed in 0..1000u64) {
        check_scatter(&Case::new(geo, seed));
    }

    #[test]
    fn gathered_input_gradient_is_the_scattered_one(geo in geometry(), seed in 0..1000u64) {
        check_gather(&Case::new(ConvGeometry { stride_h: 1, stride_w: 1, ..geo }, seed));
    }
}

#[test]
fn a_wide_row_with_few_channels_is_padded_in_stretches() {
    let geo = ConvGeometry {
        out_h: 2,
        out_w: 150,
        ci: 3,
        co: 10,
        kh: 1,
        kw: 9,
        stride_h: 1,
        stride_w: 1,
        pitch: 158 * 3,
        x_pixel: 3,
        y_pixel: 10,
    };
    check_weight_grad(&Case::new(geo, 5));
}

#[test]
#[should_panic(expected = "input plane of")]
fn a_short_plane_is_refused() {
    let geo = ConvGeometry {
        out_h: 2,
        out_w: 4,
        ci: 1,
        co: 1,
        kh: 3,
        kw: 3,
        stride_h: 1,
        stride_w: 1,
        pitch: 6,
        x_pixel: 1,
        y_pixel: 1,
    };
    let case = Case::new(geo, 1);
    let isa = Isa::detect();
    conv_forward(isa, &geo, 0..2, &case.x[1..], &case.pack(isa), None, &mut [0.0; 8], 4);
}
