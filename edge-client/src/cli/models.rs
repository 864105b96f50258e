//! `status`, `models` and `export`.
use super::args::{Export, Local, Looking, Models, ModelsWhat};
use super::board::{self, say};
use super::output::{self, Row};
use crate::answers::Graphs;
use crate::disk;
use crate::store::{Record, Store};
use anyhow::Context;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn status(args: &Looking) -> anyhow::Result<()> {
    let config = board::config(&args.board, &Local::default(), &[])?;
    let record = Store::peek(&config.dir)?;
    let (identity, member) = record.enrolled(&config.dir)?;
    let mut facts: Row = vec![
        ("board", json!(member.client.0)),
        ("name", json!(identity.name)),
        ("host", json!(identity.host)),
        ("directory", json!(config.dir.display().to_string())),
        ("allow", json!(config.ceilings.allow)),
        ("starts", json!(record.epoch)),
    ];
    facts.extend(model(&record));
    output::print_facts(args.format, &facts)?;
    Ok(())
}

/// What is known of the model.
fn model(record: &Record) -> Row {
    let personal = &record.personal;
    let waiting = personal.pending.as_ref().map_or(Value::Null, |p| json!(p.round.0));
    let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    vec![
        ("model", record.model.as_ref().map_or(Value::Null, |card| json!(card.arch))),
        ("method", text(&personal.method)),
        ("rounds_trained", json!(personal.rounds)),
        ("final_version", personal.held.map_or(Value::Null, |v| json!(v))),
        ("personalised", json!(!personal.adapted.expose().is_empty())),
        ("unconfirmed_update_of_round", waiting),
    ]
}

pub(super) fn list(args: &Models) -> anyhow::Result<()> {
    let ModelsWhat::List(args) = &args.what;
    let config = board::config(&args.board, &Local::default(), &[])?;
    let record = Store::peek(&config.dir)?;
    let spec = board::built(&record, &config.dir)?.spec;
    let predictor = record.personal.predictor(&spec)?;
    let streams = [("specialist", Some(predictor.specialist())), ("generalist", predictor.generalist())];
    let row = |(name, ensemble): (&str, Option<&::models::fed::Ensemble>)| {
        let ensemble = ensemble?;
        let mut row: Row = vec![("stream", json!(name))];
        row.extend(model(&record).into_iter().take(4));
        row.extend([("backbones", json!(ensemble.streams.len())), ("heads", json!(ensemble.members.len()))]);
        row.extend([("values", json!(spec.len())), ("spec", json!(spec.hash().to_string()[..12]))]);
        Some(row)
    };
    output::print(args.format, &streams.into_iter().filter_map(row).collect::<Vec<_>>())?;
    Ok(())
}

pub(super) fn export(args: &Export) -> anyhow::Result<()> {
    let config = board::config(&args.board, &Local::default(), &[])?;
    let record = Store::peek(&config.dir)?;
    let network = board::built(&record, &config.dir)?;
    let predictor = record.personal.predictor(&network.spec)?;
    let graphs = Graphs::of(&predictor, &network.graph)?.on(network.extractor.as_deref())?;
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    write(&args.out.join("specialist.onnx"), &graphs.specialist)?;
    let notice = board::not_final(&record, &config.dir);
    match (&graphs.generalist, &notice) {
        (Some(bytes), _) => write(&args.out.join("generalist.onnx"), bytes)?,
        (None, Some(_)) => say("no generalist is written: it comes with the personal model"),
        (None, None) => say("this board's model has one stream: no generalist is written"),
    }
    notice.iter().for_each(|notice| say(notice));
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    disk::replace(path, bytes).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}
