//! What of a model a block of values covers: its part, and in it what was trained.
use crate::params::{Entry, Mask, ModelSpec, Part, Role, UpdateMode};
use serde::{Deserialize, Serialize};

/// How much of the model a block of values covers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Extent {
    /// The backbone.
    Backbone,
    /// The whole model.
    Model,
    /// A head (downlink only: a board's head has no way up by itself).
    Head,
}

impl Extent {
    /// Number of values of this extent.
    pub fn len(self, spec: &ModelSpec) -> usize {
        match self {
            Self::Backbone => spec.backbone_len(),
            Self::Model => spec.len(),
            Self::Head => spec.len() - spec.backbone_len(),
        }
    }

    /// Whether the entry belongs to it.
    pub fn has(self, entry: &Entry) -> bool {
        match self {
            Self::Model => true,
            Self::Backbone => entry.part == Part::Backbone,
            Self::Head => entry.part == Part::Head,
        }
    }
}

/// What a block of values covers: of an extent, that which an update mode trains. Both sides derive the entries from the specification.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Coverage {
    /// The part of the model.
    pub extent: Extent,
    /// What is trained of it.
    pub mode: UpdateMode,
}

impl From<Extent> for Coverage {
    /// All of it.
    fn from(extent: Extent) -> Self {
        Self { extent, mode: UpdateMode::Full }
    }
}

impl Coverage {
    /// The entries covered.
    pub fn mask(self, spec: &ModelSpec) -> Mask {
        self.mode.covers(spec).and(&Mask::of(spec, |e| self.extent.has(e)))
    }

    /// Whether the entry of this name is covered.
    pub fn has(self, spec: &ModelSpec, name: &str) -> bool {
        let at = spec.entries().iter().position(|e| e.name == name);
        at.is_some_and(|index| self.mask(spec).has(index))
    }

    /// Whether there can be an update of this: one of everything, or the model has as many layers as are spoken of and something that is
    /// trained is covered.
    pub fn is_possible(self, spec: &ModelSpec) -> bool {
        let trained = || Mask::of(spec, |e| e.role == Role::Trainable);
        self.mode == UpdateMode::Full || self.mode.suits(spec) && !self.mask(spec).and(&trained()).is_empty()
    }
}
