//! Convolution weights between PyTorch's `[co][ci][kh][kw]` and the order that the register tiles read.
use super::geometry::ConvGeometry;
use super::isa::{Isa, Table};

/// Floats of the panels that [`pack_conv`] writes.
pub fn packed_len(isa: Isa, geo: &ConvGeometry) -> usize {
    geo.taps() * geo.co.next_multiple_of(isa.lanes())
}

/// Floats of the panels that [`pack_conv_flipped`] writes.
pub fn packed_flipped_len(isa: Isa, geo: &ConvGeometry) -> usize {
    geo.kh * geo.kw * geo.co * geo.ci.next_multiple_of(isa.lanes())
}

/// Packs weights `[co][ci][kh][kw]` for [`super::conv_forward`]: panels of output channels, each `[kh][kw][ci][channels]`, padded
/// with zeros.
pub fn pack_conv(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    geo.check();
    assert_eq!(w.len(), geo.taps() * geo.co, "weights of a convolution");
    assert_eq!(packed.len(), packed_len(isa, geo), "packed weights of a convolution");
    let window = geo.kh * geo.kw;
    pack_panels(isa.table(), geo.co, geo.taps(), packed, |channel, column| {
        let filter = &w[channel * geo.taps()..][..geo.taps()];
        for (c, window) in filter.chunks_exact(window).enumerate() {
            for (tap, &weight) in window.iter().enumerate() {
                column.set(tap * geo.ci + c, weight);
            }
        }
    });
}

/// Packs the same weights for an input gradient: panels of *input* channels, each `[kh][kw][co][channels]` with the window
/// turned by half a circle. `geo` is the forward convolution.
pub fn pack_conv_flipped(isa: Isa, geo: &ConvGeometry, w: &[f32], packed: &mut [f32]) {
    geo.check();
    assert_eq!(w.len(), geo.taps() * geo.co, "weights of a convolution");
    assert_eq!(packed.len(), packed_flipped_len(isa, geo), "flipped weights of a convolution");
    let window = geo.kh * geo.kw;
    pack_panels(isa.table(), geo.ci, window * geo.co, packed, |channel, column| {
        for (o, filter) in w.chunks_exact(geo.taps()).enumerate() {
            for (tap, &weight) in filter[channel * window..][..window].iter().rev().enumerate() {
                column.set(tap * geo.co + o, weight);
            }
        }
    });
}

/// One channel of a panel.
struct Column<'a> {
    panel: &'a mut [f32],
    lane: usize,
    width: usize,
}

impl Column<'_> {
    fn set(&mut self, row: usize, value: f32) {
        self.panel[row * self.width + self.lane] = value;
    }
}

fn pack_panels(
    table: &'static Table,
    channels: usize,
    rows: usize,
    packed: &mut [f32],
    fill: impl Fn(usize, &mut Column<'_>),
) {
    for p in table.panels(channels) {
        let panel = &mut packed[rows * p.start..][..rows * p.padded];
        if p.is_partial() {
            panel.fill(0.0);
        }
        for lane in 0..p.channels {
            fill(p.start + lane, &mut Column { panel: &mut *panel, lane, width: p.padded });
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
