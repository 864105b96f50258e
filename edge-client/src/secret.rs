//! Bytes that no log may show.
use serde::{Deserialize, Serialize};
use std::fmt;

/// Private bytes; their `Debug` form is their length.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes `bytes` as private.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for those who must have them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}
