//! The demonstration: a world, `cpct` on it, its rivals, the table, and one board's graphs in every engine.
mod board;
mod engines;
mod federation;
mod host;
mod process;
mod progress;

pub use federation::Life;
pub use process::COMMAND as BOARD_COMMAND;

use crate::baselines::{self, Rivals};
use crate::bench::Bench;
use crate::bundle::Bundle;
use crate::cli::WorldArgs;
use crate::evaluate::{self, DualReport};
use crate::fleet::{Answering, Outcome};
use crate::report::{self, Column, Report, Way};
use crate::world::{Board, World};
use anyhow::Context;
use models::fed::cpct;
use progress::Progress;
use rayon::prelude::*;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::time::Instant;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The world, but for its seed.
    pub world: WorldArgs,
    /// One demonstration for each.
    pub seeds: Vec<u64>,
    /// Rounds.
    pub rounds: u32,
    /// What boards share.
    pub profile: cpct::Profile,
    /// Where host and boards keep their directories; a temporary one otherwise.
    pub dir: Option<PathBuf>,
    /// Figures as JSON on standard output, tables on standard error.
    pub json: bool,
    /// How boards live.
    pub life: Life,
}

/// Runs it.
///
/// # Errors
/// Whatever goes wrong first.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let bundle = Bundle::embedded();
    let mut reports = Vec::new();
    for &seed in &options.seeds {
        let (report, engines) = one(options, &bundle, seed)?;
        say(options, &format!("{}{engines}", report::render(&report)))?;
        if options.json {
            writeln!(stdout(), "{}", report.json())?;
        }
        reports.push(report);
    }
    if options.seeds.len() > 1 {
        say(options, &report::over_seeds(&reports))?;
        if options.json {
            writeln!(stdout(), "{}", report::summary(&reports))?;
        }
    }
    Ok(())
}

/// Tables are the result, unless JSON is.
fn say(options: &Options, text: &str) -> std::io::Result<()> {
    if options.json { writeln!(stderr(), "{text}") } else { writeln!(stdout(), "{text}") }
}

fn one(options: &Options, bundle: &Bundle, seed: u64) -> anyhow::Result<(Report, String)> {
    let started = Instant::now();
    let world = options.world.plan(seed).build(bundle);
    let bench = Bench::new(&world, options.rounds)?;
    let outcome = federate(options, &bench)?;
    let progress = Progress::new("rivals", baselines::steps(&bench));
    let rivals = baselines::rivals(&bench, &|| progress.tick())?;
    drop(progress);
    let dual = outcome.boards.par_iter().map(|a| judge(&bench, a)).collect::<anyhow::Result<Vec<_>>>()?;
    let engines = engines::compare(&world.boards[0], &outcome.boards[0].predictors[0], &bench.graph)?;
    let mut report = assemble(&world, &bench, &outcome, rivals, dual);
    report.engines = engines.names;
    report.wall_s = started.elapsed().as_secs_f64();
    Ok((report, engines.text))
}

/// `cpct` on this world, for real.
fn federate(options: &Options, bench: &Bench<'_>) -> anyhow::Result<Outcome> {
    let hyper = cpct::Hyper { profile: options.profile, train: bench.training, ..cpct::Hyper::default() };
    let progress = Progress::new("cpct", bench.policy.rounds.into());
    let tick = || progress.tick();
    match &options.dir {
        Some(dir) => {
            let dir = dir.join(format!("{}-{}", bench.world.plan.name.name(), bench.world.plan.seed));
            federation::federate(options.life, bench, &hyper, &dir, &tick)
        }
        None => {
            let dir = tempfile::tempdir().context("no temporary directory")?;
            federation::federate(options.life, bench, &hyper, dir.path(), &tick)
        }
    }
}

fn judge(bench: &Bench<'_>, answering: &Answering) -> anyhow::Result<DualReport> {
    let board = &bench.world.boards[answering.client.0 as usize];
    Ok(evaluate::dual(board, &answering.predictors[0], &mut bench.engine())?)
}

fn assemble(
    world: &World,
    bench: &Bench<'_>,
    outcome: &Outcome,
    rivals: Rivals,
    mut dual: Vec<DualReport>,
) -> Report {
    let name = |board: &Board| format!("{} ({}, {} images)", board.client, board.angle, board.train.len());
    let late_dual = dual.split_off(world.trained().len());
    let mut accuracy = rivals.accuracy;
    let ways = [
        (Column::Generalist, Way::Generalist),
        (Column::Specialist, Way::Specialist),
        (Column::Routed, Way::Routed),
    ];
    accuracy.extend(ways.map(|(column, way)| (column, dual.iter().map(|d| way.of(d).own).collect())));
    let picked = bench.policy.cohort(world.trained().len()) as f64 * f64::from(bench.policy.rounds);
    Report {
        world: world.plan.name.name(),
        seed: world.plan.seed,
        rounds: bench.policy.rounds,
        boards: world.trained().iter().map(name).collect(),
        late: world.late().iter().map(name).collect(),
        accuracy,
        late_fedper_ea: rivals.late_fedper_ea,
        dual,
        late_dual,
        bytes_up: outcome.traffic.up as f64 / picked,
        bytes_down: outcome.traffic.down as f64 / picked,
        wall_s: 0.0,
        engines: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
