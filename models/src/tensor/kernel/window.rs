//! What depthwise windows stand on: rows of pixels, a vector of channels at a time.
use super::geometry::ConvGeometry;
use super::simd::{Simd, load, store};

/// A row of outputs, as compiled for one instruction set: geometry, the input from the row's first window on, weights, bias, outputs.
pub(super) type ForwardFn = unsafe fn(&ConvGeometry, &[f32], &[f32], Option<&[f32]>, &mut [f32]);
/// What a row of output gradients adds to a row of the window: geometry, inputs, output gradients, weight gradients.
pub(super) type WeightGradFn = unsafe fn(&ConvGeometry, &[f32], &[f32], &mut [f32]);
/// What a row of output gradients adds to a row of inputs: geometry, output gradients, a row of the window, input gradients.
pub(super) type ScatterFn = unsafe fn(&ConvGeometry, &[f32], &[f32], &mut [f32]);

/// # Safety
/// The CPU has `S`; the slices hold a row of outputs and what it reads.
#[inline(always)]
pub(super) unsafe fn forward<S: Simd>(
    geo: &ConvGeometry,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let mut column = 0;
    while column < geo.out_w {
        let left = geo.out_w - column;
        // SAFETY: the columns are inside the row.
        unsafe {
            let x = x.as_ptr().add(column * geo.stride_w * geo.x_pixel);
            let out = out.as_mut_ptr().add(column * geo.y_pixel);
            column += match left {
                8.. => forward_strip::<S, 8>(geo, x, w, bias, out),
                4.. => forward_strip::<S, 4>(geo, x, w, bias, out),
                2.. => forward_strip::<S, 2>(geo, x, w, bias, out),
                _ => forward_strip::<S, 1>(geo, x, w, bias, out),
            };
        }
    }
}

/// `T` neighbouring pixels, which share the weights they load; returns `T`.
///
/// # Safety
/// As [`forward`].
#[inline(always)]
unsafe fn forward_strip<S: Simd, const T: usize>(
    geo: &ConvGeometry,
    x: *const f32,
    w: &[f32],
    bias: Option<&[f32]>,
    out: *mut f32,
) -> usize {
    let mut c = 0;
    // SAFETY: channels are inside a pixel.
    unsafe {
        while c < geo.co {
            let (bias, w) = (bias.map(|bias| bias.as_ptr().add(c)), w.as_ptr().add(c));
            let lanes = geo.co - c;
            if lanes >= S::LANES {
                pixels::<S, T, true>(geo, S::LANES, x.add(c), w, bias, out.add(c));
            } else {
                pixels::<S, T, false>(geo, lanes, x.add(c), w, bias, out.add(c));
            }
            c += S::LANES;
        }
    }
    T
}

/// One vector of channels; each sum runs over the window's rows, then its columns.
///
/// # Safety
/// As [`forward`].
#[inline(always)]
unsafe fn pixels<S: Simd, const T: usize, const FULL: bool>(
    geo: &ConvGeometry,
    lanes: usize,
    x: *const f32,
    w: *const f32,
    bias: Option<*const f32>,
    out: *mut f32,
) {
    let step = geo.stride_w * geo.x_pixel;
    // SAFETY: the window is inside the plane that the caller vouches for; pointers only wrap past the last row.
    unsafe {
        let start = match bias {
            Some(bias) => load::<S, FULL>(bias, lanes),
            None => S::splat(0.0),
        };
        let (mut sums, mut w, mut row) = ([start; T], w, x);
        for _ in 0..geo.kh {
            let mut x = row;
            for _ in 0..geo.kw {
                let weight = load::<S, FULL>(w, lanes);
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = S::fma(weight, load::<S, FULL>(x.add(i * step), lanes), *sum);
                }
                x = x.wrapping_add(geo.x_pixel);
                w = w.wrapping_add(geo.co);
            }
            row = row.wrapping_add(geo.pitch);
        }
        for (i, sum) in sums.iter().enumerate() {
            store::<S, FULL>(out.add(i * geo.y_pixel), *sum, lanes);
        }
    }
}

/// # Safety
/// The CPU has `S`; the slices hold a row of outputs, a row of the window, and what they read.
#[inline(always)]
pub(super) unsafe fn weight_grad<S: Simd>(geo: &ConvGeometry, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let mut kx = 0;
    while kx < geo.kw {
        // SAFETY: the columns are inside the window.
        unsafe {
            let (x, dw) = (x.as_ptr().add(kx * geo.x_pixel), dw.as_mut_ptr().add(kx * geo.co));
            kx += match geo.kw - kx {
                3.. => weights_strip::<S, 3>(geo, x, dy.as_ptr(), dw),
                _ => weights_strip::<S, 1>(geo, x, dy.as_ptr(), dw),
            };
        }
    }
}

