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
#[expect(unsafe_code, reason = "runs vector instructions, which need the detected CPU")]
mod points;
mod rows;
#[expect(
    unsafe_code,
    reason = "reads planes through pointers, within bounds that `WinogradRows::check` has checked"
)]
pub(super) mod transform;
mod weights;

pub use rows::{WINOGRAD_PLANES, WinogradRows};
pub(super) use transform::{OutputFn, TransformFn};
pub use weights::{winograd_weight_grad, winograd_weights};

use super::isa::Isa;

const A: f32 = 0.75;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;

/// The input transform of rows that are read: `x` starts at the first window's first column.
pub fn winograd_input(isa: Isa, at: WinogradRows, x: &[f32], v: &mut [f32]) {
    isa.table().winograd_input(at, x, v);
}

/// The output transform: each unit's columns from its products; `bias` has a float per channel.
pub fn winograd_output(isa: Isa, at: WinogradRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    isa.table().winograd_output(at, m, bias, y);
}

/// The transpose of the output transform: the gradients of the products from those of each unit's columns.
pub fn winograd_grad(isa: Isa, at: WinogradRows, dy: &[f32], dm: &mut [f32]) {
    isa.table().winograd_grad(at, dy, dm);
}
