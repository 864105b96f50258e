//! The host's auxiliary data as one more node of the federation (science §3.5: worth two to five points).
use super::training::Training;
use super::{FedError, Host, Site};
use crate::id::AUXILIARY;
use crate::nn::{Loss, Trained, Trainer};
use crate::params::{Mask, Params};
use crate::tensor::rng::Purpose;

/// Trains `start` on the auxiliary set as a board would for a round, under the number [`AUXILIARY`].
///
/// # Errors
/// [`FedError::Train`].
pub fn trained(
    start: &Params,
    train: Training,
    prior: Option<&[f32]>,
    conditioning: &[f32],
    site: Site,
    node: &mut dyn Trainer,
) -> Result<Trained, FedError> {
    let everything = Mask::all(node.spec());
    let order = Site { client: AUXILIARY, ..site }.key(Purpose::Batches);
    let job = train.job(&everything, order, Loss { prior, ..Loss::default() }, conditioning);
    Ok(node.train(start, &job)?)
}

/// The auxiliary set of a host that must have one.
///
/// # Errors
/// [`FedError::NoAuxiliary`].
pub fn required<'a>(host: &'a mut dyn Host, method: &'static str) -> Result<&'a mut dyn Trainer, FedError> {
    host.auxiliary().ok_or(FedError::NoAuxiliary { method })
}
