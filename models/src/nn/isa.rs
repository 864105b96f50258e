//! The instruction set of this process: chosen once, before the first training step.
use crate::tensor::kernel::{Isa, IsaCap};
use std::sync::OnceLock;

static CHOSEN: OnceLock<Isa> = OnceLock::new();

/// The instruction set that all networks of this process use: the best of this CPU, unless [`cap_isa`] came first.
pub fn isa() -> Isa {
    *CHOSEN.get_or_init(Isa::detect)
}

/// Caps the instruction set. Only the first choice counts; returns what is in force.
pub fn cap_isa(cap: IsaCap) -> Isa {
    *CHOSEN.get_or_init(|| Isa::detect_capped(Some(cap)))
}
