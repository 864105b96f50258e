//! Winograd's minimal filtering along a row: F(4, 3), where four neighbouring outputs of a window of three cost six products
//! instead of twelve, and F(2, 3), two outputs for four products, for the one or two columns that a row may have left over. A
//! convolution with such windows becomes six whose windows are one column wide, between these transforms (Winograd 1980; Lavin
//! and Gray, CVPR 2016, in two dimensions).
//!
//! A window g is a polynomial, and its six weights are its values at 0, a, −a, ∞, b and −b, with factors chosen so that F(2, 3)
//! finds its four among them. a = 3/4 and b = 3/2 make all coefficients of the data exact and the rounding error a third smaller
//! than 1 and 2 do. With inputs d, products m and outputs y:
//!
//! | | weight | input of a quad | of a pair |
//! |---|---|---|---|
//! | 0 | `g0 / a²b²` | `a²b²·d0 − (a² + b²)·d2 + d4` | `b²(a²·d0 − d2)` |
//! | 1, 2 | `(g0 ± a·g1 + a²·g2) / 2a²(b² − a²)` | `(b²·d2 − d4) ± a(b²·d1 − d3)` | `(b² − a²)(d2 ± a·d1)` |
//! | 3 | `g2` | `a²b²·d1 − (a² + b²)·d3 + d5` | `d3 − a²·d1` |
//! | 4, 5 | `(g0 ± b·g1 + b²·g2) / 2b²(b² − a²)` | `(d4 − a²·d2) ± b(d3 − a²·d1)` | |
//!
//! `y0 = m0 + (m1 + m2) + (m4 + m5)`, `y1 = a(m1 − m2) + b(m4 − m5)`, `y2 = a²(m1 + m2) + b²(m4 + m5)`,
//! `y3 = m3 + a³(m1 − m2) + b³(m4 − m5)`; of a pair, `y0 = m0 + m1 + m2` and `y1 = m3 + a(m1 − m2)`.
//!
//! Transformed planes lie one after the other, each `[row][unit][channel]`: a unit is a quad of columns, or the pair at the end.
use super::blocks::{block, in_blocks};
use super::dispatch::vectorised;
use super::isa::Isa;

const A: f32 = 0.75;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;

/// Planes of a transformed plane.
pub const WINOGRAD_PLANES: usize = 6;

/// Rows of a channel-last plane that are transformed, by what the convolution writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WinogradRows {
    /// Rows.
    pub rows: usize,
    /// Columns written; two more are read.
    pub columns: usize,
    /// Channels.
    pub channels: usize,
    /// From one row of the plain plane to the next, in floats.
    pub pitch: usize,
}

impl WinogradRows {
    /// Quads of columns in a row; the last one may lack its fourth column.
    fn quads(&self) -> usize {
        self.columns / 4 + usize::from(self.columns % 4 == 3)
    }

    /// Whether one or two columns are left over.
    fn has_pair(&self) -> bool {
        matches!(self.columns % 4, 1 | 2)
    }

    /// Units in a row of each plane.
    fn row_units(&self) -> [usize; WINOGRAD_PLANES] {
        let (quads, all) = (self.quads(), self.quads() + usize::from(self.has_pair()));
        [all, all, all, all, quads, quads]
    }

    /// Units of each plane.
    pub fn units(&self) -> [usize; WINOGRAD_PLANES] {
        self.row_units().map(|units| units * self.rows)
    }

    /// Products that a row takes for each channel read and written, where the window itself takes three per column.
    pub fn products(&self) -> usize {
        self.row_units().iter().sum()
    }

    /// Floats of the transformed planes.
    pub fn transformed_len(&self) -> usize {
        self.products() * self.rows * self.channels
    }

    /// Where each plane starts, and the end.
    fn starts(&self) -> [usize; WINOGRAD_PLANES + 1] {
        let mut starts = [0; WINOGRAD_PLANES + 1];
        for (p, units) in self.units().into_iter().enumerate() {
            starts[p + 1] = starts[p] + units * self.channels;
        }
        starts
    }

