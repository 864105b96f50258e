//! `bench`: what this board can do, measured on made-up data.
mod measure;
pub(super) mod system;

use super::args::{Bench, BenchArgs, BenchInfer, BenchMemory, BenchTrain, BenchWhat, Board, Local};
use super::{board, infer, output};
use crate::answers::{Answerer, Graphs};
use crate::train::pool;
use ::models::fed::Predictor;
use ::models::nn::bench::{BenchPlan, HeadBench, card, forward_memory};
use ::models::nn::{FeatureCache, Graph, MemoryPlan, Op, Precision, arch, init};
use ::models::params::UpdateMode;
use anyhow::bail;
use measure::{Measured, measure};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::time::Instant;

pub(super) fn bench(args: &Bench) -> anyhow::Result<()> {
    board::config(&Board::default(), &Local::default(), &[])?;
    match &args.what {
        BenchWhat::Train(args) => train(args),
        BenchWhat::Infer(args) => infer(args),
    }
}

fn train(args: &BenchTrain) -> anyhow::Result<()> {
    let (bench, threads) = (&args.bench, board::threads(args.bench.threads.unwrap_or(0) as usize));
    let micro = args.micro_batch.map(|n| n as usize);
    let net = BenchPlan::new(&bench.arch, bench.batch as usize, args.update, micro)?;
    let memory = net.memory(threads.get());
    let less = "a smaller --batch or --micro-batch, fewer --threads or `--update head` need less";
    if settled(&memory, &args.memory, bench.json, ("training", less))? {
        return Ok(());
    }
    let timed = || -> anyhow::Result<(Measured, f64)> {
        let (mut loss, mut started) = (0.0, None);
        let measured = measure(bench, threads.get(), net.flops(), || {
            loss = started.get_or_insert_with(|| net.start(threads.get())).step();
            Ok(())
        })?;
        Ok((measured, loss))
    };
    let (measured, loss) = match pool(threads)? {
        Some(pool) => pool.install(timed)?,
        None => timed()?,
    };
    let mut more = vec![
        ("loss", json!(loss)),
        ("planned_kib", json!(memory.bytes >> 10)),
        ("update", json!(args.update.to_string())),
        ("trained", json!(net.trained())),
        ("update_bytes", json!(net.update_bytes())),
    ];
    if args.update == UpdateMode::Head {
        more.extend(cached(bench, threads)?);
    }
    report(bench, &measured, &more);
    Ok(())
}

