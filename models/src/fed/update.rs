//! What may leave a board at all.
use super::{Coverage, Disclosure, Extent, FedError};
use crate::params::{BackboneScope, Delta, ModelSpec, Scope, UpdateMode, Whole};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which of the shared starting points local training began from. One bit, needed to read a prototype off a delta.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Start {
    /// The global part.
    #[default]
    Global,
    /// The board's mix of cluster parts.
    Mix,
}

/// The flat form in which every update crosses the wire; built only by the types of this file.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    coverage: Coverage,
    values: Vec<f32>,
    samples: u32,
    start: Start,
    prototype: Vec<f32>,
}

impl Outgoing {
    /// What it covers.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }
    /// The changes of the whole extent. Only what is covered says anything, and only that is sent.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
    /// Training samples behind it.
    pub fn samples(&self) -> u32 {
        self.samples
    }
    /// Where training started.
    pub fn start(&self) -> Start {
        self.start
    }
    /// Final-layer weights, where the method sends them.
    pub fn prototype(&self) -> &[f32] {
        &self.prototype
    }

    /// Rebuilds it from what crossed the wire. The decoder has checked lengths, finiteness and the weight.
    pub fn from_wire(
        coverage: impl Into<Coverage>,
        values: Vec<f32>,
        samples: u32,
        start: Start,
        prototype: Vec<f32>,
    ) -> Self {
        Self { coverage: coverage.into(), values, samples, start, prototype }
    }

    /// The update of a board that trained in this mode. A prototype goes only with the layer that it was read from.
    #[must_use]
    pub(super) fn trained_in(mut self, mode: UpdateMode, spec: &ModelSpec) -> Self {
        self.coverage = Coverage { mode, ..self.coverage };
        if !spec.head_weight().is_some_and(|e| Coverage { mode, extent: Extent::Model }.has(spec, &e.name)) {
            self.prototype.clear();
        }
        self
    }
}

/// A change of a shared part, with its weight: all that an ordinary method sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<S: Scope> {
    /// End minus start of local training.
    pub delta: Delta<S>,
    /// How the board trained, and so which entries of the scope the change speaks of.
    pub mode: UpdateMode,
    /// Training samples behind it (n_i).
    pub samples: u32,
    /// Where training started.
    pub start: Start,
    /// The final layer's weights, flattened (FedPrism's h_i); empty where the method doesn't send them.
    pub prototype: Vec<f32>,
}

impl<S: Scope> Update<S> {
    /// An update of the whole scope, without extras.
    pub fn new(delta: Delta<S>, samples: u32) -> Self {
        Self { delta, mode: UpdateMode::Full, samples, start: Start::Global, prototype: Vec::new() }
    }

    /// Whether it speaks of the model's entry of this name.
    pub fn covers(&self, entry: &str) -> bool {
        Coverage { extent: Extent::Model, mode: self.mode }.has(self.delta.spec(), entry)
    }
}

/// An update of either extent, for a method whose profile decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Either {
    /// Backbone only.
    Backbone(Update<BackboneScope>),
    /// The whole model.
    Model(Update<Whole>),
}

/// An update that says nothing: a zero change of weight one, whatever the board holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Silent(Delta<BackboneScope>);

impl Silent {
    /// Nothing, in the shape of `spec`.
    pub fn new(spec: &Arc<ModelSpec>) -> Self {
        Self(Delta(crate::params::Backbone::zeros(spec)))
    }
}

/// What has a way off the board. Sealed: a head, a client's state or a statistic can't be given one.
///
/// ```compile_fail
/// fn leaves_the_board<U: models::fed::Uplink>(_: U) {}
/// fn try_it(head: models::params::Head) { leaves_the_board(head) }
/// ```
pub trait Uplink: sealed::Sealed + Clone + std::fmt::Debug + Send + Sync + Sized + 'static {
    /// What sending it discloses.
    fn discloses(&self) -> Disclosure;
    /// Its flat form.
    fn into_outgoing(self) -> Outgoing;
    /// From the flat form.
    ///
    /// # Errors
    /// [`FedError::Spec`] if it is not of this specification.
    fn from_outgoing(flat: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Self, FedError>;
}

mod sealed {
    use crate::params::{BackboneScope, Whole};
    pub trait Sealed {}
    impl Sealed for super::Update<BackboneScope> {}
    impl Sealed for super::Update<Whole> {}
    impl Sealed for super::Either {}
    impl Sealed for super::Silent {}
}

fn flat<S: Scope>(update: Update<S>, extent: Extent) -> Outgoing {
    let Update { delta, mode, samples, start, prototype } = update;
    Outgoing { coverage: Coverage { extent, mode }, values: delta.0.into_values(), samples, start, prototype }
}

fn typed<S: Scope>(flat: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Update<S>, FedError> {
    let delta = Delta::new(Arc::clone(spec), flat.values.clone())?;
    let (mode, prototype) = (flat.coverage.mode, flat.prototype.clone());
    Ok(Update { delta, mode, samples: flat.samples, start: flat.start, prototype })
}

impl Uplink for Update<BackboneScope> {
    fn discloses(&self) -> Disclosure {
        Disclosure::Backbone
    }
    fn into_outgoing(self) -> Outgoing {
        flat(self, Extent::Backbone)
    }
    fn from_outgoing(flat: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        typed(flat, spec)
    }
}

impl Uplink for Update<Whole> {
    fn discloses(&self) -> Disclosure {
        Disclosure::FullModel
    }
    fn into_outgoing(self) -> Outgoing {
        flat(self, Extent::Model)
    }
    fn from_outgoing(flat: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        typed(flat, spec)
    }
}

impl Uplink for Either {
    fn discloses(&self) -> Disclosure {
        match self {
            Self::Backbone(update) => update.discloses(),
            Self::Model(update) => update.discloses(),
        }
    }
    fn into_outgoing(self) -> Outgoing {
        match self {
            Self::Backbone(update) => update.into_outgoing(),
            Self::Model(update) => update.into_outgoing(),
        }
    }
    fn from_outgoing(flat: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        match flat.coverage.extent {
            Extent::Backbone => typed(flat, spec).map(Self::Backbone),
            Extent::Model | Extent::Head => typed(flat, spec).map(Self::Model),
        }
    }
}

impl Uplink for Silent {
    fn discloses(&self) -> Disclosure {
        Disclosure::Nothing
    }
    fn into_outgoing(self) -> Outgoing {
        flat(Update::new(self.0, 1), Extent::Backbone)
    }
    fn from_outgoing(_: &Outgoing, spec: &Arc<ModelSpec>) -> Result<Self, FedError> {
        Ok(Self::new(spec))
    }
}
