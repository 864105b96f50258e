//! Activations, normalisation, and the optimiser's step: the same bits everywhere, and those of the definition.
use super::floats;
use crate::tensor::kernel::*;
use proptest::prelude::*;

/// Pixels and channels that fit no vector.
fn pixels() -> impl Strategy<Value = (usize, usize)> {
    (1..12usize, 1..40usize)
}

/// Four buffers of pixels and four of channels.
fn operands() -> impl Strategy<Value = (usize, [Vec<f32>; 2], [Vec<f32>; 4])> {
    pixels().prop_flat_map(|(n, c)| {
        let per_pixel = [floats(n * c), floats(n * c)];
        let per_channel = [floats(c), floats(c), floats(c), floats(c)];
        (Just(c), per_pixel, per_channel)
    })
}

/// Applies a scalar definition to every (pixel, channel).
fn map(c: usize, n: usize, f: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    (0..n).map(|at| f(at, at % c)).collect()
}

/// Adds a term of every (pixel, channel) to `start`, in order.
fn fold(start: &[f32], n: usize, f: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let (c, mut sum) = (start.len(), start.to_vec());
    (0..n).for_each(|at| sum[at % c] += f(at, at % c));
    sum
}

proptest! {
    #[test]
    fn relu_and_its_gradient((_, [x, g], _) in operands()) {
        for isa in Isa::available() {
            let (mut y, mut dy) = (x.clone(), g.clone());
            relu(isa, &mut y);
            relu_backward(isa, &y, &mut dy);
            prop_assert_eq!(&y, &map(1, x.len(), |at, _| x[at].max(0.0)));
            prop_assert_eq!(&dy, &map(1, x.len(), |at, _| if x[at] > 0.0 { g[at] } else { 0.0 }));
        }
    }

    #[test]
    fn sums_over_pixels((c, [y, g], [a, b, scale, shift]) in operands()) {
        let n = y.len();
        for isa in Isa::available() {
            let (mut sum, mut product) = (a.clone(), b.clone());
            channel_sums(isa, &y, &mut sum, &mut product);
            prop_assert_eq!(&sum, &fold(&a, n, |at, _| y[at]));
            prop_assert_eq!(&product, &fold(&b, n, |at, _| y[at] * y[at]));
            let mut only = a.clone();
            add_channels(isa, &y, &mut only);
            prop_assert_eq!(&only, &sum);
            let (mut sum, mut product) = (a.clone(), b.clone());
            grad_sums(isa, &g, &y, &mut sum, &mut product);
            prop_assert_eq!(&product, &fold(&b, n, |at, _| g[at] * y[at]));
            prop_assert_eq!(&sum, &fold(&a, n, |at, _| g[at]));
            let open = map(c, n, |at, j| if scale[j] * y[at] + shift[j] > 0.0 { g[at] } else { 0.0 });
            let (mut masked, mut sum, mut product) = (g.clone(), a.clone(), b.clone());
            relu_grad_sums(isa, &mut masked, &y, &scale, &shift, &mut sum, &mut product);
            prop_assert_eq!(&masked, &open);
            prop_assert_eq!(&sum, &fold(&a, n, |at, _| open[at]));
            prop_assert_eq!(&product, &fold(&b, n, |at, _| open[at] * y[at]));
        }
    }

    #[test]
    fn normalisation_and_its_gradient((c, [y, g], [scale, shift, slope, _]) in operands()) {
        let n = y.len();
        for isa in Isa::available() {
            let mut out = vec![f32::NAN; n];
            scale_shift(isa, &y, &scale, &shift, &mut out);
            prop_assert_eq!(&out, &map(c, n, |at, j| scale[j] * y[at] + shift[j]));
            scale_shift_relu(isa, &y, &scale, &shift, &mut out);
            prop_assert_eq!(&out, &map(c, n, |at, j| (scale[j] * y[at] + shift[j]).max(0.0)));
            let bn = BnBackward { gain: &scale, offset: &shift, slope: &slope };
            bn_backward(isa, &g, &y, bn, &mut out);
            prop_assert_eq!(&out, &map(c, n, |at, j| scale[j] * g[at] + shift[j] + slope[j] * y[at]));
        }
    }

    #[test]
    fn the_step_is_the_definition(n in 1..1200usize, seed in 0..100u64) {
        let (w0, v0, g) = (super::noise(seed, n), super::noise(seed + 1, n), super::noise(seed + 2, n));
        let step = SgdStep { lr: 0.1, momentum: 0.9, weight_decay: 0.01 };
        let v1 = map(1, n, |at, _| 0.9 * v0[at] + (g[at] + 0.01 * w0[at]));
        let w1 = map(1, n, |at, _| w0[at] - 0.1 * v1[at]);
        for isa in Isa::available() {
            let (mut w, mut v) = (w0.clone(), v0.clone());
            sgd_momentum(isa, step, &mut w, &mut v, &g);
            prop_assert_eq!((&w, &v), (&w1, &v1));
        }
    }

    #[test]
    fn axpy_is_the_definition((_, [x, y], _) in operands(), a in -2.0f32..2.0) {
        for isa in Isa::available() {
            let mut sum = y.clone();
            axpy(isa, a, &x, &mut sum);
            prop_assert_eq!(&sum, &map(1, x.len(), |at, _| y[at] + a * x[at]));
        }
    }
}

#[test]
fn a_nan_survives_the_activation() {
    for isa in Isa::available() {
        let mut x = [f32::NAN; 37];
        relu(isa, &mut x);
        assert!(x.iter().all(|x| x.is_nan()), "{isa:?}");
    }
}
