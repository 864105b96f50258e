//! Shapes and pitches of one convolution.

/// A convolution of one sample over a plane that already has its zero border.
///
/// Lengths are in floats. Output pixel `(y, x)`, channel `o` is
/// `Σ w[o][c][ky][kx] · plane[(y·stride_h + ky)·pitch + (x·stride_w + kx)·x_pixel + c]`.
/// A convolution along time has `kh = out_h = 1`. A group of a grouped convolution has the `ci` and `co` of the group, the
/// pixels of the whole plane, and slices that start at its first channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvGeometry {
    /// Output rows.
    pub out_h: usize,
    /// Output columns.
    pub out_w: usize,
    /// Input channels.
    pub ci: usize,
    /// Output channels.
    pub co: usize,
    /// Kernel rows.
    pub kh: usize,
    /// Kernel columns.
    pub kw: usize,
    /// Rows between the windows of neighbouring output rows.
    pub stride_h: usize,
    /// Columns between the windows of neighbouring output columns.
    pub stride_w: usize,
    /// From one row of the bordered input plane to the next.
    pub pitch: usize,
    /// From one input pixel to the next, at least `ci`.
    pub x_pixel: usize,
    /// From one output pixel to the next, at least `co`.
    pub y_pixel: usize,
}

impl ConvGeometry {
    /// Inputs of one output value.
    pub fn taps(&self) -> usize {
        self.kh * self.kw * self.ci
    }

    /// The convolution that turns a bordered output gradient into the input gradient of this one, if its strides are 1.
    ///
    /// With `p` rows of padding the gradient plane needs a border of `kh - 1 - p` rows (columns likewise); `in_h` x `in_w` is
    /// the input without padding, and `dy_pitch` the row of the gradient plane.
    pub fn input_grad(&self, in_h: usize, in_w: usize, dy_pitch: usize) -> Self {
        assert!(
            self.stride_h == 1 && self.stride_w == 1,
            "an input gradient as a convolution needs strides of 1"
        );
        Self {
            out_h: in_h,
            out_w: in_w,
            ci: self.co,
            co: self.ci,
            pitch: dy_pitch,
            x_pixel: self.y_pixel,
            y_pixel: self.x_pixel,
            ..*self
        }
    }

    /// Whether the inputs of one kernel row are neighbours in memory.
    pub(super) fn is_dense(&self) -> bool {
        self.x_pixel == self.ci || self.kw == 1
    }

    /// Floats of an input plane that output rows `0..rows` read.
    pub(super) fn plane_len(&self, rows: usize) -> usize {
        if rows == 0 {
            return 0;
        }
        let row = (rows - 1) * self.stride_h + self.kh - 1;
        let column = (self.out_w - 1) * self.stride_w + self.kw - 1;
        row * self.pitch + column * self.x_pixel + self.ci
    }

    /// Floats of an output of `rows` rows that are `row_pitch` apart.
    pub(super) fn output_len(&self, rows: usize, row_pitch: usize) -> usize {
        if rows == 0 { 0 } else { (rows - 1) * row_pitch + (self.out_w - 1) * self.y_pixel + self.co }
    }

    /// Panics with the reason if a count is zero or pixels overlap.
    pub(super) fn check(&self) {
        let counts = [self.ci, self.co, self.kh, self.kw, self.out_w];
        assert!(counts.iter().all(|&n| n > 0), "an empty convolution: {self:?}");
        assert!(self.stride_h > 0 && self.stride_w > 0, "a convolution stride of zero: {self:?}");
        assert!(self.x_pixel >= self.ci && self.y_pixel >= self.co, "pixels overlap: {self:?}");
    }
}
