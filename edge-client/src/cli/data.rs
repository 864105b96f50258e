//! `data` and `statistics`: what is here, for the owner's eyes.
use super::args::{Data, DataWhat, Listing};
use super::board;
use super::output::{self, Row};
use crate::store::Store;
use ::models::data::Samples;
use ::models::params::ModelCard;
use serde_json::json;

pub(super) fn list(args: &Data) -> anyhow::Result<()> {
    let DataWhat::List(args) = &args.what;
    let (samples, card) = load(args)?;
    let counts = samples.counts(card.labels.len());
    let row = |(class, count): (usize, &u32)| -> Row {
        let share = f64::from(*count) / samples.len() as f64;
        vec![
            ("class", json!(class)),
            ("label", json!(card.labels[class])),
            ("samples", json!(count)),
            ("share", json!(share)),
        ]
    };
    output::print(args.format, &counts.iter().enumerate().map(row).collect::<Vec<_>>())?;
    Ok(())
}

/// Mean and deviation of each channel: what distinguishes this board's sensor. Nothing of it is ever sent.
pub(super) fn statistics(args: &Listing) -> anyhow::Result<()> {
    let (samples, card) = load(args)?;
    let values = samples.inputs().to_f32();
    let plane = card.input[1] * card.input[2];
    let row = |channel: usize| -> Row {
        let of_channel =
            values.chunks_exact(plane).skip(channel).step_by(card.input[0]).flatten().map(|&x| f64::from(x));
        let (mean, deviation) = moments(of_channel);
        let (model_mean, model_std) = (card.preprocessing.mean[channel], card.preprocessing.std[channel]);
        vec![
            ("channel", json!(channel)),
            ("mean", json!(mean)),
            ("deviation", json!(deviation)),
            ("model_mean", json!(model_mean)),
            ("model_deviation", json!(model_std)),
        ]
    };
    output::print(args.format, &(0..card.input[0]).map(row).collect::<Vec<_>>())?;
    Ok(())
}

fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (n, sum, squares) = values.fold((0.0, 0.0, 0.0), |(n, s, q), x| (n + 1.0, s + x, q + x * x));
    let mean = sum / f64::max(n, 1.0);
    (mean, f64::max(squares / f64::max(n, 1.0) - mean * mean, 0.0).sqrt())
}

fn load(args: &Listing) -> anyhow::Result<(Samples, ModelCard)> {
    let config = board::config(&args.board, &args.local, &[])?;
    let record = Store::peek(&config.dir)?;
    let card = board::card(&record)?.clone();
    Ok((board::samples(&config, &card)?.samples, card))
}
