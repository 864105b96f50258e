//! `data` and `statistics`: what is here, for the owner's eyes.
use super::args::{Data, DataWhat, Listing};
use super::board;
use super::output::{self, Row};
use crate::store::Store;
use ::models::data::Samples;
use ::models::params::ModelCard;
use ::models::stats;
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

/// What distinguishes this board's data: mean and deviation of each channel, and the spectrum of statistic v1. Nothing
/// of it is ever sent.
pub(super) fn statistics(args: &Listing) -> anyhow::Result<()> {
    let (samples, card) = load(args)?;
    let inputs = samples.inputs();
    let values = inputs.to_f32();
    let plane = card.input[1] * card.input[2];
    let of_channel = |channel: usize| {
        let planes = values.chunks_exact(plane).skip(channel).step_by(card.input[0]);
        let (mean, deviation) = moments(planes.flatten().map(|&x| f64::from(x)));
        [
            row(&format!("mean of channel {channel}"), mean),
            row(&format!("deviation of channel {channel}"), deviation),
        ]
    };
    let mut rows: Vec<Row> = (0..card.input[0]).flat_map(of_channel).collect();
    let (width, classes, labels) = (inputs.width(), card.labels.len(), samples.labels().to_vec());
    let data = stats::Samples { width, classes, values, labels };
    let spectrum = stats::spectrum(&data, card.statistics.max(SHOWN));
    rows.extend(
        spectrum.iter().enumerate().map(|(i, v)| row(&format!("eigenvalue {} (statistic v1)", i + 1), *v)),
    );
    Ok(output::print(args.format, &rows)?)
}

/// Eigenvalues shown where the model asks for none.
const SHOWN: usize = 5;

fn row(name: &str, value: f64) -> Row {
    vec![("statistic", json!(name)), ("value", json!(value))]
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
