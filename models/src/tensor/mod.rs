//! Dense `f32` arrays, keyed random streams, and the kernels that training stands on.
pub mod kernel;
