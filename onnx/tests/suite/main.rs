//! Integration tests of the crate, in one program: engines are large to link.
mod agreement;
mod common;
mod elsewhere;
mod engines;
mod hostile;
mod interchange;