    /// Panics unless a plain plane with `columns` columns per row and the transformed ones fit.
    fn check(&self, columns: usize, plain: usize, transformed: usize) {
        assert!(self.channels > 0 && self.rows > 0 && self.columns > 0, "an empty plane: {self:?}");
        let last = (self.rows - 1) * self.pitch + columns * self.channels;
        assert!(plain >= last, "a plane of {plain} floats for {self:?}");
        assert_eq!(transformed, self.transformed_len(), "transformed planes for {self:?}");
    }

    /// Unit `t` of row `y`. Kernels loop themselves: a closure that is handed to a loop may stay a call to code that is compiled
    /// for the wrong instruction set.
    #[inline(always)]
    fn unit(&self, starts: &[usize; WINOGRAD_PLANES + 1], y: usize, t: usize) -> Unit {
        let (units, mut places) = (self.row_units(), [0; WINOGRAD_PLANES]);
        for p in 0..WINOGRAD_PLANES {
            places[p] = starts[p] + (y * units[p] + t) * self.channels;
        }
        let from = y * self.pitch + 4 * t * self.channels;
        Unit { from, step: self.channels, columns: self.columns - 4 * t, places }
    }

    /// Quads that have all their columns, in a row.
    fn whole(&self) -> usize {
        self.columns / 4
    }
}

/// Where a unit lies.
#[derive(Clone, Copy)]
struct Unit {
    /// Its first column in the plain plane.
    from: usize,
    /// From one column to the next.
    step: usize,
    /// Columns from its first on.
    columns: usize,
    /// In each of the planes.
    places: [usize; WINOGRAD_PLANES],
}

/// Calls `$quad(channel, unit, ..)` for the whole quads of each row and `$end` for what is left of it, in blocks of channels.
/// Units are outside: memory is read and written as streams.
macro_rules! each_unit {
    ($at:expr, $quad:ident, $end:ident, $($arg:expr),*) => {{
        let (at, starts) = ($at, $at.starts());
        for y in 0..at.rows {
            for t in 0..at.whole() {
                let unit = at.unit(&starts, y, t);
                in_blocks!(at.channels, $quad(unit, $($arg),*));
            }
            if at.columns % 4 > 0 {
                let unit = at.unit(&starts, y, at.whole());
                in_blocks!(at.channels, $end(unit, $($arg),*));
            }
        }
    }};
}

type Vector<const L: usize> = [f32; L];

/// Applies `f` lane by lane.
#[inline(always)]
fn lanes<const N: usize, const M: usize, const L: usize>(
    from: [Vector<L>; N],
    f: impl Fn([f32; N]) -> [f32; M],
) -> [Vector<L>; M] {
    let mut to = [[0.0; L]; M];
    for j in 0..L {
        let mut lane = [0.0; N];
        for i in 0..N {
            lane[i] = from[i][j];
        }
        let result = f(lane);
        for i in 0..M {
            to[i][j] = result[i];
        }
    }
    to
}

/// Columns of a unit, zeros from number `count` on.
#[inline(always)]
fn columns<const N: usize, const L: usize>(x: &[f32], c: usize, unit: Unit, count: usize) -> [Vector<L>; N] {
    let mut columns = [[0.0; L]; N];
    for (i, column) in columns.iter_mut().enumerate() {
        if i < count {
            *column = block(x, unit.from + c + i * unit.step);
        }
    }
    columns
}

/// Writes the first values to a unit's place in the planes.
#[inline(always)]
fn store<const N: usize, const L: usize>(values: [Vector<L>; N], to: &mut [f32], c: usize, unit: Unit) {
    for i in 0..N {
        to[unit.places[i] + c..][..L].copy_from_slice(&values[i]);
    }
}

