//! Bytes that no log may show.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Private bytes; their `Debug` form is their length. Copies share their memory.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Secret(Arc<Vec<u8>>);

impl Secret {
    /// Takes `bytes` as private.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
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
