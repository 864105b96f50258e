//! Which entries a rule touches.
use super::{ModelSpec, Part, Role};
use std::ops::Range;

/// A choice of entries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mask(pub(super) Vec<bool>);

impl Mask {
    /// The entries for which `keep` holds.
    pub fn of(spec: &ModelSpec, keep: impl Fn(&super::Entry) -> bool) -> Self {
        Self(spec.entries().iter().map(keep).collect())
    }

    /// Everything trainable.
    pub fn all(spec: &ModelSpec) -> Self {
        Self::of(spec, |e| e.role == Role::Trainable)
    }

    /// The trainable entries of one part.
    pub fn part(spec: &ModelSpec, part: Part) -> Self {
        Self::of(spec, |e| e.role == Role::Trainable && e.part == part)
    }

    /// This choice without the entry of that name.
    #[must_use]
    pub fn without(mut self, spec: &ModelSpec, name: &str) -> Self {
        for (kept, entry) in self.0.iter_mut().zip(spec.entries()) {
            *kept &= entry.name != name;
        }
        self
    }

    /// What both choose.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| *a && *b).collect())
    }

    /// Whether `other` chooses all of this as well.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| !a || *b)
    }

    /// This choice and, of every layer of which it has something, what isn't trained by gradient.
    pub(super) fn with_statistics(self, spec: &ModelSpec) -> Self {
        let chosen: Vec<&str> =
            spec.entries().iter().zip(&self.0).filter(|(_, kept)| **kept).map(|(e, _)| e.layer()).collect();
        let more = |e: &super::Entry| e.role != Role::Trainable && chosen.contains(&e.layer());
        Self(spec.entries().iter().zip(&self.0).map(|(e, kept)| *kept || more(e)).collect())
    }

    /// Whether the entry at `index` (in the specification's order) is chosen.
    pub fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }

    /// Numbers in the chosen entries.
    pub fn count(&self, spec: &ModelSpec) -> usize {
        self.ranges(spec).map(|range| range.len()).sum()
    }

    /// Whether nothing is chosen.
    pub fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    /// The chosen places of the flat buffer.
    pub fn ranges<'a>(&'a self, spec: &'a ModelSpec) -> impl Iterator<Item = Range<usize>> + 'a {
        spec.entries().iter().zip(&self.0).filter(|(_, kept)| **kept).map(|(e, _)| e.range.clone())
    }
}
