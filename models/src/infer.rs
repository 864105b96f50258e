//! Running exported graphs: what an engine must offer, whoever implements it.
use crate::tensor::{Tensor, TensorView};

/// An engine that can run ONNX graphs.
pub trait Runtime: Send + Sync {
    /// `native`, `ort` or `tract`.
    fn name(&self) -> &'static str;
    /// The provider it runs on, as it says itself.
    fn provider(&self) -> String;
    /// Loads a graph.
    ///
    /// # Errors
    /// [`RuntimeError`].
    fn prepare(&self, onnx: &[u8]) -> Result<Box<dyn Session>, RuntimeError>;
}

/// A loaded graph.
pub trait Session: Send {
    /// Runs a batch of standardised inputs `[n, channels, height, width]`.
    ///
    /// # Errors
    /// [`RuntimeError`].
    fn run(&mut self, input: TensorView<'_>) -> Result<Outputs, RuntimeError>;
}

/// What a stream's graph gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// Log-probabilities `[n, classes]`.
    pub log_probabilities: Tensor,
    /// Features of the first backbone `[n, width]`, where the graph gives them.
    pub features: Option<Tensor>,
}

/// Why an engine can't.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The engine is not in this program or its library is not on this machine.
    #[error("engine {engine} is not available: {why}; {remedy}")]
    Missing {
        /// The engine.
        engine: &'static str,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The bytes are not a graph that it can run.
    #[error("{engine} can't load the graph: {why}")]
    Load {
        /// The engine.
        engine: &'static str,
        /// Why.
        why: String,
    },
    /// Running failed.
    #[error("{engine} failed: {why}")]
    Run {
        /// The engine.
        engine: &'static str,
        /// Why.
        why: String,
    },
}
