//! One board's two graphs in every engine that is there, and six test images routed.
use crate::bundle::CLASSES;
use crate::evaluate::Inputs;
use crate::table::Table;
use crate::world::Board;
use anyhow::Context;
use models::data::Samples;
use models::fed::{Decider, Predictor, Routed, argmax};
use models::infer::{Outputs, Runtime};
use models::nn::Graph;
use onnx::Role;
use onnx::runtime::{Options, all};
use std::fmt::Write;

/// Test images on which engines are compared.
const COMPARED: usize = 64;
/// Test images shown, own ones and ones of classes never seen half and half where there are such.
const SHOWN: usize = 6;

/// What the engines say.
#[derive(Debug)]
pub(super) struct Engines {
    /// Those that ran both graphs.
    pub(super) names: Vec<String>,
    /// The text for people.
    pub(super) text: String,
}

/// Exports the streams of `predictor` and asks every engine about test images of `board`.
///
/// # Errors
/// If a graph can't be exported, or an engine that is there can't run it.
pub(super) fn compare(board: &Board, predictor: &Predictor, graph: &Graph) -> anyhow::Result<Engines> {
    let generalist = predictor.generalist().context("the method gives no second stream")?;
    let graphs = [
        onnx::export(predictor.specialist(), graph, Role::Specialist)?,
        onnx::export(generalist, graph, Role::Generalist)?,
    ];
    let chosen = chosen(board);
    let samples = board.test.select(&chosen);
    let inputs = Inputs::of(&samples, &predictor.specialist().spec.card().preprocessing);
    let (mut answered, mut absent) = (Vec::new(), Vec::new());
    for (engine, opened) in all(&Options::of_process()) {
        match opened {
            Ok(runtime) => {
                answered.push((runtime.name(), runtime.provider(), ask(&*runtime, &graphs, &inputs)?));
            }
            Err(why) => absent.push(format!("  {}: not run: {why}\n", engine.name())),
        }
    }
    let sizes = graphs.each_ref().map(|g| g.len() / 1000);
    let mut text =
        format!("Board {}: specialist {} kB, generalist {} kB as ONNX\n", board.client, sizes[0], sizes[1]);
    for (name, provider, outputs) in &answered {
        let (first, difference) = (answered[0].0, difference(&answered[0].2, outputs));
        // Writing into a String can't fail.
        let _ = match first == *name {
            true => writeln!(text, "  {name} ({provider}): both graphs on {} test images", samples.len()),
            false => {
                writeln!(text, "  {name} ({provider}): largest difference from {first} {difference:.1e}")
            }
        };
    }
    text.extend(absent);
    let [specialist, generalist] = &answered.first().context("no engine is there")?.2;
    let routed = routed(predictor, specialist, generalist, samples.len());
    let _ = write!(text, "\n{}", shown(board, &samples, &chosen, &routed));
    Ok(Engines { names: answered.iter().map(|(name, ..)| (*name).to_owned()).collect(), text })
}

/// Own test images and images of classes never seen, in turn.
fn chosen(board: &Board) -> Vec<usize> {
    let rounds = COMPARED.max(board.own.len()).max(board.unseen.len());
    let turns = (0..rounds).flat_map(|i| [board.own.get(i), board.unseen.get(i)]);
    turns.flatten().copied().take(COMPARED).collect()
}

fn ask(runtime: &dyn Runtime, graphs: &[Vec<u8>; 2], inputs: &Inputs) -> anyhow::Result<[Outputs; 2]> {
    let run = |graph: &[u8]| runtime.prepare(graph)?.run(inputs.view());
    Ok([run(&graphs[0])?, run(&graphs[1])?])
}

/// Largest difference of log-probabilities in either stream.
fn difference(a: &[Outputs; 2], b: &[Outputs; 2]) -> f32 {
    let pairs = a
        .iter()
        .zip(b)
        .flat_map(|(a, b)| a.log_probabilities.values().iter().zip(b.log_probabilities.values()));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn routed(predictor: &Predictor, specialist: &Outputs, generalist: &Outputs, n: usize) -> Vec<Routed> {
    let feature = |i| specialist.features.as_ref().map_or(&[][..], |f| f.view().row(i));
    let row = |outputs: &Outputs, i: usize| outputs.log_probabilities.view().row(i).to_vec();
    (0..n).map(|i| predictor.router().route(&row(specialist, i), &row(generalist, i), feature(i))).collect()
}

fn shown(board: &Board, samples: &Samples, chosen: &[usize], routed: &[Routed]) -> Table {
    let mut table = Table::headed([
        "test image",
        "is",
        "answer",
        "",
        "confidence",
        "decided by",
        "weight of\nspecialist",
        "specialist\nsays",
        "generalist\nsays",
    ]);
    for (index, answer) in routed.iter().enumerate().take(SHOWN) {
        let truth = usize::from(samples.labels()[index]);
        let unseen = if board.unseen.binary_search(&chosen[index]).is_ok() { " (never seen)" } else { "" };
        let says = |p: &[f32]| format!("{} {:.0} %", CLASSES[argmax(p)], 100.0 * p[argmax(p)]);
        let decider = match answer.decided_by {
            Decider::Specialist => "specialist",
            Decider::Generalist => "generalist",
        };
        table.row([
            chosen[index].to_string(),
            format!("{}{unseen}", CLASSES[truth]),
            CLASSES[answer.class()].to_owned(),
            if answer.class() == truth { "✓" } else { "✗" }.to_owned(),
            format!("{:.0} %", 100.0 * answer.probabilities[answer.class()]),
            format!("{decider}{}", if answer.unfamiliar { ", unfamiliar" } else { "" }),
            format!("{:.2}", answer.weight),
            says(&answer.specialist),
            says(&answer.generalist),
        ]);
    }
    table
}
