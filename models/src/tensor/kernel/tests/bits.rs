//! The same bits on every machine: a checksum of what each kind of rounding gives.
use super::{fused, noise};
use crate::tensor::kernel::*;

const GEO: ConvGeometry = ConvGeometry {
    out_h: 5,
    out_w: 7,
    ci: 3,
    co: 21,
    kh: 3,
    kw: 3,
    stride_h: 1,
    stride_w: 1,
    pitch: 27,
    x_pixel: 3,
    y_pixel: 21,
};

/// FNV-1a over the bits of all floats.
fn checksum(parts: &[&[f32]]) -> u64 {
    let bits = parts.iter().flat_map(|part| part.iter()).map(|x| u64::from(x.to_bits()));
    bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ bits).wrapping_mul(0x0100_0000_01b3))
}

fn convolution(isa: Isa) -> u64 {
    let (x, w, dy) = (noise(1, GEO.plane_len(5)), noise(2, GEO.taps() * GEO.co), noise(3, 35 * GEO.co));
    let (mut packed, mut out) = (vec![0.0; packed_len(isa, &GEO)], vec![0.0; dy.len()]);
    let (mut flipped, mut dx) = (vec![0.0; packed_flipped_len(isa, &GEO)], vec![0.0; x.len()]);
    let mut dw = vec![0.0; w.len()];
    pack_conv(isa, &GEO, &w, &mut packed);
    pack_conv_flipped(isa, &GEO, &w, &mut flipped);
    conv_forward(isa, &GEO, 0..5, &x, &packed, None, &mut out, 7 * GEO.co);
    conv_weight_grad(isa, &GEO, &x, &dy, 7 * GEO.co, &mut dw);
    conv_input_grad_scatter(isa, &GEO, &dy, 7 * GEO.co, &flipped, &mut dx);
    checksum(&[&out, &dw, &dx])
}

fn linear(isa: Isa) -> u64 {
    let (n, k, o) = (6, 117, 13);
    let (x, w, dy) = (noise(4, n * k), noise(5, o * k), noise(6, n * o));
    let (mut out, mut dx, mut dw) = (vec![0.0; n * o], vec![0.0; n * k], vec![0.0; o * k]);
    linear_forward(isa, n, k, o, &x, &w, None, &mut out);
    linear_input_grad(isa, n, k, o, &dy, &w, &mut dx);
    linear_weight_grad(isa, n, k, o, &x, &dy, &mut dw);
    checksum(&[&out, &dx, &dw])
}

#[test]
fn a_result_has_the_same_bits_on_every_machine() {
    for isa in Isa::available() {
        let want = if fused(isa) {
            (15_917_223_991_241_239_591, 11_383_091_455_536_848_645)
        } else {
            (16_680_430_832_556_045_571, 15_756_551_153_523_085_970)
        };
        assert_eq!((convolution(isa), linear(isa)), want, "{isa:?}");
    }
}
