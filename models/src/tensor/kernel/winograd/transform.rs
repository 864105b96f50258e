//! The transforms, a vector of channels at a time.
use super::points::{pair_grad, pair_input, pair_output, quad_grad, quad_input, quad_output};
use super::rows::{Unit, WinogradRows};
use crate::tensor::kernel::simd::{Simd, load, store};

/// A transform as compiled for one instruction set: rows, what is read, what is written.
pub(in crate::tensor::kernel) type TransformFn = unsafe fn(WinogradRows, &[f32], &mut [f32]);
/// The same with a bias.
pub(in crate::tensor::kernel) type OutputFn = unsafe fn(WinogradRows, &[f32], Option<&[f32]>, &mut [f32]);

/// Calls `$quad::<S, full>(c, lanes, unit, ..)` for the whole quads of each row and `$end` for what is left of it, vector by vector. Units are
/// outside: memory is read and written as streams.
macro_rules! each_unit {
    ($s:ident, $at:expr, $quad:ident, $end:ident, $($arg:expr),*) => {{
        let (at, starts) = ($at, $at.starts());
        for y in 0..at.rows {
            for t in 0..at.whole() {
                each_unit!(@ $s, at, $quad, at.unit(&starts, y, t), $($arg),*);
            }
            if at.columns % 4 > 0 {
                each_unit!(@ $s, at, $end, at.unit(&starts, y, at.whole()), $($arg),*);
            }
        }
    }};
    (@ $s:ident, $at:ident, $f:ident, $unit:expr, $($arg:expr),*) => {{
        let (unit, mut c) = ($unit, 0);
        while c + $s::LANES <= $at.channels {
            $f::<$s, true>(c, $s::LANES, unit, $($arg),*);
            c += $s::LANES;
        }
        if c < $at.channels {
            $f::<$s, false>(c, $at.channels - c, unit, $($arg),*);
        }
    }};
}

/// Columns of a unit, zeros from number `count` on.
///
/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn columns<S: Simd, const FULL: bool, const N: usize>(
    x: *const f32,
    c: usize,
    lanes: usize,
    unit: Unit,
    count: usize,
) -> [S::V; N] {
    // SAFETY: the unit's columns are inside the plane.
    unsafe {
        let mut columns = [S::splat(0.0); N];
        for (i, column) in columns.iter_mut().enumerate() {
            if i < count {
                *column = load::<S, FULL>(x.add(unit.from + c + i * unit.step), lanes);
            }
        }
        columns
    }
}

/// Writes the values to a unit's place in the planes.
///
/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn planes<S: Simd, const FULL: bool, const N: usize>(
    values: [S::V; N],
    to: *mut f32,
    c: usize,
    lanes: usize,
    unit: Unit,
) {
    for (value, place) in values.into_iter().zip(unit.places) {
        // SAFETY: the unit's places are inside the planes.
        unsafe { store::<S, FULL>(to.add(place + c), value, lanes) }
    }
}

/// # Safety
/// The CPU has `S`; both slices are as `WinogradRows::check` wants them.
#[inline(always)]
pub(in crate::tensor::kernel) unsafe fn input<S: Simd>(at: WinogradRows, x: &[f32], v: &mut [f32]) {
    let (x, v) = (x.as_ptr(), v.as_mut_ptr());
    // SAFETY: see above.
    unsafe { each_unit!(S, at, input_quad, input_end, x, v) }
}

/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn input_quad<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    x: *const f32,
    v: *mut f32,
) {
    // SAFETY: see above.
    unsafe {
        planes::<S, FULL, 6>(quad_input::<S>(columns::<S, FULL, 6>(x, c, lanes, unit, 6)), v, c, lanes, unit);
    }
}

/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn input_end<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    x: *const f32,
    v: *mut f32,
) {
    let count = unit.columns + 2;
    // SAFETY: see above.
    unsafe {
        if unit.columns == 3 {
            let values = quad_input::<S>(columns::<S, FULL, 6>(x, c, lanes, unit, count));
            planes::<S, FULL, 6>(values, v, c, lanes, unit);
        } else {
            let values = pair_input::<S>(columns::<S, FULL, 4>(x, c, lanes, unit, count));
            planes::<S, FULL, 4>(values, v, c, lanes, unit);
        }
    }
}

