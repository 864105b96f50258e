//! Integration tests of the crate, in one program: engines are large to link.
mod agreement;
mod board;
mod common;
mod elsewhere;
mod engines;
mod exports;
mod fnv;
#[cfg(feature = "tract")]
mod frozen;
mod hostile;
mod interchange;
mod own;
#[cfg(feature = "tract")]
mod unkept;
