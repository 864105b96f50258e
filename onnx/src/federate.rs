//! Networks that are brought along: from a file to something that a host and its boards train, the same on both sides.
use crate::export::{ExportError, write};
use crate::frozen::{self, Extractor, FrozenError};
use crate::import::{ImportError, import};
use crate::metadata::MetadataError;
use crate::network::{Network, NetworkError};
use crate::runtime::Options;
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
    /// Something below the head can't be trained, and can't be kept as it is either.
    #[error("{refused}. Nor can the part below the head be kept as it is: {source}")]
    Untrainable {
        /// Why it can't be trained.
        refused: Box<ImportError>,
        /// Why it can't be kept.
        source: Box<BuildError>,
    },
    /// A part that is kept as it is can't be used.
    #[error(transparent)]
    Frozen(#[from] FrozenError),
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
    /// How it is computed: from samples, or from the features of the extractor.
    pub graph: Arc<Graph>,
    /// Its table of contents.
    pub spec: Arc<ModelSpec>,
    /// The weights that it came with, if it was brought along.
    pub start: Option<Params>,
    /// The part below the head, if that is kept as it came.
    pub extractor: Option<Arc<Extractor>>,
}

/// A network that was brought along.
#[derive(Clone, Debug, PartialEq)]
pub struct Brought {
    /// What trains: all of it up to its logits, or its head.
    pub network: Network,
    /// The form in which it travels, the same bytes for the same network.
    pub file: Vec<u8>,
    /// The part below the head, if that is kept as it came.
    pub kept: Option<Kept>,
}

/// A part that is kept as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Why it can't be trained.
    pub refused: ImportError,
    /// It.
    pub extractor: Extractor,
    /// The engines of this machine that run it.
    pub engines: Vec<&'static str>,
}

impl Brought {
    /// What boards are told of it.
    ///
    /// # Errors
    /// [`MetadataError`] if what the file says about itself does not fit it.
    pub fn card(&self) -> Result<ModelCard, MetadataError> {
        let (graph, input) = (&self.network.graph, self.network.graph.input());
        let own = [input.channels, input.height, input.width];
        let input = self.kept.as_ref().map_or(own, |kept| kept.extractor.input());
        let classes = graph.outputs().first().map_or(0, |&id| graph.node(id).dims.len());
        let statistics = graph.statistics();
        let arch = ModelCard::arch_of(Hash::of(&self.file));
        Ok(ModelCard { arch, statistics, ..self.network.metadata.card(input, classes)? })
    }
}

/// Reads a file whose head, its last fully connected layer, is called `head`. All of it trains if all its operators are known
/// here, and it travels in Spectra's own spelling. Else what lies below the head is kept as it came, if an engine of this
/// machine runs it.
///
/// # Errors
/// [`BuildError`].
pub fn bring(bytes: &[u8], head: &str, options: &Options) -> Result<Brought, BuildError> {
    let brought = match import(bytes) {
        Ok(network) => whole(&network, head)?,
        // Whether all of it would train does not hang on the operator set: such a file is to be exported again, not kept.
        Err(opset @ ImportError::Opset { .. }) => match import(&frozen::in_a_read_set(bytes)?) {
            Ok(_) => return Err(opset.into()),
            Err(refused) => split(bytes, head, options, refused)?,
        },
        Err(refused) if may_be_kept(&refused) => split(bytes, head, options, refused)?,
        Err(refused) => return Err(refused.into()),
    };
    match brought.file.len() {
        got if got > NETWORK_CAP => Err(BuildError::TooLarge { got, max: NETWORK_CAP }),
        _ => Ok(brought),
    }
}

fn whole(network: &Network, head: &str) -> Result<Brought, BuildError> {
    let network = network.logits()?;
    check_head(&network.graph, head)?;
    network.check_statistics()?;
    Ok(Brought { file: write(&network)?, network, kept: None })
}

/// Whether the trouble is with what would be trained, not with the file.
fn may_be_kept(refused: &ImportError) -> bool {
    use ImportError::{Constant, Graph, Node, TooLarge, UnknownOperator};
    matches!(refused, Constant { .. } | Graph(_) | Node { .. } | TooLarge { .. } | UnknownOperator { .. })
}

fn split(bytes: &[u8], head: &str, options: &Options, refused: ImportError) -> Result<Brought, BuildError> {
    match frozen::bring(bytes, head, options) {
        Ok(frozen::Split { head: network, extractor, file, engines }) => {
            Ok(Brought { network, file, kept: Some(Kept { refused, extractor, engines }) })
        }
        Err(source) => Err(BuildError::Untrainable { refused: Box::new(refused), source: Box::new(source) }),
    }
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
        return Ok(Built { graph, spec, start: None, extractor: None });
    };
    let file = match file.map(|file| (file, Hash::of(file))) {
        Some((file, hash)) if hash == expected && file.len() <= NETWORK_CAP => file,
        Some((_, hash)) => return Err(BuildError::File { expected, got: hash.to_string() }),
        None => return Err(BuildError::File { expected, got: "missing".into() }),
    };
    let (network, spec, extractor) = match frozen::open(file, card)? {
        Some((head, spec, extractor)) => (head, spec, Some(Arc::new(extractor))),
        None => {
            let network = import(file)?;
            let spec = network.spec_of(card)?;
            (network, spec, None)
        }
    };
    let spec = Arc::new(spec);
    let start = Some(Params::new(Arc::clone(&spec), network.values)?);
    Ok(Built { graph: Arc::new(network.graph), spec, start, extractor })
}
