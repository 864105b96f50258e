//! Memory that is shared and computed again changes no number.
use super::*;
use crate::params::UpdateMode;

/// A network with a value that is read by two later layers, some of them behind a norm.
fn residual() -> Graph {
    let conv = |out| Op::Conv2d(graph::Conv2d::same(out, [3, 3]));
    let mut g = GraphBuilder::new([3, 8, 8], 0);
    let mut last = g.add("stem", conv(8), &[g.input()]).unwrap();
    for block in 0..3 {
        let norm = g.add(&format!("{block}.norm"), Op::batch_norm(1e-5), &[last]).unwrap();
        let relu = g.add(&format!("{block}.relu"), Op::Relu, &[norm]).unwrap();
        let conv = g.add(&format!("{block}.conv"), conv(8), &[relu]).unwrap();
        let sum = g.add(&format!("{block}.sum"), Op::Add, &[conv, last]).unwrap();
        last = g.add(&format!("{block}.out"), Op::Relu, &[sum]).unwrap();
    }
    let flat = g.add("flatten", Op::Flatten, &[last]).unwrap();
    let head = g.add("head", Op::Linear { out: 4, bias: true }, &[flat]).unwrap();
    g.finish(&[head])
}

/// Graphs with what each mode trains of them.
fn cases() -> Vec<(String, Graph, Vec<bool>)> {
    let mut cases = vec![];
    for (arch, input) in [
        ("cc28", [1, 12, 12]),
        ("cc32", [3, 8, 8]),
        ("cc32-gn", [3, 8, 8]),
        ("kdhcnn", [3, 12, 12]),
        ("har1d", [6, 1, 64]),
    ] {
        let (graph, spec) = arch::build(&card(arch, input, 4, 0)).unwrap();
        for mode in ["full", "last:2", "last:3", "bias", "head"] {
            let mask = mode.parse::<UpdateMode>().unwrap().mask(&spec);
            let trains = (0..spec.entries().len()).map(|i| mask.has(i)).collect();
            cases.push((format!("{arch}, {mode}"), Graph::clone(&graph), trains));
        }
    }
    let graph = residual();
    let trained = |e: &graph::GraphEntry| e.role == crate::params::Role::Trainable;
    cases.push(("residual".into(), graph.clone(), graph.entries().iter().map(trained).collect()));
    let upper = graph.entries().iter().map(|e| trained(e) && e.name.as_str() >= "1").collect();
    cases.push(("upper half of residual".into(), graph, upper));
    cases
}

/// Two steps, with at most `run` samples of a lane at a time, on dirty memory or on fresh.
fn trained(graph: &Graph, trains: &[bool], run: usize, dirty: bool) -> (u64, Vec<u32>) {
    let samples = Samples::random(graph, 4, 43);
    let mut draw = stream(6);
    let mut start = normal(&mut draw, graph.len(), 0.2);
    for entry in graph.entries().iter().filter(|e| e.name.ends_with("running_var")) {
        start[entry.range.clone()].fill(0.7);
    }
    let setup = Setup { run, ..Setup::new(trains, true, 43) };
    let mut training = Training::new(graph, &start, setup, SGD, Fan::Inline);
    let mut loss = 0.0;
    for picks in [&samples.picks[..], &samples.picks[..13]] {
        if dirty {
            training.poison();
        }
        loss = training.step(&Batch { picks, ..samples.batch() });
        assert!(loss.is_finite());
    }
    (loss.to_bits(), training.into_params().into_iter().map(f32::to_bits).collect())
}

#[test]
fn nothing_is_read_before_it_is_written_nor_after_its_time() {
    for (what, graph, trains) in cases() {
        assert!(trained(&graph, &trains, 16, false) == trained(&graph, &trains, 16, true), "{what}");
    }
}

#[test]
fn micro_batches_of_any_size_are_the_full_batch() {
    for (what, graph, trains) in cases() {
        let whole = trained(&graph, &trains, 64, false);
        for run in [1, 3, 16] {
            assert!(whole == trained(&graph, &trains, run, false), "{what}, {run} at a time");
        }
    }
}

#[test]
fn what_the_way_back_can_compute_again_is_not_kept() {
    let (graph, spec) = arch::build(&card("cc32", [3, 32, 32], 10, 0)).unwrap();
    let trains: Vec<bool> = vec![true; spec.entries().len()];
    let memory = Setup::new(&trains, true, 64).memory(&graph, 2);
    let kept =
        |what: &str| memory.buffers.iter().any(|b| b.what.starts_with(what) && b.place.starts_with("lane"));
    assert!((1..5).all(|i| kept(&format!("value conv{i} "))));
    let again =
        ["value input of node 0", "value relu of node 3", "value pool of node 7", "value relu of node 10"];
    assert!(again.iter().all(|what| !kept(what)), "{:?}", memory.buffers);
    // A backward pass that stops above the norms keeps nothing below it but what it reads.
    let head: Vec<bool> = spec.entries().iter().map(|e| e.name.starts_with("head")).collect();
    let small = Setup::new(&head, true, 64).memory(&graph, 2);
    assert!(small.bytes * 2 < memory.bytes, "{} {}", small.bytes, memory.bytes);
}
