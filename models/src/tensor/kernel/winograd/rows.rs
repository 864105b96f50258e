//! Where the columns of a plane and the numbers that stand for them lie.
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
    pub(super) fn starts(&self) -> [usize; WINOGRAD_PLANES + 1] {
        let mut starts = [0; WINOGRAD_PLANES + 1];
        for (p, units) in self.units().into_iter().enumerate() {
            starts[p + 1] = starts[p] + units * self.channels;
        }
        starts
    }

    /// Panics unless a plain plane with `columns` columns per row and the transformed ones fit.
    pub(in crate::tensor::kernel) fn check(&self, columns: usize, plain: usize, transformed: usize) {
        assert!(self.channels > 0 && self.rows > 0 && self.columns > 0, "an empty plane: {self:?}");
        let last = (self.rows - 1) * self.pitch + columns * self.channels;
        assert!(plain >= last, "a plane of {plain} floats for {self:?}");
        assert_eq!(transformed, self.transformed_len(), "transformed planes for {self:?}");
    }

    /// Unit `t` of row `y`.
    #[inline(always)]
    pub(super) fn unit(&self, starts: &[usize; WINOGRAD_PLANES + 1], y: usize, t: usize) -> Unit {
        let (units, mut places) = (self.row_units(), [0; WINOGRAD_PLANES]);
        for p in 0..WINOGRAD_PLANES {
            places[p] = starts[p] + (y * units[p] + t) * self.channels;
        }
        let from = y * self.pitch + 4 * t * self.channels;
        Unit { from, step: self.channels, columns: self.columns - 4 * t, places }
    }

    /// Quads that have all their columns, in a row.
    pub(super) fn whole(&self) -> usize {
        self.columns / 4
    }
}

/// Where a unit lies.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    /// Its first column in the plain plane.
    pub from: usize,
    /// From one column to the next.
    pub step: usize,
    /// Columns from its first on.
    pub columns: usize,
    /// In each of the planes.
    pub places: [usize; WINOGRAD_PLANES],
}