/// The input transform of rows that are read: `x` starts at the first window's first column.
pub fn winograd_input(isa: Isa, at: WinogradRows, x: &[f32], v: &mut [f32]) {
    at.check(at.columns + 2, x.len(), v.len());
    vectorised!(isa, winograd_input_body(at: WinogradRows, x: &[f32], v: &mut [f32]));
}

#[inline(always)]
fn winograd_input_body(at: WinogradRows, x: &[f32], v: &mut [f32]) {
    each_unit!(at, input_quad, input_end, x, v);
}

#[inline(always)]
fn input_quad<const L: usize>(c: usize, unit: Unit, x: &[f32], v: &mut [f32]) {
    store::<6, L>(lanes(columns(x, c, unit, 6), quad_input), v, c, unit);
}

#[inline(always)]
fn input_end<const L: usize>(c: usize, unit: Unit, x: &[f32], v: &mut [f32]) {
    let count = unit.columns + 2;
    if unit.columns == 3 {
        store::<6, L>(lanes(columns(x, c, unit, count), quad_input), v, c, unit);
    } else {
        store::<4, L>(lanes(columns(x, c, unit, count), pair_input), v, c, unit);
    }
}

#[inline(always)]
fn quad_input(d: [f32; 6]) -> [f32; 6] {
    let (even, odd) = (B2 * d[2] - d[4], A * (B2 * d[1] - d[3]));
    let (outer_even, outer_odd) = (d[4] - A2 * d[2], B * (d[3] - A2 * d[1]));
    [
        (A2 * B2 * d[0] - (A2 + B2) * d[2]) + d[4],
        even + odd,
        even - odd,
        (A2 * B2 * d[1] - (A2 + B2) * d[3]) + d[5],
        outer_even + outer_odd,
        outer_even - outer_odd,
    ]
}

#[inline(always)]
fn pair_input(d: [f32; 4]) -> [f32; 4] {
    let (even, odd) = ((B2 - A2) * d[2], (B2 - A2) * A * d[1]);
    [B2 * (A2 * d[0] - d[2]), even + odd, even - odd, d[3] - A2 * d[1]]
}

/// The output transform: each unit's columns from its products; `bias` has a float per channel.
pub fn winograd_output(isa: Isa, at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    at.check(at.columns, y.len(), m.len());
    assert!(bias.is_none_or(|b| b.len() == at.channels), "bias of a convolution");
    vectorised!(isa, winograd_output_body(at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]));
}

#[inline(always)]
fn winograd_output_body(at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    each_unit!(at, output_quad, output_end, m, bias, y);
}

#[inline(always)]
fn output_quad<const L: usize>(c: usize, unit: Unit, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    write_columns::<4, L>(lanes(products(m, bias, c, unit), quad_output), y, c, unit, 4);
}

#[inline(always)]
fn output_end<const L: usize>(c: usize, unit: Unit, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    if unit.columns == 3 {
        write_columns::<4, L>(lanes(products(m, bias, c, unit), quad_output), y, c, unit, 3);
    } else {
        write_columns::<2, L>(lanes(products(m, bias, c, unit), pair_output), y, c, unit, unit.columns);
    }
}

/// The bias and a unit's first products.
#[inline(always)]
fn products<const N: usize, const L: usize>(
    m: &[f32],
    bias: Option<&[f32]>,
    c: usize,
    unit: Unit,
) -> [Vector<L>; N] {
    let mut products = [[0.0; L]; N];
    if let Some(bias) = bias {
        products[0] = block(bias, c);
    }
    for (product, place) in products[1..].iter_mut().zip(unit.places) {
        *product = block(m, place + c);
    }
    products
}

#[inline(always)]
fn write_columns<const N: usize, const L: usize>(
    values: [Vector<L>; N],
    y: &mut [f32],
    c: usize,
    unit: Unit,
    count: usize,
) {
    for i in 0..N {
        if i < count {
            y[unit.from + c + i * unit.step..][..L].copy_from_slice(&values[i]);
        }
    }
}

