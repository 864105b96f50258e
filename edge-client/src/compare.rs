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
    /// A network trained here alone, with as many passes over the data.
    pub alone: f64,
    /// The personal model.
    pub specialist: f64,
    /// The shared model, if there is one beside it.
    pub generalist: Option<f64>,
}

impl Compared {
    /// Whether taking part helped, as far as so many samples can tell: beyond two standard errors of the difference.
    pub fn verdict(&self) -> &'static str {
        let gain = self.specialist - self.alone;
        let doubt = 2.0
            * (2.0 * self.alone.max(0.05) * (1.0 - self.alone).max(0.05) / self.samples.max(1) as f64).sqrt();
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
    predictor.generalist().map(|generalist| accuracy(generalist, trainer)).transpose()
}

/// Share of right answers on the samples held out.
fn accuracy(ensemble: &Ensemble, trainer: &mut dyn Trainer) -> Result<f64, FedError> {
    let streams = ensemble.streams.iter();
    let features = streams
        .map(|s| trainer.features(&s.backbone, &s.conditioning, Split::Validation))
        .collect::<Result<Vec<_>, _>>()?;
    let labels = &features[0].labels;
    let answers = ensemble.log_probabilities(&features);
    let classes = ensemble.spec.classes().max(1);
    let right =
        answers.chunks_exact(classes).zip(labels).filter(|(p, y)| models::fed::argmax(p) == usize::from(**y));
    Ok(right.count() as f64 / labels.len().max(1) as f64)
}
