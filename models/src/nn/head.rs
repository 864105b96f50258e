//! Head-only work on [`Features`]: everything that needs no pass through the backbone.
use super::optim::Sgd;
use super::{Features, LearningRate, TrainError};
use super::{isa, loss};
use crate::params::{Head, SpecError};
use crate::tensor::kernel as k;
use crate::tensor::rng::Key;

/// Training of a head on features that do not change.
#[derive(Clone, Copy, Debug)]
pub struct HeadJob<'a> {
    /// Passes over the features.
    pub epochs: u32,
    /// Rows per step; the last, smaller batch is kept.
    pub batch: usize,
    /// Step size.
    pub rate: LearningRate,
    /// Momentum; its state starts at zero with the job.
    pub momentum: f32,
    /// Key of the order of the rows; each epoch is one `step` of it.
    pub order: Key,
    /// Log prior r added to the logits (balanced softmax), one number per class.
    pub prior: Option<&'a [f32]>,
}

/// A head as the two arrays of a linear layer.
struct Linear<'a> {
    weight: &'a [f32],
    bias: &'a [f32],
}

impl<'a> Linear<'a> {
    /// The head's values are its weight `[classes, features]` and then its bias.
    fn of(head: &'a Head) -> Self {
        let (weight, bias) = head.values().split_at(head.spec().head_weight().map_or(0, |e| e.range.len()));
        Self { weight, bias }
    }

    fn classes(&self) -> usize {
        self.bias.len()
    }

    /// `W f + b` for each row.
    fn forward(&self, rows: &[f32], width: usize, out: &mut [f32]) {
        let n = out.len() / self.classes().max(1);
        k::linear_forward(isa(), n, width, self.classes(), rows, self.weight, Some(self.bias), out);
    }
}

/// Logits `[rows, classes]`.
pub fn logits(features: &Features, head: &Head) -> Vec<f32> {
    let linear = Linear::of(head);
    let mut out = vec![0.0; features.len() * linear.classes()];
    linear.forward(&features.values, features.width, &mut out);
    out
}

/// Class probabilities `[rows, classes]`.
pub fn probabilities(features: &Features, head: &Head) -> Vec<f32> {
    let mut out = logits(features, head);
    out.chunks_exact_mut(head.spec().classes().max(1)).for_each(loss::softmax);
    out
}

/// Mean cross-entropy; 0 without a row.
pub fn cross_entropy(features: &Features, head: &Head) -> f64 {
    let (z, classes) = (logits(features, head), head.spec().classes().max(1));
    let rows = z.chunks_exact(classes).zip(&features.labels);
    let sum: f64 = rows.map(|(z, &y)| loss::log_sum_exp(z) - f64::from(z[usize::from(y)])).sum();
    sum / features.len().max(1) as f64
}

/// The head with `sign · r` added to its bias: a log prior folded in (+1) or taken out (−1).
///
/// `softmax(z + r)` is the posterior under class shares `exp r` of a head that was trained for equal shares.
#[must_use]
pub fn add_prior(head: &Head, log_prior: &[f32], sign: f32) -> Head {
    let mut moved = head.clone();
    let biases = head.spec().classes().min(moved.values().len());
    let from = moved.values().len() - biases;
    moved.values_mut()[from..].iter_mut().zip(log_prior).for_each(|(b, r)| *b += sign * r);
    moved
}

/// Trains a head: the same, bit for bit, as training the whole network with everything but the head frozen.
///
/// # Errors
/// [`TrainError::Diverged`]; [`TrainError::Spec`] if the features have another width.
pub fn fit(features: &Features, start: &Head, job: &HeadJob<'_>) -> Result<Head, TrainError> {
    fit_in_order(features, start, job, &|key, n| key.stream().permutation(n)).map(|(head, _)| head)
}

/// The same in an order that `shuffle` draws; also returns the mean loss over the last epoch.
pub(super) fn fit_in_order(
    features: &Features,
    start: &Head,
    job: &HeadJob<'_>,
    shuffle: &dyn Fn(Key, usize) -> Vec<usize>,
) -> Result<(Head, f64), TrainError> {
    check(features, start)?;
    let mut mean = 0.0;
    let mut head = start.clone();
    let mut velocity = vec![0.0; head.values().len()];
    let mut gradient = vec![0.0; head.values().len()];
    let sgd = Sgd { rate: job.rate.0, momentum: job.momentum, weight_decay: 0.0 };
    for epoch in 0..job.epochs {
        let order = shuffle(job.order.step(u64::from(epoch)), features.len());
        let mut sum = 0.0;
        for batch in order.chunks(job.batch.max(1)) {
            gradient.fill(0.0);
            let loss = batch_gradient(&features.select(batch), &head, job.prior, &mut gradient);
            if !loss.is_finite() {
                return Err(TrainError::Diverged { epoch });
            }
            sum += loss * batch.len() as f64;
            sgd.step(head.values_mut(), &mut velocity, &gradient);
        }
        mean = sum / features.len().max(1) as f64;
    }
    if head.values().iter().all(|v| v.is_finite()) {
        Ok((head, mean))
    } else {
        Err(TrainError::Diverged { epoch: job.epochs.saturating_sub(1) })
    }
}

fn check(features: &Features, head: &Head) -> Result<(), TrainError> {
    let width = head.spec().features();
    if features.is_empty() || features.width == width {
        return Ok(());
    }
    Err(SpecError::WrongLength { scope: "features", expected: width, got: features.width }.into())
}

/// Adds the gradient of the batch's mean loss; returns that loss.
fn batch_gradient(batch: &Features, head: &Head, prior: Option<&[f32]>, gradient: &mut [f32]) -> f64 {
    let (mut z, classes) = (logits(batch, head), head.spec().classes());
    let share = 1.0 / batch.len() as f64;
    let mut dz = vec![0.0; z.len()];
    let mut sum = 0.0;
    for ((z, dz), &label) in z.chunks_exact_mut(classes).zip(dz.chunks_exact_mut(classes)).zip(&batch.labels)
    {
        prior.into_iter().for_each(|r| z.iter_mut().zip(r).for_each(|(z, r)| *z += r));
        sum += loss::cross_entropy(z, usize::from(label), share, dz);
    }
    let (weight, bias) = gradient.split_at_mut(classes * batch.width);
    k::linear_weight_grad(isa(), batch.len(), batch.width, classes, &batch.values, &dz, weight);
    k::add_channels(isa(), &dz, bias);
    sum * share
}