/// Of the bias and six products.
#[inline(always)]
fn quad_output([bias, m0, m1, m2, m3, m4, m5]: [f32; 7]) -> [f32; 4] {
    let (even, odd) = (m1 + m2, A * (m1 - m2));
    let (outer_even, outer_odd) = (m4 + m5, B * (m4 - m5));
    [
        ((m0 + even) + outer_even) + bias,
        (odd + outer_odd) + bias,
        (A2 * even + B2 * outer_even) + bias,
        ((A2 * odd + B2 * outer_odd) + m3) + bias,
    ]
}

/// Of the bias and four products.
#[inline(always)]
fn pair_output([bias, m0, m1, m2, m3]: [f32; 5]) -> [f32; 2] {
    [(m0 + (m1 + m2)) + bias, (A * (m1 - m2) + m3) + bias]
}

/// The transpose of the output transform: the gradients of the products from those of each unit's columns.
pub fn winograd_grad(isa: Isa, at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
    at.check(at.columns, dy.len(), dm.len());
    vectorised!(isa, winograd_grad_body(at: WinogradRows, dy: &[f32], dm: &mut [f32]));
}

#[inline(always)]
fn winograd_grad_body(at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
    each_unit!(at, grad_quad, grad_end, dy, dm);
}

#[inline(always)]
fn grad_quad<const L: usize>(c: usize, unit: Unit, dy: &[f32], dm: &mut [f32]) {
    store::<6, L>(lanes(columns(dy, c, unit, 4), quad_grad), dm, c, unit);
}

#[inline(always)]
fn grad_end<const L: usize>(c: usize, unit: Unit, dy: &[f32], dm: &mut [f32]) {
    if unit.columns == 3 {
        store::<6, L>(lanes(columns(dy, c, unit, 3), quad_grad), dm, c, unit);
    } else {
        store::<4, L>(lanes(columns(dy, c, unit, unit.columns), pair_grad), dm, c, unit);
    }
}

#[inline(always)]
fn quad_grad(d: [f32; 4]) -> [f32; 6] {
    let (even, odd) = (d[0] + A2 * d[2], A * (d[1] + A2 * d[3]));
    let (outer_even, outer_odd) = (d[0] + B2 * d[2], B * (d[1] + B2 * d[3]));
    [d[0], even + odd, even - odd, d[3], outer_even + outer_odd, outer_even - outer_odd]
}

#[inline(always)]
fn pair_grad(d: [f32; 2]) -> [f32; 4] {
    let odd = A * d[1];
    [d[0], d[0] + odd, d[0] - odd, d[1]]
}

/// The weights' factors.
const ZERO: f32 = 1.0 / (A2 * B2);
const INNER: f32 = 1.0 / (2.0 * A2 * (B2 - A2));
const OUTER: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// The six weights that stand for a window of three.
pub fn winograd_weights(g: [f32; 3]) -> [f32; WINOGRAD_PLANES] {
    let (even, odd) = (g[0] + A2 * g[2], A * g[1]);
    let (outer_even, outer_odd) = (g[0] + B2 * g[2], B * g[1]);
    [
        g[0] * ZERO,
        (even + odd) * INNER,
        (even - odd) * INNER,
        g[2],
        (outer_even + outer_odd) * OUTER,
        (outer_even - outer_odd) * OUTER,
    ]
}

/// The transpose of [`winograd_weights`]: the gradient of the window from those of the six.
pub fn winograd_weight_grad(u: [f32; WINOGRAD_PLANES]) -> [f32; 3] {
    let (even, odd) = ((u[1] + u[2]) * INNER, (u[1] - u[2]) * INNER);
    let (outer_even, outer_odd) = ((u[4] + u[5]) * OUTER, (u[4] - u[5]) * OUTER);
    [u[0] * ZERO + (even + outer_even), A * odd + B * outer_odd, (A2 * even + B2 * outer_even) + u[3]]
}
