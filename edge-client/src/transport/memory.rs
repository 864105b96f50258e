//! A host in the same process: for tests and simulations.
use super::{Call, CallError, Transport};

/// Answers calls by a function.
pub struct Memory<F>(pub F);

impl<F> std::fmt::Debug for Memory<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

impl<F: FnMut(Call<'_>) -> Result<Vec<u8>, CallError>> Transport for Memory<F> {
    fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, CallError> {
        (self.0)(call)
    }

    fn host(&self) -> String {
        "memory".into()
    }
}
