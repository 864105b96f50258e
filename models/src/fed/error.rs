//! What can go wrong in a method.
use crate::id::ClientId;
use crate::nn::TrainError;
use crate::params::SpecError;

/// Why a step of a method failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FedError {
    /// Nobody replied, or nothing with a weight.
    #[error("no update with a weight came in")]
    EmptyCohort,
    /// A reply can't be read back.
    #[error("the update of client {client} can't be read: {why}")]
    Reply {
        /// Whose.
        client: ClientId,
        /// What is wrong.
        why: String,
    },
    /// The method needs auxiliary data and the host has none.
    #[error(
        "{method} needs auxiliary data on the host: give `--aux DIR`, or choose a method without a teacher"
    )]
    NoAuxiliary {
        /// The method.
        method: &'static str,
    },
    /// The host named parts that the method doesn't use this way.
    #[error("{method} expects {expected} shared parts, {got} came")]
    Parts {
        /// The method.
        method: &'static str,
        /// How many.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// The client has no model yet.
    #[error("this board has no model yet: it must first take part in a round or receive one")]
    NoModel,
    /// No method has this name.
    #[error("no method is called {name:?}; there are {known}")]
    UnknownMethod {
        /// What was asked.
        name: String,
        /// What there is.
        known: String,
    },
    /// State, task or hyper-parameters can't be decoded.
    #[error("{what} of {method} can't be decoded: {why}")]
    Decode {
        /// State, task or hyper-parameters.
        what: &'static str,
        /// The method.
        method: &'static str,
        /// Why.
        why: String,
    },
    /// A hyper-parameter is out of its range.
    #[error("{name} = {value}: {must}")]
    Hyper {
        /// The parameter.
        name: &'static str,
        /// What it was.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A part has the wrong shape.
    #[error(transparent)]
    Spec(#[from] SpecError),
}
