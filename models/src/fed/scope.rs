//! Scopes that a method may share: the backbone, or the whole model.
use super::{Either, Extent, Update};
use crate::params::{BackboneScope, Head, Params, Scope, Values, Whole};

/// A scope that is shared, and how it goes together with a head.
pub trait Shared: Scope {
    /// Its name on the wire.
    const EXTENT: Extent;
    /// This scope's update, if that is what came.
    fn update(up: &Either) -> Option<&Update<Self>>;
    /// As an update of either scope.
    fn wrap(up: Update<Self>) -> Either;
    /// This scope of a model.
    fn of(model: &Params) -> Values<Self>;
    /// A whole model from this scope; the head counts only where the scope has none.
    fn complete(shared: &Values<Self>, head: &Head) -> Params;
}

impl Shared for BackboneScope {
    const EXTENT: Extent = Extent::Backbone;
    fn update(up: &Either) -> Option<&Update<Self>> {
        if let Either::Backbone(update) = up { Some(update) } else { None }
    }
    fn wrap(up: Update<Self>) -> Either {
        Either::Backbone(up)
    }
    fn of(model: &Params) -> Values<Self> {
        model.backbone()
    }
    fn complete(shared: &Values<Self>, head: &Head) -> Params {
        Params::join(shared, head)
    }
}

impl Shared for Whole {
    const EXTENT: Extent = Extent::Model;
    fn update(up: &Either) -> Option<&Update<Self>> {
        if let Either::Model(update) = up { Some(update) } else { None }
    }
    fn wrap(up: Update<Self>) -> Either {
        Either::Model(up)
    }
    fn of(model: &Params) -> Values<Self> {
        model.clone()
    }
    fn complete(shared: &Values<Self>, _: &Head) -> Params {
        shared.clone()
    }
}
