//! Convolution weights between PyTorch's `[co][ci][kh][kw]` and the order that the register tiles read.
use super::geometry::ConvGeometry;
use super::isa::Isa;
use super::table::Table;
use super::winograd::{WINOGRAD_PLANES, winograd_weights};

/// Floats of the panels that [`pack_conv`] writes.
pub fn packed_len(isa: Isa, geo: &ConvGeometry) -> usize {
    geo.taps() * geo.co.next_multiple_of(isa.lanes())
}

/// Floats of the panels that [`pack_conv_flipped`] writes.
pub fn packed_flipped_len(isa: Isa, geo: &ConvGeometry) -> usize {
    geo.kh * geo.kw * geo.co * geo.ci.next_multiple_of(isa.lanes())
}

/// Packs weights `[co][ci][kh][kw]` for [`super::conv_forward`]: panels of output channels, each `[kh][kw][ci][channels]`,
/// padded with zeros.
pub fn pack_conv(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    check(geo, w);
    assert_eq!(packed.len(), packed_len(isa, geo), "packed weights of a convolution");
    let window = geo.kh * geo.kw;
    let from = Source { w, window, inputs: geo.ci, input_step: window, lane_step: geo.taps() };
    from.pack(isa.table(), geo.co, packed, |tap| tap);
}

/// Packs the same weights for an input gradient: panels of *input* channels, each `[kh][kw][co][channels]` with the window
/// turned by half a circle. `geo` is the forward convolution.
pub fn pack_conv_flipped(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    check(geo, w);
    assert_eq!(packed.len(), packed_flipped_len(isa, geo), "flipped weights of a convolution");
    let window = geo.kh * geo.kw;
    let from = Source { w, window, inputs: geo.co, input_step: geo.taps(), lane_step: window };
    from.pack(isa.table(), geo.ci, packed, |tap| window - 1 - tap);
}

fn check(geo: &ConvGeometry, w: &[f32]) {
    geo.check();
    assert_eq!(w.len(), geo.taps() * geo.co, "weights of a convolution");
}

/// Weights as the packing sees them: windows, by input and by lane (the channel that becomes a vector lane).
struct Source<'a> {
    w: &'a [f32],
    window: usize,
    inputs: usize,
    input_step: usize,
    lane_step: usize,
}

impl Source<'_> {
    /// Row `place(tap)·inputs + input` of a panel holds that weight of all its channels. Rows are written whole, in the order
    /// in which the weights are read: the other way round, a panel falls out of the cache between two of its channels.
    fn pack(
        &self,
        table: &'static Table,
        channels: usize,
        packed: &mut [f32],
        place: impl Fn(usize) -> usize,
    ) {
        for p in table.panels(channels) {
            let panel = &mut packed[self.window * self.inputs * p.start..];
            for input in 0..self.inputs {
                for tap in 0..self.window {
                    let row = &mut panel[(place(tap) * self.inputs + input) * p.padded..][..p.padded];
                    let weights = &self.w[p.start * self.lane_step + input * self.input_step + tap..];
                    let (row, padding) = row.split_at_mut(p.channels);
                    for (lane, weight) in row.iter_mut().zip(weights.iter().step_by(self.lane_step)) {
                        *lane = *weight;
                    }
                    padding.fill(0.0);
                }
            }
        }
    }
}

/// Packs weights `[co][ci][kh][3]` for the six convolutions that Winograd's transforms leave, one after the other: each is `geo`,
/// with windows one column wide, and packed as by [`pack_conv`].
pub fn pack_winograd(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    let lengths = (geo.ci, geo.co, packed_len(isa, geo));
    pack_windows(isa, geo, w, packed, lengths, |ky, input, lane| {
        ((lane * geo.ci + input) * geo.kh + ky, false)
    });
}

/// The same for the input gradient: packed as by [`pack_conv_flipped`].
pub fn pack_winograd_flipped(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    let lengths = (geo.co, geo.ci, packed_flipped_len(isa, geo));
    pack_windows(isa, geo, w, packed, lengths, |ky, input, lane| {
        ((input * geo.ci + lane) * geo.kh + geo.kh - 1 - ky, true)
    });
}

/// Packs windows of three as six weights each. `place` tells where row `ky`'s window for an input and a lane lies, and whether it
/// is turned around.
fn pack_windows(
    isa: Isa,
    geo: &ConvGeometry,
    w: &[f32],
    packed: &mut [f32],
    (inputs, channels, plane): (usize, usize, usize),
    place: impl Fn(usize, usize, usize) -> (usize, bool),
) {
    geo.check();
    assert_eq!(geo.kw, 1, "columns of a transformed window");
    assert_eq!(w.len(), 3 * geo.taps() * geo.co, "weights of a convolution");
    assert_eq!(packed.len(), WINOGRAD_PLANES * plane, "packed weights of a convolution");
    packed.fill(0.0);
    for p in isa.table().panels(channels) {
        let panel = geo.kh * inputs * p.start;
        for (ky, input) in (0..geo.kh).flat_map(|ky| (0..inputs).map(move |input| (ky, input))) {
            let row = panel + (ky * inputs + input) * p.padded;
            for lane in 0..p.channels {
                let (window, turned) = place(ky, input, p.start + lane);
                let [a, b, c] = [w[3 * window], w[3 * window + 1], w[3 * window + 2]];
                let weights = winograd_weights(if turned { [c, b, a] } else { [a, b, c] });
                for (plane, weight) in packed.chunks_exact_mut(plane).zip(weights) {
                    plane[row + lane] = weight;
                }
            }
        }
    }
}

/// Adds a weight gradient `[kh][kw][ci][co]`, from [`super::conv_weight_grad`], to `grad`, `[co][ci][kh][kw]`.
pub fn unpack_weight_grad(geo: &ConvGeometry, packed: &[f32], grad: &mut [f32]) {
    geo.check();
    assert_eq!(packed.len(), geo.taps() * geo.co, "packed weight gradient of a convolution");
    assert_eq!(grad.len(), geo.taps() * geo.co, "weight gradient of a convolution");
    let window = geo.kh * geo.kw;
    for (o, filter) in grad.chunks_exact_mut(geo.taps()).enumerate() {
        for (c, window) in filter.chunks_exact_mut(window).enumerate() {
            for (tap, g) in window.iter_mut().enumerate() {
                *g += packed[(tap * geo.ci + c) * geo.co + o];
            }
        }
    }
}
