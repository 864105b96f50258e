//! A board's answer as one ONNX file: its whole mixture, from standardised samples to log-probabilities.
mod compose;
mod writer;

pub(crate) use writer::{Value, Writer};

use crate::metadata::Role;
use crate::network::Network;
use models::fed::Ensemble;
use models::nn::{Graph, GraphError};

/// Why a model can't be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The conditioning vector can be folded into a linear layer only.
    #[error(
        "node {node} reads the conditioning vector, which can only be folded into the linear layer after a concatenation; move it there"
    )]
    Conditioning {
        /// The node.
        node: String,
    },
    /// The ensemble does not belong to the graph.
    #[error(
        "{what} has {got} values where the graph has {expected}; export it with the graph of its own specification"
    )]
    Mismatch {
        /// Which part.
        what: &'static str,
        /// What the graph says.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// Nobody would answer.
    #[error("the ensemble has no member with a share, or one whose stream is not there")]
    NoMember,
    /// The mixture is no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The whole of `ensemble` as an ONNX file, the same bytes for the same model.
///
/// Input `input` `[N, channels, height, width]`, standardised; output `log_probabilities` `[N, classes]` and, for a
/// specialist, `features` `[N, width]` of the first stream. Conditioning vectors are constants of a board and are
/// folded into the bias of the layer they feed: `W [x; s] + b = W_x x + (b + W_s s)`.
///
/// # Errors
/// [`ExportError`].
pub fn export(ensemble: &Ensemble, graph: &Graph, role: Role) -> Result<Vec<u8>, ExportError> {
    write(&compose::compose(ensemble, graph, role)?)
}

/// Any network as an ONNX file.
///
/// # Errors
/// [`ExportError`].
pub fn write(network: &Network) -> Result<Vec<u8>, ExportError> {
    let mut writer = Writer::new(network)?;
    for (index, node) in network.graph.nodes().iter().enumerate().skip(1) {
        let value = crate::op::export(&mut writer, node)?;
        writer.define(index, value);
    }
    Ok(writer.finish())
}
