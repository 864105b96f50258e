//! Calibration of a head on the host's auxiliary data, backbone frozen (pFedKDH, methods §5; science §9.2 point 3: on the
//! global part only, never on a cluster part, whose view of the world the auxiliary data may not share).
use super::training::Training;
use super::{FedError, Site};
use crate::id::AUXILIARY;
use crate::nn::head::HeadJob;
use crate::nn::{Split, Trainer, head};
use crate::params::{Head, Params};
use crate::tensor::rng::Purpose;

/// The head of `model` after `epochs` head-only epochs on cached features of the auxiliary set (evaluation mode), warm start.
/// A convex problem: with small enough full-batch steps the loss falls at every step.
///
/// # Errors
/// [`FedError::Train`].
pub fn recalibrated(
    model: &Params,
    conditioning: &[f32],
    prior: Option<&[f32]>,
    train: Training,
    epochs: u32,
    site: Site,
    auxiliary: &mut dyn Trainer,
) -> Result<Head, FedError> {
    let features = auxiliary.features(&model.backbone(), conditioning, Split::Train)?;
    let order = Site { client: AUXILIARY, ..site }.key(Purpose::Calibrate);
    let job = HeadJob { prior, ..train.epochs(epochs).head_job(order) };
    Ok(head::fit(&features, &model.head(), &job)?)
}