/// What a head's step takes in local training with and without remembered features: whole trainings of the same samples, by turns.
fn cached(args: &BenchArgs, threads: NonZeroUsize) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let pool = pool(threads)?;
    let net = |cache| HeadBench::new(&args.arch, args.batch as usize, cache, pool.clone());
    let memory = |precision| Some(FeatureCache::new(precision, 64 << 20));
    let mut nets = [net(None)?, net(memory(Precision::F32))?, net(memory(Precision::F16))?];
    let mut times = [vec![], vec![], vec![]];
    for _ in 0..5 {
        for (net, times) in nets.iter_mut().zip(&mut times) {
            let started = Instant::now();
            net.train()?;
            times.push(started.elapsed().as_secs_f64() * 1e3 / f64::from(HeadBench::STEPS));
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [fresh, single, half] = times.map(|times| times[times.len() / 2]);
    Ok(vec![
        ("uncached_ms", json!(fresh)),
        ("cached_ms", json!(single)),
        ("cached_f16_ms", json!(half)),
        ("cached_speedup", json!(fresh / single)),
    ])
}

fn infer(args: &BenchInfer) -> anyhow::Result<()> {
    let (graph, spec) = arch::build(&card(&args.bench.arch))?;
    let threads = board::threads(args.bench.threads.unwrap_or(0) as usize);
    let engine = infer::engine(args.engine, args.ort_lib.clone(), args.bench.threads.unwrap_or(0) as usize)?;
    board::say(&format!("engine {} ({})", engine.name(), engine.provider()));
    let memory = forward_memory(&graph, args.bench.batch as usize, threads.get());
    // Other engines take what they take.
    let memory = (engine.name() == "native").then_some(memory);
    match &memory {
        Some(memory) => {
            let less = "a smaller --batch or fewer --threads need less";
            if settled(memory, &args.memory, args.bench.json, ("answering", less))? {
                return Ok(());
            }
        }
        None if args.memory.plan || args.memory.ram_cap.is_some() => {
            bail!("{} does not plan its memory: --plan and --ram-cap need `--engine native`", engine.name());
        }
        None => {}
    }
    let predictor = Predictor::single(&init(&graph, &spec, 0), &[]);
    let graphs = Graphs::of(&predictor, &graph)?;
    let (mut confidence, mut loaded) = (0.0, None);
    let flops = forward_flops(&graph) * f64::from(args.bench.batch);
    let measured = measure(&args.bench, threads.get(), flops, || {
        let (answerer, inputs) = match &mut loaded {
            Some(loaded) => loaded,
            none => none.insert((
                Answerer::new(&graphs, predictor.router().clone(), &spec, engine.as_ref())?,
                vec![0.5; args.bench.batch as usize * graph.input().len()],
            )),
        };
        let answers = answerer.answer(inputs)?;
        confidence = answers.first().map_or(0.0, |a| a.probabilities[a.class()]);
        Ok(())
    })?;
    let planned = memory.map(|memory| memory.bytes >> 10);
    report(&args.bench, &measured, &[("confidence", json!(confidence)), ("planned_kib", json!(planned))]);
    Ok(())
}

/// Shows the plan if that is asked, and refuses what is above the cap. Whether that was all that was asked for.
fn settled(
    memory: &MemoryPlan,
    asked: &BenchMemory,
    json: bool,
    (what, less): (&str, &str),
) -> anyhow::Result<bool> {
    if asked.plan {
        print_plan(memory, json)?;
    }
    if let Some(cap) = asked.ram_cap.filter(|cap| memory.bytes > (*cap as usize) << 20) {
        let needed = memory.bytes as f64 / f64::from(1 << 20);
        bail!("{what} needs {needed:.1} MiB, --ram-cap allows {cap}: {less}");
    }
    Ok(asked.plan)
}

/// Two operations for each multiplication of a pass forward.
fn forward_flops(graph: &Graph) -> f64 {
    let weighted = graph.nodes().iter().filter(|n| matches!(n.op, Op::Conv2d(_) | Op::Linear { .. }));
    weighted.map(|n| 2.0 * (n.dims.pixels() * graph.entries()[n.entries[0]].shape.len()) as f64).sum()
}

/// Every buffer; what is in the same place of the same owner takes turns there.
fn print_plan(memory: &MemoryPlan, json: bool) -> anyhow::Result<()> {
    let row = |b: &::models::nn::Planned| {
        vec![
            ("what", json!(b.what)),
            ("kib", json!(b.bytes.div_ceil(1024))),
            ("copies", json!(b.copies)),
            ("place", json!(b.place)),
            ("alive", json!(b.life)),
        ]
    };
    let rows: Vec<output::Row> = memory.buffers.iter().map(row).collect();
    output::print(if json { output::Format::Json } else { output::Format::Table }, &rows)?;
    let total = memory.bytes as f64 / f64::from(1 << 20);
    board::say(&format!("{total:.1} MiB in all; what has the same place shares its memory"));
    Ok(())
}

fn report(args: &BenchArgs, measured: &Measured, more: &[(&str, Value)]) {
    if args.json {
        let mut line = measured.json(args.batch);
        more.iter().for_each(|(key, value)| line[*key] = value.clone());
        println!("{line}");
        return;
    }
    println!("{}", measured.text(args.batch));
    for (key, value) in more {
        println!("{:>16} {value}", key.replace('_', " "));
    }
}
