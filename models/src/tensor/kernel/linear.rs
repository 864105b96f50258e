//! Fully connected layers: `n` samples of `k` inputs and `o` outputs, weights `[o][k]` as in PyTorch.
use super::dot::Dot;
use super::isa::Isa;
use super::panel::{PADDED_ROWS, PaddedRows, Panel};
use super::table::Table;
use super::tile::{Init, Tile};
use std::ops::Range;

/// `out[n][o] = bias[o] + Σ_k x[n][k] · w[o][k]`.
#[expect(
    clippy::too_many_arguments,
    reason = "operands of one product; a struct would only be taken apart again"
)]
pub fn linear_forward(
    isa: Isa,
    n: usize,
    k: usize,
    o: usize,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    check(n, k, o, x, w, out);
    assert!(bias.is_none_or(|bias| bias.len() == o), "bias of a linear layer");
    isa.table().dots(n, o, &mut Dot { k, a: x, b: w, bias, out, out_row: o });
}

/// `dx[n][k] = Σ_o dy[n][o] · w[o][k]`; overwrites `dx`.
pub fn linear_input_grad(isa: Isa, n: usize, k: usize, o: usize, dy: &[f32], w: &[f32], dx: &mut [f32]) {
    check(n, k, o, dx, w, dy);
    if o == 0 {
        return dx.fill(0.0);
    }
    let table = isa.table();
    for panel in table.panels(k) {
        for_each_block(&panel, w, k, o, |reduced, b, b_step| {
            for (first, rows) in table.pixel_strips(&panel, n) {
                let mut tile = Tile {
                    segs: 1,
                    len: reduced.len(),
                    a: &dy[first * o + reduced.start..],
                    a_seg: 0,
                    a_row: o,
                    a_step: 1,
                    b,
                    b_seg: 0,
                    b_step,
                    init: if reduced.start == 0 { Init::Zero } else { Init::Keep },
                    out: &mut dx[first * k + panel.start..],
                    out_row: k,
                };
                table.pixels(&panel, rows, &mut tile);
            }
        });
    }
}

/// `dw[o][k] += Σ_n dy[n][o] · x[n][k]`, one sample after the other.
pub fn linear_weight_grad(isa: Isa, n: usize, k: usize, o: usize, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    check(n, k, o, x, dw, dy);
    if n == 0 {
        return;
    }
    let table = isa.table();
    // Outputs outside, panels inside: the rows of `dw`, which is the largest operand, are read and written as streams.
    let Some(widest) = table.ordered_panels(k).next() else { return };
    for (first, rows) in table.tap_strips(&widest, o) {
        for panel in table.ordered_panels(k).filter(|panel| !panel.is_partial()) {
            let samples = Samples { dy, o, x: &x[panel.start..], x_step: k, n };
            samples.accumulate(table, &panel, first, rows, &mut dw[first * k + panel.start..], k);
        }
    }
    for panel in table.ordered_panels(k).filter(Panel::is_partial) {
        for_each_block(&panel, x, k, n, |reduced, x, x_step| {
            let samples = Samples { dy: &dy[reduced.start * o..], o, x, x_step, n: reduced.len() };
            for (first, rows) in table.tap_strips(&widest, o) {
                samples.accumulate(table, &panel, first, rows, &mut dw[first * k + panel.start..], k);
            }
        });
    }
}

/// Output gradients, and one panel of the inputs, of some samples.
struct Samples<'a> {
    dy: &'a [f32],
    o: usize,
    x: &'a [f32],
    x_step: usize,
    n: usize,
}

impl Samples<'_> {
    /// Adds what they give to `rows` outputs from `first`; `dw` starts at the first output's panel, outputs are `k` apart.
    fn accumulate(&self, table: &Table, panel: &Panel, first: usize, rows: usize, dw: &mut [f32], k: usize) {
        let mut tile = Tile {
            segs: 1,
            len: self.n,
            a: &self.dy[first..],
            a_seg: 0,
            a_row: 1,
            a_step: self.o,
            b: self.x,
            b_seg: 0,
            b_step: self.x_step,
            init: Init::Keep,
            out: dw,
            out_row: k,
        };
        table.taps(panel, rows, &mut tile);
    }
}

fn check(n: usize, k: usize, o: usize, inputs: &[f32], weights: &[f32], outputs: &[f32]) {
    assert_eq!(inputs.len(), n * k, "inputs of a linear layer: {n} x {k}");
    assert_eq!(weights.len(), o * k, "weights of a linear layer: {o} x {k}");
    assert_eq!(outputs.len(), n * o, "outputs of a linear layer: {n} x {o}");
}

/// Calls `f` with ranges of the `rows` rows of `b` (each `step` long) that make up the reduction, and the panel's columns of
/// them: all at once where vectors fit, otherwise in padded copies.
fn for_each_block(
    panel: &Panel,
    b: &[f32],
    step: usize,
    rows: usize,
    mut f: impl FnMut(Range<usize>, &[f32], usize),
) {
    if rows == 0 {
        return;
    }
    if !panel.is_copied() {
        return f(0..rows, &b[panel.start..], step);
    }
    let mut padded = PaddedRows::new();
    for start in (0..rows).step_by(PADDED_ROWS) {
        let end = rows.min(start + PADDED_ROWS);
        f(start..end, padded.fill(panel, &b[start * step..], step, end - start), panel.padded);
    }
}