/// `N` neighbouring columns of the window; returns `N`.
///
/// # Safety
/// As [`weight_grad`].
#[inline(always)]
unsafe fn weights_strip<S: Simd, const N: usize>(
    geo: &ConvGeometry,
    x: *const f32,
    dy: *const f32,
    dw: *mut f32,
) -> usize {
    let mut c = 0;
    // SAFETY: channels are inside a pixel.
    unsafe {
        while c + 2 * S::LANES <= geo.co {
            weights::<S, N, 2, true>(geo, S::LANES, x.add(c), dy.add(c), dw.add(c));
            c += 2 * S::LANES;
        }
        while c < geo.co {
            let lanes = geo.co - c;
            if lanes >= S::LANES {
                weights::<S, N, 1, true>(geo, S::LANES, x.add(c), dy.add(c), dw.add(c));
            } else {
                weights::<S, N, 1, false>(geo, lanes, x.add(c), dy.add(c), dw.add(c));
            }
            c += S::LANES;
        }
    }
    N
}

/// `NV` vectors of channels, summed over the row's pixels.
///
/// # Safety
/// As [`weight_grad`].
#[inline(always)]
unsafe fn weights<S: Simd, const N: usize, const NV: usize, const FULL: bool>(
    geo: &ConvGeometry,
    lanes: usize,
    mut x: *const f32,
    mut dy: *const f32,
    dw: *mut f32,
) {
    // SAFETY: the caller vouches for the row; pointers only wrap past its last pixel.
    unsafe {
        let mut sums = [[S::splat(0.0); NV]; N];
        for (i, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = load::<S, FULL>(dw.add(i * geo.co + v * S::LANES), lanes);
            }
        }
        for _ in 0..geo.out_w {
            for v in 0..NV {
                let grad = load::<S, FULL>(dy.add(v * S::LANES), lanes);
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = load::<S, FULL>(x.add(i * geo.x_pixel + v * S::LANES), lanes);
                    sums[v] = S::fma(grad, x, sums[v]);
                }
            }
            x = x.wrapping_add(geo.stride_w * geo.x_pixel);
            dy = dy.wrapping_add(geo.y_pixel);
        }
        for (i, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                store::<S, FULL>(dw.add(i * geo.co + v * S::LANES), *sum, lanes);
            }
        }
    }
}

/// # Safety
/// As [`weight_grad`], with the window's row read and the inputs written.
#[inline(always)]
pub(super) unsafe fn scatter<S: Simd>(geo: &ConvGeometry, dy: &[f32], w: &[f32], dx: &mut [f32]) {
    let (dy, dx) = (dy.as_ptr(), dx.as_mut_ptr());
    for kx in 0..geo.kw {
        let mut c = 0;
        // SAFETY: channels are inside a pixel, columns inside the window.
        unsafe {
            let (w, dx) = (w.as_ptr().add(kx * geo.co), dx.add(kx * geo.x_pixel));
            while c + 4 * S::LANES <= geo.co {
                inputs::<S, 4, true>(geo, S::LANES, dy.add(c), w.add(c), dx.add(c));
                c += 4 * S::LANES;
            }
            while c < geo.co {
                let lanes = geo.co - c;
                if lanes >= S::LANES {
                    inputs::<S, 1, true>(geo, S::LANES, dy.add(c), w.add(c), dx.add(c));
                } else {
                    inputs::<S, 1, false>(geo, lanes, dy.add(c), w.add(c), dx.add(c));
                }
                c += S::LANES;
            }
        }
    }
}

/// `NV` vectors of channels of one column of the window.
///
/// # Safety
/// As [`scatter`].
#[inline(always)]
unsafe fn inputs<S: Simd, const NV: usize, const FULL: bool>(
    geo: &ConvGeometry,
    lanes: usize,
    mut dy: *const f32,
    w: *const f32,
    mut dx: *mut f32,
) {
    // SAFETY: the caller vouches for the row; pointers only wrap past its last pixel.
    unsafe {
        let mut weights = [S::splat(0.0); NV];
        for (v, weight) in weights.iter_mut().enumerate() {
            *weight = load::<S, FULL>(w.add(v * S::LANES), lanes);
        }
        for _ in 0..geo.out_w {
            for (v, weight) in weights.iter().enumerate() {
                let (dy, dx) = (dy.add(v * S::LANES), dx.add(v * S::LANES));
                let sum = S::fma(*weight, load::<S, FULL>(dy, lanes), load::<S, FULL>(dx, lanes));
                store::<S, FULL>(dx, sum, lanes);
            }
            dy = dy.wrapping_add(geo.y_pixel);
            dx = dx.wrapping_add(geo.stride_w * geo.x_pixel);
        }
    }
}
