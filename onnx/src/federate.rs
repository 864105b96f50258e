//! Networks that are brought along: from a file to something that a host and its boards train, the same on both sides.
use crate::export::{ExportError, write};
use crate::import::{ImportError, import};
use crate::network::{Network, NetworkError};
use models::id::Hash;
use models::nn::{Graph, arch};
use models::params::{ModelCard, ModelSpec, Params, SpecError};
use models::wire::NETWORK_CAP;
use std::sync::Arc;

/// Why a network can't be federated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The file can't be read as a network that trains.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The network is not one that trains.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Its parameters can't be laid out.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It can't be written as boards will read it.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// There is no fully connected layer.
    #[error(
        "the network has no fully connected layer, and a head must be one; put one (`Linear`, exported as Gemm) at its end"
    )]
    NoHead,
    /// Another layer is the head.
    #[error(
        "{asked:?} can't be the head: the last fully connected layer is {last:?}, and only that can be kept private by each board; say --head {last}"
    )]
    NotLast {
        /// What was asked for.
        asked: String,
        /// The last fully connected layer.
        last: String,
    },
    /// The head does not answer.
    #[error("node {node} ({op}) follows the head {head:?}; only a softmax and its logarithm may")]
    NotLogits {
        /// What follows.
        node: String,
        /// Its operation.
        op: String,
        /// The head.
        head: String,
    },
    /// It would not travel.
    #[error("the network's file has {got} bytes, at most {max} travel to a board; make the network smaller")]
    TooLarge {
        /// Its bytes.
        got: usize,
        /// The most.
        max: usize,
    },
    /// The file is missing, or another one.
    #[error("the network's file is {got}, but the model is {expected}; fetch it from the host again")]
    File {
        /// The hash that the card names.
        expected: Hash,
        /// What there is.
        got: String,
    },
}

/// A network that can be trained.
#[derive(Clone, Debug)]
pub struct Built {
    /// How it is computed.
    pub graph: Arc<Graph>,
    /// Its table of contents.
    pub spec: Arc<ModelSpec>,
    /// The weights that it came with, if it was brought along.
    pub start: Option<Params>,
}

/// Reads a file, checks that `head` is its last fully connected layer and gives the form in which the network travels: up to
/// its logits, in Spectra's own spelling, the same bytes for the same network.
///
/// # Errors
/// [`BuildError`].
pub fn bring(bytes: &[u8], head: &str) -> Result<(Network, Vec<u8>), BuildError> {
    let network = import(bytes)?.logits()?;
    check_head(&network.graph, head)?;
    network.check_statistics()?;
    let travelling = write(&network)?;
    if travelling.len() > NETWORK_CAP {
        return Err(BuildError::TooLarge { got: travelling.len(), max: NETWORK_CAP });
    }
    Ok((network, travelling))
}

fn check_head(graph: &Graph, asked: &str) -> Result<(), BuildError> {
    let id = graph.head().ok_or(BuildError::NoHead)?;
    let head = &graph.node(id).name;
    if asked != head && asked.strip_suffix(".weight") != Some(head) {
        return Err(BuildError::NotLast { asked: asked.into(), last: head.clone() });
    }
    let answer = graph.node(graph.outputs()[0]);
    if answer.name != *head {
        let (node, op) = (answer.name.clone(), format!("{:?}", answer.op));
        return Err(BuildError::NotLogits { node, op, head: head.clone() });
    }
    Ok(())
}

/// The network of a card: a built-in one by its name, or the one in `file`, whose hash the card then names.
///
/// # Errors
/// [`BuildError`].
pub fn build(card: &ModelCard, file: Option<&[u8]>) -> Result<Built, BuildError> {
    let Some(expected) = card.imported() else {
        let (graph, spec) = arch::build(card)?;
        return Ok(Built { graph, spec, start: None });
    };
    let file = match file.map(|file| (file, Hash::of(file))) {
        Some((file, hash)) if hash == expected && file.len() <= NETWORK_CAP => file,
        Some((_, hash)) => return Err(BuildError::File { expected, got: hash.to_string() }),
        None => return Err(BuildError::File { expected, got: "missing".into() }),
    };
    let network = import(file)?;
    let spec = Arc::new(network.spec_of(card)?);
    let start = Some(Params::new(Arc::clone(&spec), network.values)?);
    Ok(Built { graph: Arc::new(network.graph), spec, start })
}
