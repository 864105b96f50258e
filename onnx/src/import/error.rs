//! Why a file is not read.
use crate::metadata::MetadataError;
use crate::proto::DecodeError;
use models::nn::GraphError;

/// Why a file is not read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The bytes are no ONNX file.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What it says about itself can't be used.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// Its operator set is too old or too new.
    #[error(
        "the file uses operator set {got} (0: none is named); sets {first} to {last} are read: export it again with opset_version=17"
    )]
    Opset {
        /// What it uses.
        got: i64,
        /// The oldest that is read.
        first: i64,
        /// The newest.
        last: i64,
    },
    /// Its inputs and outputs are not those of a classifier.
    #[error("the graph can't be used: {why}")]
    Interface {
        /// Why.
        why: String,
    },
    /// A constant can't be used.
    #[error("constant {name}: {why}")]
    Constant {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A node can't be used.
    #[error("node {node} ({op}): {why}; {remedy}")]
    Node {
        /// Its name.
        node: String,
        /// Its operator.
        op: String,
        /// Why.
        why: String,
        /// What could be done.
        remedy: String,
    },
    /// An operator that nobody here knows.
    #[error(
        "node {node}: operator {op} is not known to the native engine, which has {known}; replace it in the network, or run the file with --engine ort or tract"
    )]
    UnknownOperator {
        /// The node.
        node: String,
        /// Its operator, with its domain.
        op: String,
        /// Those that are known.
        known: String,
    },
    /// The network is larger than any that would be run.
    #[error("the network is too large: {what} would be {got}, at most {max} are allowed")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How much.
        got: usize,
        /// The most.
        max: usize,
    },
    /// The nodes make no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
