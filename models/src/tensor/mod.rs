//! Dense `f32` arrays, keyed random streams, and the kernels that training stands on.
mod aligned;
pub mod kernel;
pub mod rng;
mod shape;

pub use aligned::Aligned;
pub use shape::{Shape, Tensor, TensorView};
