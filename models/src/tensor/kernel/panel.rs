//! How channels and rows are cut into what a register tile takes.
use super::simd::MAX_LANES;

/// One panel of output channels (or columns): where it starts, and the vectors that cover it.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    /// First channel.
    pub start: usize,
    /// Channels in it.
    pub channels: usize,
    /// Floats of the vectors that cover it: `channels`, rounded up to whole vectors.
    pub padded: usize,
    /// Index into [`super::table::Table::widths`].
    pub width: usize,
}

impl Panel {
    /// Whether the last vector reaches past the last channel.
    pub(super) fn is_partial(&self) -> bool {
        self.channels < self.padded
    }
}

/// The widest panel in floats, and the rows of [`PaddedRows`].
const MAX_PANEL: usize = 2 * MAX_LANES;
pub(super) const PADDED_ROWS: usize = 64;

/// A panel's rows of `b` copied next to each other with zeros after the last channel, for the panel whose last vector would
/// read past the end of a row.
pub(super) struct PaddedRows([f32; PADDED_ROWS * MAX_PANEL]);

impl PaddedRows {
    pub(super) fn new() -> Self {
        Self([0.0; PADDED_ROWS * MAX_PANEL])
    }

    /// Takes the panel's channels of rows that are `step` apart; `b` starts at the first of `n` rows.
    pub(super) fn fill(&mut self, panel: &Panel, b: &[f32], step: usize, n: usize) -> &[f32] {
        for (i, row) in self.0.chunks_exact_mut(panel.padded).take(n).enumerate() {
            row[..panel.channels].copy_from_slice(&b[i * step + panel.start..][..panel.channels]);
        }
        &self.0[..n * panel.padded]
    }
}

/// Cuts `0..n` into nearly equal strips of at most `max`, as (start, length).
pub(super) fn strips(n: usize, max: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = n.div_ceil(max);
    (0..count).map(move |t| (n * t / count, n * (t + 1) / count - n * t / count))
}

/// Cuts `0..n` into blocks of `size` and single ones, as (start, whether it is a block).
pub(super) fn blocks(n: usize, size: usize) -> impl Iterator<Item = (usize, bool)> {
    let whole = n - n % size;
    (0..whole).step_by(size).map(|i| (i, true)).chain((whole..n).map(|i| (i, false)))
}
