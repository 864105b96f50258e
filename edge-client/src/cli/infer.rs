//! `infer`.
use super::args::Infer;
use super::board::{self, say};
use super::frozen;
use super::output::{self, Format, Row};
use crate::answers::{Answerer, Graphs};
use crate::config::Config;
use crate::data::{Queries, Target, queries};
use crate::personal::{Personal, Place};
use crate::store::{Record, Store};
use ::models::fed::{Decider, Routed, argmax};
use ::models::infer::Runtime;
use ::models::params::ModelSpec;
use anyhow::bail;
use onnx::Built;
use onnx::runtime::{Engine, Native, Options};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Inputs that are answered together.
const BATCH: usize = 64;

pub(super) fn infer(args: &Infer) -> anyhow::Result<()> {
    let lib = args.ort_lib.as_ref().map(|p| p.to_string_lossy().into_owned());
    let config = board::config(
        &args.board,
        &args.local,
        &[("infer.engine", args.engine.clone()), ("infer.ort_lib", lib)],
    )?;
    let record = Store::peek(&config.dir)?;
    let network = board::built(&record, &config.dir)?;
    let (spec, extractor) = (&network.spec, network.extractor.as_ref());
    let predictor = personal(&record, &config, &network)?.predictor(spec)?;
    let engine = frozen::engine(&config, extractor)?;
    let graphs = Graphs::of(&predictor, &network.graph)?;
    let load = |engine: &dyn Runtime| Answerer::new(&graphs, predictor.router().clone(), spec, engine);
    let mut answerer = match extractor {
        None => load(engine.as_ref())?,
        Some(kept) => load(&Native::new(board::threads(config.threads)))?.behind(kept.open(engine.as_ref())?),
    };
    let asked = queries(&args.inputs, Target::of(spec.card(), config.resize))?;
    for error in &asked.unusable {
        say(&format!("warning: left out: {error}"));
    }
    let mut rows = rows(&mut answerer, &asked, spec, engine.as_ref(), args.format)?;
    if args.format != Format::Table {
        rows.iter_mut().for_each(|row| row.push(("final_model", json!(record.personal.held.is_some()))));
    }
    output::print(args.format, &rows)?;
    match asked.unusable.len() {
        0 => Ok(()),
        left_out => bail!("{left_out} input(s) could not be answered"),
    }
}

/// What the board learned; adapted here and now if that is still to be done and there are data.
fn personal(record: &Record, config: &Config, network: &Built) -> anyhow::Result<Personal> {
    let personal = record.personal.clone();
    if let Some(notice) = board::not_final(record, &config.dir) {
        say(&notice);
    }
    if !personal.adapted.expose().is_empty() || config.data.is_empty() {
        return Ok(personal);
    }
    let client = record.enrolled(&config.dir)?.1.client;
    let samples = board::samples(config, network.spec.card())?.samples;
    let mut workshop = frozen::workshop(network, samples, config, client)?;
    say("answering with the present state, adapted to the data given");
    Ok(personal.personalize(&Place::of(&workshop), workshop.trainer(personal.seed)?)?)
}

/// The engine that was asked for.
pub(super) fn engine(
    engine: Engine,
    ort_lib: Option<PathBuf>,
    threads: usize,
) -> anyhow::Result<Box<dyn Runtime>> {
    Ok(engine.open(&options(ort_lib, threads))?)
}

/// Where ONNX Runtime is looked for: as everywhere, and where `ort install` puts it.
pub(super) fn options(ort_lib: Option<PathBuf>, threads: usize) -> Options {
    let mut options = Options { ort_lib, threads: board::threads(threads), ..Options::of_process() };
    options.places.insert(0, super::ort::install_place());
    options
}

fn rows(
    answerer: &mut Answerer,
    asked: &Queries,
    spec: &ModelSpec,
    engine: &dyn Runtime,
    format: Format,
) -> anyhow::Result<Vec<Row>> {
    let width: usize = spec.card().input.iter().product();
    let mut rows = Vec::with_capacity(asked.names.len());
    for (names, values) in asked.names.chunks(BATCH).zip(asked.values.chunks(BATCH * width)) {
        let started = Instant::now();
        let answers = answerer.answer(values)?;
        let ms = started.elapsed().as_secs_f64() * 1e3 / names.len() as f64;
        let dual = answerer.is_dual();
        let describe = |(name, routed): (&String, &Routed)| {
            row(name, routed, &spec.card().labels, (engine, ms), dual, format)
        };
        rows.extend(names.iter().zip(&answers).map(describe));
    }
    Ok(rows)
}

fn row(
    name: &str,
    routed: &Routed,
    labels: &[String],
    by: (&dyn Runtime, f64),
    dual: bool,
    format: Format,
) -> Row {
    let class = routed.class();
    let decided = match routed.decided_by {
        Decider::Specialist => "specialist",
        Decider::Generalist => "generalist",
    };
    let familiar = match (format, routed.unfamiliar) {
        (Format::Table, true) => json!("unfamiliar"),
        (Format::Table, false) => json!(""),
        (_, unfamiliar) => json!(unfamiliar),
    };
    let generalist = if dual { stream(&routed.generalist, labels, format) } else { Value::Null };
    vec![
        ("input", json!(name)),
        ("class", json!(class)),
        ("label", json!(labels[class])),
        ("confidence", json!(routed.probabilities[class])),
        ("weight", json!(routed.weight)),
        ("decided_by", json!(decided)),
        ("specialist", stream(&routed.specialist, labels, format)),
        ("generalist", generalist),
        ("engine", json!(by.0.name())),
        ("provider", json!(by.0.provider())),
        ("ms", json!(by.1)),
        ("unfamiliar", familiar),
    ]
}

fn stream(probabilities: &[f32], labels: &[String], format: Format) -> Value {
    let class = argmax(probabilities);
    match format {
        Format::Table => json!({ "label": labels[class], "confidence": probabilities[class] }),
        _ => json!({ "class": class, "label": labels[class], "confidence": probabilities[class] }),
    }
}
