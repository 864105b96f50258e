//! The table of contents of a model, agreed by all parties and named by its hash.
use crate::id::Hash;
use crate::tensor::Shape;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where an entry belongs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Part {
    /// The shared feature extractor.
    Backbone,
    /// The last linear layer.
    Head,
}

/// What an entry is for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Role {
    /// A weight or a bias: trained by gradient.
    Trainable,
    /// A running statistic: updated by the forward pass, averaged like weights.
    Statistic,
    /// Anything else (counters): travels bit-exact and is never averaged.
    Opaque,
}

/// One named array of a model.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// Name, unique in the model: `conv1.weight`.
    pub name: String,
    /// Extents, in the layout that PyTorch and ONNX use (`[out, in, kh, kw]`, `[out, in]`).
    pub shape: Shape,
    /// Backbone or head.
    pub part: Part,
    /// Trainable, statistic or opaque.
    pub role: Role,
    /// Place in the flat buffer.
    pub range: Range<usize>,
}

impl Entry {
    /// The layer it belongs to: its name up to the last dot.
    pub fn layer(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(layer, _)| layer)
    }
}

/// An entry before it has a place.
#[derive(Clone, Debug)]
pub struct EntryDecl {
    /// Name, unique in the model.
    pub name: String,
    /// Extents.
    pub shape: Shape,
    /// Backbone or head.
    pub part: Part,
    /// Trainable, statistic or opaque.
    pub role: Role,
}

/// How a raw sample in [0, 1] becomes the network's input: `(x − mean) / std` per channel.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Preprocessing {
    /// Mean per channel.
    pub mean: Vec<f32>,
    /// Standard deviation per channel.
    pub std: Vec<f32>,
}

impl Preprocessing {
    /// Leaves samples as they are.
    pub fn none(channels: usize) -> Self {
        Self { mean: vec![0.0; channels], std: vec![1.0; channels] }
    }

    /// Standardises one channel-first sample in place.
    pub fn apply(&self, sample: &mut [f32]) {
        let plane = sample.len() / self.mean.len().max(1);
        for ((channel, mean), std) in sample.chunks_exact_mut(plane.max(1)).zip(&self.mean).zip(&self.std) {
            channel.iter_mut().for_each(|x| *x = (*x - mean) / std);
        }
    }
}

/// What the name of an architecture begins with that was brought along; the hash of its file follows.
const IMPORTED: &str = "onnx:";

/// Everything needed to build a network: what travels, and what is hashed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ModelCard {
    /// Name of the architecture; `onnx:` and the SHA-256 of a file, if the network was brought along.
    pub arch: String,
    /// Channels, height, width of the input.
    pub input: [usize; 3],
    /// Name of each class, in the order of the outputs.
    pub labels: Vec<String>,
    /// Width of the conditioning vector (the client's statistics); 0 when there is none.
    pub statistics: usize,
    /// What is done to a sample before the network sees it.
    pub preprocessing: Preprocessing,
}

impl ModelCard {
    /// The name of the architecture that is in the file with this hash.
    pub fn arch_of(file: Hash) -> String {
        format!("{IMPORTED}{file}")
    }

    /// The hash of the network's file, if it was brought along.
    pub fn imported(&self) -> Option<Hash> {
        Hash::from_hex(self.arch.strip_prefix(IMPORTED)?)
    }
}

/// The table of contents of a model.
#[derive(Debug)]
pub struct ModelSpec {
    card: ModelCard,
    entries: Vec<Entry>,
    backbone_len: usize,
    hash: Hash,
}

impl PartialEq for ModelSpec {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// Why bytes or values are not a model of this specification.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The buffer has another length.
    #[error("{scope}: {got} values, but the model has {expected}")]
    WrongLength {
        /// Which scope.
        scope: &'static str,
        /// What the specification says.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// A value is NaN or infinite.
    #[error("entry {entry} holds a value that is not finite")]
    NotFinite {
        /// Its entry.
        entry: String,
    },
    /// Two entries share a name.
    #[error("entry {name} appears twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// No architecture has this name.
    #[error("no architecture is called {name:?}; there are {known}")]
    UnknownArch {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The architecture can't take this input.
    #[error("{arch} needs {needs}, but the input is {got}")]
    Unsuitable {
        /// The architecture.
        arch: String,
        /// What it needs.
        needs: String,
        /// What was asked.
        got: String,
    },
}

impl ModelSpec {
    /// Gives every entry its place: the backbone's first, then the head's, each in the order declared.
    ///
    /// # Errors
    /// [`SpecError::Duplicate`].
    pub fn new(card: ModelCard, declared: Vec<EntryDecl>) -> Result<Self, SpecError> {
        let (backbone, head): (Vec<_>, Vec<_>) = declared.into_iter().partition(|e| e.part == Part::Backbone);
        let mut entries: Vec<Entry> = Vec::with_capacity(backbone.len() + head.len());
        let mut at = 0;
        for EntryDecl { name, shape, part, role } in backbone.into_iter().chain(head) {
            if entries.iter().any(|e| e.name == name) {
                return Err(SpecError::Duplicate { name });
            }
            let range = at..at + shape.len();
            at = range.end;
            entries.push(Entry { name, shape, part, role, range });
        }
        let backbone_len = entries.iter().filter(|e| e.part == Part::Backbone).map(|e| e.range.len()).sum();
        let identity = postcard::to_stdvec(&(&card, &entries)).unwrap_or_default();
        Ok(Self { card, entries, backbone_len, hash: Hash::of(&identity) })
    }

    /// What the network was built from.
    pub fn card(&self) -> &ModelCard {
        &self.card
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.card.labels.len()
    }

    /// All entries, in buffer order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// The entry that holds the value at `index` of the flat buffer.
    ///
    /// # Panics
    /// If `index` is not in the buffer.
    pub fn entry_at(&self, index: usize) -> &Entry {
        &self.entries[self.entries.partition_point(|e| e.range.end <= index)]
    }

    /// Values in all.
    pub fn len(&self) -> usize {
        self.entries.last().map_or(0, |e| e.range.end)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of the backbone.
    pub fn backbone_len(&self) -> usize {
        self.backbone_len
    }

    /// The last shared weight matrix: the projection whose output is the feature (paper: projection layer).
    pub fn projection(&self) -> Option<&Entry> {
        self.entries
            .iter()
            .rev()
            .find(|e| e.part == Part::Backbone && e.role == Role::Trainable && e.shape.rank() >= 2)
    }

    /// The head's weight matrix `[classes, features]`.
    pub fn head_weight(&self) -> Option<&Entry> {
        self.entries.iter().find(|e| e.part == Part::Head && e.shape.rank() == 2)
    }

    /// Width of the feature that the head reads.
    pub fn features(&self) -> usize {
        self.head_weight().map_or(0, |e| e.shape.extents()[1])
    }

    /// Identity of the specification.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}
