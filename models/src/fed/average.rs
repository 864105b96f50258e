//! Weighted averaging of updates (FedAvg, methods §7.1): `w ← w + Σ_i (n_i / Σ_j n_j) Δ_i`.
use super::{FedError, Replies, Update};
use crate::id::ClientId;
use crate::params::{Accumulator, Mask, Role, Scope, Values, Weight};

/// One more node whose update the host made itself.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a, S: Scope> {
    /// Under which number it counts.
    pub id: ClientId,
    /// Its update.
    pub update: &'a Update<S>,
}

/// The n-weighted mean of all updates, as a change of `base`. Fixed point: the order of arrival can't show.
///
/// # Errors
/// [`FedError::EmptyCohort`] if nothing with a weight came in; whatever a reply's reading gives.
pub fn by_samples<S: Scope, U>(
    base: &Values<S>,
    replies: &mut dyn Replies<U>,
    update: impl Fn(&U) -> Option<&Update<S>>,
    own: Option<Node<'_, S>>,
) -> Result<Values<S>, FedError> {
    weighted(base, replies, update, own, |_, n| Weight::samples(n))?.ok_or(FedError::EmptyCohort)
}

/// `base` changed by the mean of all updates under `weigh(client, n_i)`; nothing if all weights are zero (FedPrism §4.5: a
/// cluster part that nobody is assigned to stays as it is).
///
/// Each entry is averaged over the updates that cover it; one that none covers keeps the base's bits, and so do opaque entries (counters).
///
/// # Errors
/// Whatever a reply's reading gives.
pub fn weighted<S: Scope, U>(
    base: &Values<S>,
    replies: &mut dyn Replies<U>,
    update: impl Fn(&U) -> Option<&Update<S>>,
    own: Option<Node<'_, S>>,
    weigh: impl Fn(ClientId, u32) -> Weight,
) -> Result<Option<Values<S>>, FedError> {
    let averaged = Mask::of(base.spec(), |e| e.role != Role::Opaque);
    let mut sum = Accumulator::new(base.spec());
    let mut add = |id, up: &Update<S>| {
        sum.add(&up.delta, weigh(id, up.samples), &up.mode.covers(up.delta.spec()).and(&averaged));
    };
    for id in replies.ids().to_vec() {
        replies.visit(id, &mut |reply| {
            update(reply).into_iter().for_each(|up| add(id, up));
        })?;
    }
    own.into_iter().for_each(|Node { id, update }| add(id, update));
    Ok(sum.mean().map(|mean| base.plus(&mean, 1.0)))
}
