//! Weighted averaging of updates (FedAvg, methods §7.1): `w ← w + Σ_i (n_i / Σ_j n_j) Δ_i`.
use super::{FedError, Replies, Update};
use crate::id::ClientId;
use crate::params::{Accumulator, Delta, Role, Scope, Values, Weight};

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
/// Opaque entries (counters) keep the base's bits.
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
    let mut sum = Accumulator::new(base.values().len());
    for id in replies.ids().to_vec() {
        replies.visit(id, &mut |reply| {
            if let Some(up) = update(reply) {
                sum.add(&up.delta, weigh(id, up.samples));
            }
        })?;
    }
    if let Some(Node { id, update }) = own {
        sum.add(&update.delta, weigh(id, update.samples));
    }
    Ok(sum.mean(base).map(|mean| base.plus(&transparent(mean), 1.0)))
}

/// The mean without opaque entries.
fn transparent<S: Scope>(mut mean: Delta<S>) -> Delta<S> {
    let spec = mean.spec().clone();
    let scope = S::range(&spec);
    let opaque = |e: &&crate::params::Entry| e.role == Role::Opaque && scope.contains(&e.range.start);
    for entry in spec.entries().iter().filter(opaque) {
        mean.0.values_mut()[entry.range.start - scope.start..entry.range.end - scope.start].fill(0.0);
    }
    mean
}
