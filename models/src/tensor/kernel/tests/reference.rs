//! The definitions, as loops in `f64`.
use crate::tensor::kernel::ConvGeometry;

/// A sum and the sum of the absolute terms, which bounds its rounding error.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sum {
    pub value: f64,
    pub size: f64,
}

impl Sum {
    pub(super) fn add(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
    }

    /// Whether `got` is this sum of `terms` in `f32`, in any order: each addition and product errs by half an ulp at most.
    pub(super) fn admits(&self, got: f32, terms: usize) -> bool {
        let bound = (terms + 2) as f64 * f64::from(f32::EPSILON) * self.size;
        (f64::from(got) - self.value).abs() <= bound + f64::from(f32::MIN_POSITIVE)
    }
}

/// Visits every product of a convolution as (output, input, weight), as offsets: dense output, the plane, `[co][ci][kh][kw]`.
pub(super) fn each_product(geo: &ConvGeometry, mut visit: impl FnMut([usize; 2], usize, usize)) {
    for y in 0..geo.out_h {
        for x in 0..geo.out_w {
            for o in 0..geo.co {
                for tap in 0..geo.taps() {
                    let (c, ky, kx) = (tap / (geo.kh * geo.kw), tap / geo.kw % geo.kh, tap % geo.kw);
                    let at = (y * geo.stride_h + ky) * geo.pitch + (x * geo.stride_w + kx) * geo.x_pixel + c;
                    visit([y, x * geo.y_pixel + o], at, o * geo.taps() + tap);
                }
            }
        }
    }
}
