//! The arithmetic of training: convolutions, linear layers and the element-wise work between them, on `f32`, channel-last.
//!
//! Every kernel takes an [`Isa`], the instruction set that [`Isa::detect`] found once, and works on slices that it checks
//! before the first access; this folder is the only place of the crate with `unsafe`.
//!
//! # Planes
//! One sample is a plane `[row][column][channel]`. A convolution reads a plane whose zero border is already there, so that it
//! needs no edge cases; what it writes can go into the interior of the next bordered plane ([`ConvGeometry`] has the pitches).
//!
//! # Which bits
//! A result depends on the arguments and on the instruction set only: not on threads, not on how a batch is cut into
//! micro-batches (an element is always summed in the same order, whatever register tile computes it), and not on vector
//! width: AVX2, AVX-512 and NEON agree in every bit, and so do `generic` and SSE2, which round a product before they add it.
//! That order is term by term, but for the last one to eight output channels after whole blocks of sixteen, whose terms take turns
//! in two or four partial sums: so few channels would wait for their sums instead of multiplying. How many sums there are depends
//! on the number of channels alone. Weight gradients of linear layers are always summed sample by sample.
mod blocks;
mod conv;
mod depthwise;
mod dispatch;
mod geometry;
mod isa;
mod linear;
mod norm;
mod pack;
mod panel;
mod pointwise;
mod pool;
mod sums;
mod weight_grad;
mod winograd;

#[expect(unsafe_code, reason = "reads rows through pointers, within bounds that `Dot::fits` has checked")]
mod dot;
#[expect(unsafe_code, reason = "calls tiles, which need the detected CPU and checked bounds")]
mod table;
#[expect(unsafe_code, reason = "reads rows through pointers, within bounds that `Tile::fits` has checked")]
mod tile;

#[expect(unsafe_code, reason = "reads planes through pointers, within bounds that the table has checked")]
mod window;

#[expect(unsafe_code, reason = "runs vector instructions, which need the detected CPU")]
mod peak;
#[expect(unsafe_code, reason = "implements the vector trait, whose loads and stores take pointers")]
mod portable;
#[expect(unsafe_code, reason = "declares the vector trait, whose loads and stores take pointers")]
mod simd;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector intrinsics")]
mod x86;

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector intrinsics")]
mod neon;

#[cfg(test)]
mod tests;

pub use conv::{conv_forward, conv_input_grad, conv_input_grad_scatter};
pub use depthwise::{depthwise_forward, depthwise_scatter, depthwise_weight_grad};
pub use geometry::ConvGeometry;
pub use isa::{Isa, IsaCap, UnknownIsa};
pub use linear::{linear_forward, linear_input_grad, linear_weight_grad};
pub use norm::{BnBackward, bn_backward, scale_shift, scale_shift_relu};
pub use pack::{
    pack_conv, pack_conv_flipped, pack_winograd, pack_winograd_flipped, packed_flipped_len, packed_len,
    unpack_weight_grad,
};
pub use peak::multiply_adds;
pub use pointwise::{SgdStep, axpy, relu, relu_backward, sgd_momentum};
pub use pool::{POOL_CUT, PoolRow, bn_relu_max_pool2, bn_unpool2, relu_max_pool2, unpool2};
pub use sums::{add_channels, channel_sums, grad_sums, pool_channel_sums, pool_grad_sums, relu_grad_sums};
pub use weight_grad::conv_weight_grad;
pub use winograd::{
    WINOGRAD_PLANES, WinogradRows, winograd_grad, winograd_input, winograd_output, winograd_weight_grad,
    winograd_weights,
};
