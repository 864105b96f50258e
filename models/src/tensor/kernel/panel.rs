//! How channels and rows are cut into what a register tile takes.
use super::simd::MAX_LANES;

/// Channels that no panel with a single sum per element crosses.
const BLOCK: usize = 16;

/// How many partial sums each element of the last `rest` channels, those after whole blocks, is added up in. A few channels keep no
/// multiplier busy by themselves: each waits for its last sum. It depends on the number of channels alone, so every instruction set adds
/// in the same order.
const fn partial_sums(rest: usize) -> usize {
    match rest {
        1..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// Where the channels with several partial sums begin, and how many those are.
pub(super) const fn many_sums(channels: usize) -> (usize, usize) {
    let rest = channels % BLOCK;
    let sums = partial_sums(rest);
    (if sums > 1 { channels - rest } else { channels }, sums)
}

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
    /// Partial sums of each element.
    pub sums: usize,
}

impl Panel {
    /// Whether the last vector reaches past the last channel.
    pub(super) fn is_partial(&self) -> bool {
        self.channels < self.padded
    }

    /// Whether its operands are copied piece by piece: where vectors would read too far, and where sums must meet at the same places on
    /// every instruction set.
    pub(super) fn is_copied(&self) -> bool {
        self.is_partial() || self.sums > 1
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
