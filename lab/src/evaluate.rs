//! What boards' answers are worth on their test images.
use crate::measure::{accuracy, auroc, balanced, mean};
use crate::world::Board;
use models::data::Samples;
use models::fed::{Decider, Extractor, Predictor, Routed, Router, Stream, argmax};
use models::nn::TrainError;
use models::params::Preprocessing;
use models::tensor::TensorView;

/// Temperature of FedPrism's own router (methods §4.6).
const FEDPRISM_TEMPERATURE: f32 = 1.0;

/// Two duties: right on what the board knows, sensible on what it has never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Duties {
    /// Accuracy on its own test images.
    pub own: Option<f64>,
    /// Accuracy on the classes it has no training image of; nothing if it has every class.
    pub unseen: Option<f64>,
    /// Mean of the accuracies of all classes.
    pub balanced: Option<f64>,
}

/// What a board with two streams does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DualReport {
    /// The board's personal model.
    pub specialist: Duties,
    /// The shared model.
    pub generalist: Duties,
    /// Both, weighed by the router.
    pub routed: Duties,
    /// The smoothed prior without a router.
    pub prior_only: Duties,
    /// FedPrism's own rule on the same two streams.
    pub fedprism_rule: Duties,
    /// How well the router's score tells own test images from unseen classes.
    pub auroc: Option<f64>,
    /// How often the specialist decides on own test images.
    pub route_share: Option<f64>,
    /// How often it decides on unseen classes.
    pub route_share_unseen: Option<f64>,
}

/// Test images as a network takes them.
#[derive(Debug)]
pub struct Inputs {
    extents: [usize; 4],
    values: Vec<f32>,
}

impl Inputs {
    /// Scaled to [0, 1] and standardised.
    pub fn of(samples: &Samples, preprocessing: &Preprocessing) -> Self {
        let [channels, height, width] = samples.inputs().input();
        let mut values = samples.inputs().to_f32();
        values.chunks_exact_mut(channels * height * width).for_each(|sample| preprocessing.apply(sample));
        Self { extents: [samples.len(), channels, height, width], values }
    }

    /// The batch.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::new(&self.extents, &self.values)
    }
}

/// Accuracy of a predictor on the board's own test images.
///
/// # Errors
/// What the engine gives.
pub fn own_accuracy(
    board: &Board,
    predictor: &Predictor,
    engine: &mut dyn Extractor,
) -> Result<Option<f64>, TrainError> {
    let own = board.test.select(&board.own);
    if own.is_empty() {
        return Ok(None);
    }
    let inputs = Inputs::of(&own, &predictor.specialist().spec.card().preprocessing);
    let answers: Vec<usize> = predictor.answer(engine, inputs.view())?.iter().map(Routed::class).collect();
    Ok(accuracy(&answers, own.labels(), &(0..own.len()).collect::<Vec<_>>()))
}

/// Both duties of a dual stream.
///
/// # Errors
/// What the engine gives.
pub fn dual(
    board: &Board,
    predictor: &Predictor,
    engine: &mut dyn Extractor,
) -> Result<DualReport, TrainError> {
    let inputs = Inputs::of(&board.test, &predictor.specialist().spec.card().preprocessing);
    let mut engine = Remembering { engine, done: Vec::new() };
    let routed = predictor.answer(&mut engine, inputs.view())?;
    let prior_only = match predictor.smoothed_prior() {
        Some(prior) => duties(board, &prior.answer(&mut engine, inputs.view())?, Routed::class),
        None => Duties::default(),
    };
    let score = |of: &[usize]| of.iter().map(|&i| routed[i].weight).collect::<Vec<f32>>();
    let share = |of: &[usize]| {
        mean(of.iter().map(|&i| f64::from(u8::from(routed[i].decided_by == Decider::Specialist))))
    };
    Ok(DualReport {
        specialist: duties(board, &routed, |r| argmax(&r.specialist)),
        generalist: duties(board, &routed, |r| argmax(&r.generalist)),
        routed: duties(board, &routed, Routed::class),
        prior_only,
        fedprism_rule: duties(board, &routed, by_confidence),
        auroc: auroc(&score(&board.own), &score(&board.unseen)),
        route_share: share(&board.own),
        route_share_unseen: share(&board.unseen),
    })
}

/// The class that FedPrism's rule gives on these two streams.
fn by_confidence(routed: &Routed) -> usize {
    let log = |p: &[f32]| p.iter().map(|p| p.max(f32::MIN_POSITIVE).ln()).collect::<Vec<f32>>();
    let router = Router::Confidence { temperature: FEDPRISM_TEMPERATURE };
    router.route(&log(&routed.specialist), &log(&routed.generalist), &[]).class()
}

fn duties(board: &Board, routed: &[Routed], class: impl Fn(&Routed) -> usize) -> Duties {
    let answers: Vec<usize> = routed.iter().map(class).collect();
    let labels = board.test.labels();
    let classes = routed.first().map_or(0, |r| r.probabilities.len());
    Duties {
        own: accuracy(&answers, labels, &board.own),
        unseen: accuracy(&answers, labels, &board.unseen),
        balanced: balanced(&answers, labels, classes),
    }
}

/// An engine that extracts each stream's features of one batch only once.
struct Remembering<'a> {
    engine: &'a mut dyn Extractor,
    done: Vec<(Stream, Vec<f32>)>,
}

impl Extractor for Remembering<'_> {
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError> {
        if let Some((_, features)) = self.done.iter().find(|(known, _)| known == stream) {
            return Ok(features.clone());
        }
        let features = self.engine.extract(stream, inputs)?;
        self.done.push((stream.clone(), features.clone()));
        Ok(features)
    }
}
