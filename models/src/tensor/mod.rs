//! Dense `f32` arrays, keyed random streams, and the kernels that training stands on.
pub mod kernel;
pub mod rng;
mod shape;

pub use shape::{Shape, Tensor, TensorView};
