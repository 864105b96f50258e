//! Networks of which only the head trains. What lies below it is kept as it came, cut out of the file, and runs through
//! ONNX Runtime or tract; a host and its boards train the head on its features.
mod bring;
mod check;
mod cut;
mod extractor;
mod head;
mod join;
mod probe;

pub use extractor::{Extractor, FeatureSession};

pub(crate) use bring::{Split, bring, in_a_read_set, open};

use crate::import::ImportError;

/// Key of the metadata that names the value up to which a file is frozen.
const FROZEN: &str = "frozen";
/// Most numbers of one sample's features.
pub const MOST_FEATURES: usize = 1 << 14;
/// Operator sets of a part that is kept as it is: the few operators that Spectra adds mean the same in all of them.
const OPSETS: std::ops::RangeInclusive<i64> = 11..=25;

/// Why a network can't be used with what lies below its head kept as it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrozenError {
    /// No layer has that name.
    #[error("no fully connected layer is called {asked:?}; {known}")]
    NoHead {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// Several layers have that name.
    #[error("{asked:?} may be node {first} or node {second}; say --head with the node's own name")]
    TwoHeads {
        /// What was asked for.
        asked: String,
        /// The first layer.
        first: String,
        /// Another one.
        second: String,
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
    /// A constant can't be used.
    #[error("constant {name}: {why}; export the network again, into one file")]
    Constant {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// What follows the head, or the head itself, can't be trained.
    #[error("from the head {head:?} on everything must be trainable: {source}")]
    Above {
        /// The head.
        head: String,
        /// Why it is not.
        source: Box<ImportError>,
    },
    /// Something is larger than what would be run.
    #[error("it has {got} {what}, at most {max} are allowed; make the network smaller")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How many.
        got: usize,
        /// The most.
        max: usize,
    },
    /// Its operator set is too old or too new.
    #[error(
        "it uses operator set {got} (0: none is named); a frozen part may use {first} to {last}: export it with opset_version=17"
    )]
    Opset {
        /// What it uses.
        got: i64,
        /// The oldest.
        first: i64,
        /// The newest.
        last: i64,
    },
    /// No engine runs it.
    #[error(
        "no engine can run it: {why}; replace the operators named, or export the network with another opset_version"
    )]
    Engines {
        /// What each engine says.
        why: String,
    },
    /// An engine fails.
    #[error(transparent)]
    Engine(#[from] models::infer::RuntimeError),
    /// Its answer is no feature.
    #[error("{engine} gives features that {why}; {remedy}")]
    Features {
        /// The engine.
        engine: &'static str,
        /// What is wrong.
        why: String,
        /// What could be done.
        remedy: &'static str,
    },
    /// The file as a whole can't be used.
    #[error("the file can't be used: {why}; export the network again")]
    Damaged {
        /// What is wrong.
        why: String,
    },
}
