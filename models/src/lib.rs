//! The pure core of Spectra: no I/O, no clock, no ambient randomness. Time, seeds, thread pools and trainers are arguments.
//!
//! Imports point left only: `tensor ◀ params ◀ nn ◀ stats ◀ fed ◀ { infer, wire ◀ round }`; `id` is below all of them.
pub mod data;
pub mod fed;
pub mod id;
pub mod infer;
pub mod nn;
pub mod params;
pub mod round;
pub mod stats;
pub mod tensor;
pub mod wire;
