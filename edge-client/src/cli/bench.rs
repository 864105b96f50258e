//! `bench`: what this board can do, measured on made-up data.
use super::args::{Bench, BenchArgs, BenchInfer, BenchWhat, Board, Local};
use super::board;
use super::infer;
use crate::answers::{Answerer, Graphs};
use crate::train::pool;
use ::models::fed::Predictor;
use ::models::nn::bench::Bench as Training;
use ::models::nn::{Graph, Op, arch, init};
use ::models::params::{ModelCard, Preprocessing};
use serde_json::json;
use std::time::Instant;

pub(super) fn bench(args: &Bench) -> anyhow::Result<()> {
    board::config(&Board::default(), &Local::default(), &[])?;
    match &args.what {
        BenchWhat::Train(args) => train(args),
        BenchWhat::Infer(args) => infer(args),
    }
}

fn train(args: &BenchArgs) -> anyhow::Result<()> {
    let threads = board::threads(args.threads.unwrap_or(0) as usize);
    let timed = || -> anyhow::Result<(f64, f64, f64)> {
        let mut net = Training::new(&args.arch, args.batch as usize, threads.get())?;
        let mut loss = 0.0;
        let ms = median_ms(args.steps, || {
            loss = net.step();
            Ok(())
        })?;
        Ok((ms, net.flops(), loss))
    };
    let (ms, flops, loss) = match pool(threads)? {
        Some(pool) => pool.install(timed)?,
        None => timed()?,
    };
    report(args, ms, flops, ("loss", loss));
    Ok(())
}

fn infer(args: &BenchInfer) -> anyhow::Result<()> {
    let (graph, spec) = arch::build(&card(&args.bench.arch))?;
    let engine = infer::engine(args.engine, args.ort_lib.clone(), args.bench.threads.unwrap_or(0) as usize)?;
    let predictor = Predictor::single(&init(&graph, &spec, 0), &[]);
    let graphs = Graphs::of(&predictor, &graph)?;
    let mut answerer = Answerer::new(&graphs, predictor.router().clone(), &spec, engine.as_ref())?;
    let inputs = vec![0.5; args.bench.batch as usize * graph.input().len()];
    let mut confidence = 0.0;
    let ms = median_ms(args.bench.steps, || {
        let answers = answerer.answer(&inputs)?;
        confidence = answers.first().map_or(0.0, |a| a.probabilities[a.class()]);
        Ok(())
    })?;
    board::say(&format!("engine {} ({})", engine.name(), engine.provider()));
    report(
        &args.bench,
        ms,
        forward_flops(&graph) * f64::from(args.bench.batch),
        ("confidence", confidence.into()),
    );
    Ok(())
}

/// The network of this name on the input it was made for, with ten classes.
pub(super) fn card(arch: &str) -> ModelCard {
    let input = match arch {
        "har1d" => [6, 1, 64],
        "cc32" | "cc32-gn" | "kdhcnn" => [3, 32, 32],
        "dw64" | "res64" => [3, 64, 64],
        _ => [1, 28, 28],
    };
    let labels = (0..10).map(|c| c.to_string()).collect();
    ModelCard {
        arch: arch.into(),
        input,
        labels,
        statistics: 0,
        preprocessing: Preprocessing::none(input[0]),
    }
}

/// Two operations for each multiplication of a pass forward.
fn forward_flops(graph: &Graph) -> f64 {
    let weighted = graph.nodes().iter().filter(|n| matches!(n.op, Op::Conv2d(_) | Op::Linear { .. }));
    weighted.map(|n| 2.0 * (n.dims.pixels() * graph.entries()[n.entries[0]].shape.len()) as f64).sum()
}

/// Median time of a step, after a tenth of warming up.
fn median_ms(steps: u32, mut step: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    (0..steps.div_ceil(10)).try_for_each(|_| step())?;
    let mut timed = || -> anyhow::Result<f64> {
        let started = Instant::now();
        step()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    let mut times = (0..steps).map(|_| timed()).collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// `computed` names what the last step came to: with the same number of steps it tells whether two machines compute the same.
fn report(args: &BenchArgs, ms: f64, flops: f64, computed: (&str, f64)) {
    let samples_per_s = f64::from(args.batch) / ms * 1e3;
    let (gflops, peak, isa) = (flops / ms / 1e6, peak_rss_kib(), ::models::nn::isa().level().name());
    if args.json {
        let mut line = json!({
            "ms_median": ms, "samples_per_s": samples_per_s, "gflops": gflops, "peak_rss_kib": peak, "isa": isa,
        });
        line[computed.0] = json!(computed.1);
        println!("{line}");
    } else {
        let mib = peak.unwrap_or(0) >> 10;
        println!("{ms:.2} ms, {samples_per_s:.0} samples/s, {gflops:.1} GFLOP/s on {isa}, {mib} MiB at most");
    }
}

/// The most memory that this process ever held, where the system says.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
