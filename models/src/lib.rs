//! The pure core of Spectra: no I/O, no clock, no ambient randomness. Time, seeds, thread pools and trainers are arguments.
pub mod tensor;