/// # Safety
/// As [`input`], with a bias for each channel.
#[inline(always)]
pub(in crate::tensor::kernel) unsafe fn output<S: Simd>(
    at: WinogradRows,
    m: &[f32],
    bias: Option<&[f32]>,
    y: &mut [f32],
) {
    let (m, bias, y) = (m.as_ptr(), bias.map(<[f32]>::as_ptr), y.as_mut_ptr());
    // SAFETY: see above. Two loops, neither of which asks for the bias.
    unsafe {
        match bias {
            Some(bias) => each_unit!(S, at, output_quad, output_end, m, Some(bias), y),
            None => each_unit!(S, at, output_quad, output_end, m, None, y),
        }
    }
}

/// # Safety
/// As [`output`].
#[inline(always)]
unsafe fn output_quad<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    m: *const f32,
    bias: Option<*const f32>,
    y: *mut f32,
) {
    // SAFETY: see above.
    unsafe {
        let (bias, m) = products::<S, FULL, 6>(m, bias, c, lanes, unit);
        write_columns::<S, FULL, 4>(quad_output::<S>(bias, m), y, c, lanes, unit, 4);
    }
}

/// # Safety
/// As [`output`].
#[inline(always)]
unsafe fn output_end<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    m: *const f32,
    bias: Option<*const f32>,
    y: *mut f32,
) {
    // SAFETY: see above.
    unsafe {
        if unit.columns == 3 {
            let (bias, m) = products::<S, FULL, 6>(m, bias, c, lanes, unit);
            write_columns::<S, FULL, 4>(quad_output::<S>(bias, m), y, c, lanes, unit, 3);
        } else {
            let (bias, m) = products::<S, FULL, 4>(m, bias, c, lanes, unit);
            write_columns::<S, FULL, 2>(pair_output::<S>(bias, m), y, c, lanes, unit, unit.columns);
        }
    }
}

/// The bias and a unit's first products.
///
/// # Safety
/// As [`output`].
#[inline(always)]
unsafe fn products<S: Simd, const FULL: bool, const N: usize>(
    m: *const f32,
    bias: Option<*const f32>,
    c: usize,
    lanes: usize,
    unit: Unit,
) -> (S::V, [S::V; N]) {
    // SAFETY: the unit's places are inside the planes.
    unsafe {
        let mut products = [S::splat(0.0); N];
        for (product, place) in products.iter_mut().zip(unit.places) {
            *product = load::<S, FULL>(m.add(place + c), lanes);
        }
        let bias = match bias {
            Some(bias) => load::<S, FULL>(bias.add(c), lanes),
            None => S::splat(0.0),
        };
        (bias, products)
    }
}

/// # Safety
/// As [`output`].
#[inline(always)]
unsafe fn write_columns<S: Simd, const FULL: bool, const N: usize>(
    values: [S::V; N],
    y: *mut f32,
    c: usize,
    lanes: usize,
    unit: Unit,
    count: usize,
) {
    for (i, value) in values.into_iter().enumerate() {
        if i < count {
            // SAFETY: the unit's columns are inside the plane.
            unsafe { store::<S, FULL>(y.add(unit.from + c + i * unit.step), value, lanes) }
        }
    }
}

/// # Safety
/// As [`input`].
#[inline(always)]
pub(in crate::tensor::kernel) unsafe fn grad<S: Simd>(at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
    let (dy, dm) = (dy.as_ptr(), dm.as_mut_ptr());
    // SAFETY: see above.
    unsafe { each_unit!(S, at, grad_quad, grad_end, dy, dm) }
}

/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn grad_quad<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    dy: *const f32,
    dm: *mut f32,
) {
    // SAFETY: see above.
    unsafe {
        planes::<S, FULL, 6>(
            quad_grad::<S>(columns::<S, FULL, 4>(dy, c, lanes, unit, 4)),
            dm,
            c,
            lanes,
            unit,
        );
    }
}

/// # Safety
/// As [`input`].
#[inline(always)]
unsafe fn grad_end<S: Simd, const FULL: bool>(
    c: usize,
    lanes: usize,
    unit: Unit,
    dy: *const f32,
    dm: *mut f32,
) {
    // SAFETY: see above.
    unsafe {
        if unit.columns == 3 {
            let values = quad_grad::<S>(columns::<S, FULL, 4>(dy, c, lanes, unit, 3));
            planes::<S, FULL, 6>(values, dm, c, lanes, unit);
        } else {
            let values = pair_grad::<S>(columns::<S, FULL, 2>(dy, c, lanes, unit, unit.columns));
            planes::<S, FULL, 4>(values, dm, c, lanes, unit);
        }
    }
}
