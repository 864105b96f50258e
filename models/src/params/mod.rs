//! Named parameters: one flat `f32` buffer and its table of contents.
//!
//! The backbone's entries come first, then the head's, so that either is one slice. Scopes are types: a
//! [`Head`] is not a [`Backbone`], and only deltas of a backbone or of a whole model may ever leave a board.
mod algebra;
mod mask;
pub mod mode;
mod spec;

pub use algebra::{Accumulator, Weight};
pub use mask::Mask;
pub use mode::{UnknownMode, UpdateMode};
pub use spec::{Entry, EntryDecl, ModelCard, ModelSpec, Part, Preprocessing, Role, SpecError};

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Which part of a model a buffer holds.
pub trait Scope: Clone + Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Name in messages.
    const NAME: &'static str;
    /// The part's place in the flat buffer of the whole model.
    fn range(spec: &ModelSpec) -> Range<usize>;
}

/// The whole model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whole {}
/// Everything but the head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BackboneScope {}
/// The head alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadScope {}

impl Scope for Whole {
    const NAME: &'static str = "model";
    fn range(spec: &ModelSpec) -> Range<usize> {
        0..spec.len()
    }
}
impl Scope for BackboneScope {
    const NAME: &'static str = "backbone";
    fn range(spec: &ModelSpec) -> Range<usize> {
        0..spec.backbone_len()
    }
}
impl Scope for HeadScope {
    const NAME: &'static str = "head";
    fn range(spec: &ModelSpec) -> Range<usize> {
        spec.backbone_len()..spec.len()
    }
}

/// Values of one scope of a model. Copies share their memory until one of them is changed; so do a model and its backbone.
#[derive(Clone)]
pub struct Values<S: Scope> {
    spec: Arc<ModelSpec>,
    /// The scope's values, and in a backbone perhaps those of the head after them.
    shared: Arc<Vec<f32>>,
    scope: PhantomData<S>,
}

/// A whole model's values.
pub type Params = Values<Whole>;
/// A backbone's values.
pub type Backbone = Values<BackboneScope>;
/// A head's values. Has no form on the wire.
pub type Head = Values<HeadScope>;

/// A difference of two [`Values`] of one scope: what training changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta<S: Scope>(pub(crate) Values<S>);

impl<S: Scope> PartialEq for Values<S> {
    fn eq(&self, other: &Self) -> bool {
        self.spec.hash() == other.spec.hash() && self.values() == other.values()
    }
}

impl<S: Scope> Debug for Values<S> {
    /// Never prints the values: they may be private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({} values of {})", S::NAME, self.values().len(), self.spec.card().arch)
    }
}

impl<S: Scope> Values<S> {
    /// Takes `values` as this scope of `spec`.
    ///
    /// # Errors
    /// [`SpecError::WrongLength`], [`SpecError::NotFinite`] (with the entry's name).
    pub fn new(spec: Arc<ModelSpec>, values: Vec<f32>) -> Result<Self, SpecError> {
        let range = S::range(&spec);
        if values.len() != range.len() {
            return Err(SpecError::WrongLength { scope: S::NAME, expected: range.len(), got: values.len() });
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            return Err(SpecError::NotFinite { entry: spec.entry_at(range.start + at).name.clone() });
        }
        Ok(Self::of(spec, values))
    }

    /// `values` are as many as the scope has.
    fn of(spec: Arc<ModelSpec>, values: Vec<f32>) -> Self {
        Self { spec, shared: Arc::new(values), scope: PhantomData }
    }

    /// All zero.
    pub fn zeros(spec: &Arc<ModelSpec>) -> Self {
        let len = S::range(spec).len();
        Self::of(Arc::clone(spec), vec![0.0; len])
    }

    /// The table of contents.
    pub fn spec(&self) -> &Arc<ModelSpec> {
        &self.spec
    }

    /// The flat values.
    pub fn values(&self) -> &[f32] {
        &self.shared[..S::range(&self.spec).len()]
    }

    /// The flat values, to change. They must stay finite.
    pub fn values_mut(&mut self) -> &mut [f32] {
        if self.shared.len() > self.values().len() || Arc::get_mut(&mut self.shared).is_none() {
            self.shared = Arc::new(self.values().to_vec());
        }
        Arc::get_mut(&mut self.shared).expect("what is shared has just been copied")
    }

    /// The values alone.
    pub fn into_values(self) -> Vec<f32> {
        let len = self.values().len();
        let mut values = Arc::unwrap_or_clone(self.shared);
        values.truncate(len);
        values
    }

    /// The values of one entry, if it lies in this scope.
    pub fn entry(&self, name: &str) -> Option<&[f32]> {
        let scope = S::range(&self.spec);
        let range = &self.spec.entry(name)?.range;
        (range.start >= scope.start && range.end <= scope.end)
            .then(|| &self.values()[range.start - scope.start..range.end - scope.start])
    }
}

impl Params {
    /// Puts the two parts together.
    pub fn join(backbone: &Backbone, head: &Head) -> Self {
        let mut values = Vec::with_capacity(backbone.spec.len());
        values.extend_from_slice(backbone.values());
        values.extend_from_slice(head.values());
        Self::of(Arc::clone(&backbone.spec), values)
    }

    /// The backbone; it shares this model's memory.
    pub fn backbone(&self) -> Backbone {
        Values { spec: Arc::clone(&self.spec), shared: Arc::clone(&self.shared), scope: PhantomData }
    }

    /// A copy of the head.
    pub fn head(&self) -> Head {
        Values::of(Arc::clone(&self.spec), self.values()[self.spec.backbone_len()..].to_vec())
    }
}

impl<S: Scope> Delta<S> {
    /// Takes `values` as a change of this scope of `spec`; errors as [`Values::new`].
    ///
    /// # Errors
    /// [`SpecError::WrongLength`], [`SpecError::NotFinite`].
    pub fn new(spec: Arc<ModelSpec>, values: Vec<f32>) -> Result<Self, SpecError> {
        Values::new(spec, values).map(Self)
    }

    /// The flat values.
    pub fn values(&self) -> &[f32] {
        self.0.values()
    }

    /// The table of contents.
    pub fn spec(&self) -> &Arc<ModelSpec> {
        &self.0.spec
    }
}

#[cfg(test)]
mod tests;
