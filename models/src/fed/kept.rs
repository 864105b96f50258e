//! Values as the side that owns them keeps them on its own disk.
use crate::params::{Entry, EntryDecl, ModelCard, ModelSpec, Scope, Values};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// Values that a state remembers. [`Values`] has no form in bytes; a state wraps it in this, and no
/// [`Uplink`](super::Uplink) can hold one.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<S: Scope>(pub Values<S>);

impl<S: Scope> Deref for Kept<S> {
    type Target = Values<S>;
    fn deref(&self) -> &Values<S> {
        &self.0
    }
}

impl<S: Scope> From<Values<S>> for Kept<S> {
    fn from(values: Values<S>) -> Self {
        Self(values)
    }
}

impl<S: Scope> Serialize for Kept<S> {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        let spec = self.0.spec();
        (spec.card(), spec.entries(), self.0.values()).serialize(to)
    }
}

impl<'de, S: Scope> Deserialize<'de> for Kept<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (card, entries, values) = <(ModelCard, Vec<Entry>, Vec<f32>)>::deserialize(from)?;
        let declare = |e: Entry| EntryDecl { name: e.name, shape: e.shape, part: e.part, role: e.role };
        let spec =
            ModelSpec::new(card, entries.into_iter().map(declare).collect()).map_err(D::Error::custom)?;
        Values::new(Arc::new(spec), values).map(Self).map_err(D::Error::custom)
    }
}
