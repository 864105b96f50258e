//! Winograd's minimal filtering F(2, 3) along a row: two neighbouring outputs of a window of three cost four products
//! instead of six. A convolution with such windows becomes four whose windows are one column wide, each over a quarter plane,
//! between these transforms (Winograd 1980; Lavin and Gray, CVPR 2016, in two dimensions).
//!
//! With inputs d, weights g and outputs y: `y0 = m0 + m1 + m2`, `y1 = m1 − m2 − m3` where `m0 = (d0 − d2)·g0`,
//! `m1 = (d1 + d2)·(g0 + g1 + g2)/2`, `m2 = (d2 − d1)·(g0 − g1 + g2)/2`, `m3 = (d1 − d3)·g2`.
//!
//! Transformed planes are `[4][row][pair of columns][channel]`.
use super::dispatch::vectorised;
use super::isa::Isa;

/// Rows of pairs of columns in a channel-last plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRows {
    /// Rows.
    pub rows: usize,
    /// Pairs of columns in a row.
    pub pairs: usize,
    /// Channels.
    pub channels: usize,
    /// From one row of the plain plane to the next, in floats.
    pub pitch: usize,
}

impl PairRows {
    /// Floats of one of the four transformed planes.
    pub fn quarter(&self) -> usize {
        self.rows * self.pairs * self.channels
    }

    /// Panics unless a plain plane with `columns` columns per row and four transformed ones fit.
    fn check(&self, columns: usize, plain: usize, transformed: usize) {
        assert!(self.channels > 0 && self.rows > 0 && self.pairs > 0, "an empty plane: {self:?}");
        let last = (self.rows - 1) * self.pitch + columns * self.channels;
        assert!(plain >= last, "a plane of {plain} floats for {self:?}");
        assert_eq!(transformed, 4 * self.quarter(), "transformed planes for {self:?}");
    }
}

/// The input transform: `d0 − d2`, `d1 + d2`, `d2 − d1`, `d1 − d3` of the four columns from each pair's first on.
pub fn winograd_input(isa: Isa, at: PairRows, x: &[f32], v: &mut [f32]) {
    at.check(2 * at.pairs + 2, x.len(), v.len());
    vectorised!(isa, winograd_input_body(at: PairRows, x: &[f32], v: &mut [f32]));
}

#[inline(always)]
fn winograd_input_body(at: PairRows, x: &[f32], v: &mut [f32]) {
    let (c, row) = (at.channels, at.pairs * at.channels);
    let (v0, v1, v2, v3) = quarters(v);
    let out = v0
        .chunks_exact_mut(row)
        .zip(v1.chunks_exact_mut(row))
        .zip(v2.chunks_exact_mut(row).zip(v3.chunks_exact_mut(row)));
    for (y, ((v0, v1), (v2, v3))) in out.enumerate() {
        for t in 0..at.pairs {
            let d = &x[y * at.pitch + 2 * t * c..][..4 * c];
            let (d0, d1, d2, d3) = (&d[..c], &d[c..2 * c], &d[2 * c..3 * c], &d[3 * c..]);
            let place = t * c..(t + 1) * c;
            let (v0, v1) = (&mut v0[place.clone()], &mut v1[place.clone()]);
            let (v2, v3) = (&mut v2[place.clone()], &mut v3[place]);
            for j in 0..c {
                v0[j] = d0[j] - d2[j];
                v1[j] = d1[j] + d2[j];
                v2[j] = d2[j] - d1[j];
                v3[j] = d1[j] - d3[j];
            }
        }
    }
}

/// The output transform: each pair's two columns from its four products; `bias` has a float per channel.
pub fn winograd_output(isa: Isa, at: PairRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    at.check(2 * at.pairs, y.len(), m.len());
    assert!(bias.is_none_or(|b| b.len() == at.channels), "bias of a convolution");
    vectorised!(isa, winograd_output_body(at: PairRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]));
}

#[inline(always)]
fn winograd_output_body(at: PairRows, m: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    let c = at.channels;
    for row in 0..at.rows {
        for t in 0..at.pairs {
            let from = (row * at.pairs + t) * c;
            let [m0, m1, m2, m3] = [0, 1, 2, 3].map(|q| &m[q * at.quarter() + from..][..c]);
            let (y0, y1) = y[row * at.pitch + 2 * t * c..][..2 * c].split_at_mut(c);
            match bias {
                Some(bias) => pair(m0, m1, m2, m3, |j| bias[j], y0, y1),
                None => pair(m0, m1, m2, m3, |_| 0.0, y0, y1),
            }
        }
    }
}

#[inline(always)]
fn pair(
    m0: &[f32],
    m1: &[f32],
    m2: &[f32],
    m3: &[f32],
    bias: impl Fn(usize) -> f32,
    y0: &mut [f32],
    y1: &mut [f32],
) {
    let c = y0.len();
    let (m0, m1, m2, m3, y1) = (&m0[..c], &m1[..c], &m2[..c], &m3[..c], &mut y1[..c]);
    for j in 0..c {
        y0[j] = (m0[j] + m1[j]) + m2[j] + bias(j);
        y1[j] = (m1[j] - m2[j]) - m3[j] + bias(j);
    }
}

/// The transpose of the output transform: the gradients of the four products from those of each pair's two columns.
pub fn winograd_grad(isa: Isa, at: PairRows, dy: &[f32], dm: &mut [f32]) {
    at.check(2 * at.pairs, dy.len(), dm.len());
    vectorised!(isa, winograd_grad_body(at: PairRows, dy: &[f32], dm: &mut [f32]));
}

#[inline(always)]
fn winograd_grad_body(at: PairRows, dy: &[f32], dm: &mut [f32]) {
    let (c, row) = (at.channels, at.pairs * at.channels);
    let (z0, z1, z2, z3) = quarters(dm);
    let out = z0
        .chunks_exact_mut(row)
        .zip(z1.chunks_exact_mut(row))
        .zip(z2.chunks_exact_mut(row).zip(z3.chunks_exact_mut(row)));
    for (y, ((z0, z1), (z2, z3))) in out.enumerate() {
        for t in 0..at.pairs {
            let (d0, d1) = dy[y * at.pitch + 2 * t * c..][..2 * c].split_at(c);
            let place = t * c..(t + 1) * c;
            let (z0, z1) = (&mut z0[place.clone()], &mut z1[place.clone()]);
            let (z2, z3) = (&mut z2[place.clone()], &mut z3[place]);
            for j in 0..c {
                z0[j] = d0[j];
                z1[j] = d0[j] + d1[j];
                z2[j] = d0[j] - d1[j];
                z3[j] = -d1[j];
            }
        }
    }
}

#[inline(always)]
fn quarters(all: &mut [f32]) -> (&mut [f32], &mut [f32], &mut [f32], &mut [f32]) {
    let quarter = all.len() / 4;
    let (a, rest) = all.split_at_mut(quarter);
    let (b, rest) = rest.split_at_mut(quarter);
    let (c, d) = rest.split_at_mut(quarter);
    (a, b, c, d)
}

/// The four weights that stand for a window of three.
pub fn winograd_weights(g: [f32; 3]) -> [f32; 4] {
    let (outer, middle) = (0.5 * (g[0] + g[2]), 0.5 * g[1]);
    [g[0], outer + middle, outer - middle, g[2]]
}

/// The transpose of [`winograd_weights`]: the gradient of the window from those of the four.
pub fn winograd_weight_grad(u: [f32; 4]) -> [f32; 3] {
    let outer = 0.5 * (u[1] + u[2]);
    [u[0] + outer, 0.5 * (u[1] - u[2]), outer + u[3]]
}
