//! What this board has beside what it would have had alone: on samples of its own that nothing was trained on. Nothing of it leaves.
use crate::personal::{LearnError, Personal, Place};
use crate::train::Network;
use models::fed::local::{Client, Hyper, Local};
use models::fed::{Down, Ensemble, FedError, Method, Predictor, Site};
use models::id::RoundId;
use models::nn::{Split, Trainer, init};
use models::params::Params;
use std::sync::Arc;

/// Shares of right answers on the samples held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Samples held out.
    pub samples: usize,
    /// A network trained here alone, with as many passes over the data; nothing if no sample was held out.
    pub alone: Option<f64>,
    /// The personal model.
    pub specialist: Option<f64>,
    /// The shared model, if there is one beside it.
    pub generalist: Option<f64>,
}

impl Compared {
    /// Whether taking part helped, as far as so many samples can tell: beyond two standard errors of the difference.
    pub fn verdict(&self) -> &'static str {
        let (Some(specialist), Some(alone)) = (self.specialist, self.alone) else {
            return "no sample is held out: nothing can be compared";
        };
        let gain = specialist - alone;
        let doubt =
            2.0 * (2.0 * alone.max(0.05) * (1.0 - alone).max(0.05) / self.samples.max(1) as f64).sqrt();
        match () {
            () if gain > doubt => "federation helped this board",
            () if gain < -doubt => "federation did not help this board",
            () => "no difference that so few samples could show",
        }
    }
}

/// Trains alone with the budget that the board spent, from `start` or from random weights, and asks both on the samples
/// held out.
///
/// # Errors
/// [`LearnError`].
pub fn compare(
    personal: &Personal,
    network: &Network,
    at: &Place,
    trainer: &mut dyn Trainer,
    start: Option<Params>,
) -> Result<Compared, LearnError> {
    let (graph, spec) = network;
    let predictor = personal.predictor(spec)?;
    let site = Site { seed: personal.seed, round: RoundId(0), client: at.client };
    let hyper = Hyper { epochs: personal.epochs.max(1), ..Hyper::default() };
    let start = start.unwrap_or_else(|| init(graph, spec, personal.seed));
    let start: Arc<[f32]> = start.into_values().into();
    let down = Down { parts: vec![start], task: () };
    let client = Local::adopt(&hyper, &Client::default(), down, site, trainer)?;
    let alone = Local::predictor(&hyper, &Local::adapt(&hyper, &client, site, trainer)?, spec)?;
    Ok(Compared {
        samples: trainer.samples(Split::Validation),
        alone: accuracy(alone.specialist(), trainer)?,
        specialist: accuracy(predictor.specialist(), trainer)?,
        generalist: shared(&predictor, trainer)?,
    })
}

fn shared(predictor: &Predictor, trainer: &mut dyn Trainer) -> Result<Option<f64>, FedError> {
    match predictor.generalist() {
        Some(generalist) => accuracy(generalist, trainer),
        None => Ok(None),
    }
}

/// Share of right answers on the samples held out, if there are any.
fn accuracy(ensemble: &Ensemble, trainer: &mut dyn Trainer) -> Result<Option<f64>, FedError> {
    if trainer.samples(Split::Validation) == 0 {
        return Ok(None);
    }
    let streams = ensemble.streams.iter();
    let features = streams
        .map(|s| trainer.features(&s.backbone, &s.conditioning, Split::Validation))
        .collect::<Result<Vec<_>, _>>()?;
    let labels = &features[0].labels;
    let answers = ensemble.log_probabilities(&features);
    let classes = ensemble.spec.classes().max(1);
    let right =
        answers.chunks_exact(classes).zip(labels).filter(|(p, y)| models::fed::argmax(p) == usize::from(**y));
    Ok(Some(right.count() as f64 / labels.len().max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_samples_held_out_nothing_is_claimed() {
        let of = |samples, share| Compared { samples, alone: share, specialist: share, generalist: share };
        assert!(of(0, None).verdict().starts_with("no sample is held out"));
        let better = Compared { specialist: Some(0.9), ..of(1000, Some(0.5)) };
        assert_eq!(better.verdict(), "federation helped this board");
        assert_eq!(of(1000, Some(0.5)).verdict(), "no difference that so few samples could show");
    }
}
