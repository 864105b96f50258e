//! Twenty steps of training of every architecture against PyTorch: `tests/golden/README.md` says how the traces were made.
use super::*;
use crate::nn::engine::Teacher;
use crate::params::Role;
use serde_json::Value;

fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn bits(stream: u64, i: usize) -> u64 {
    splitmix64((i as u64).wrapping_add(stream << 32))
}

fn symmetric(stream: u64, i: usize) -> f64 {
    ((bits(stream, i) >> 40) as f64 - 8_388_608.0) / 8_388_608.0
}

fn trace(name: &str) -> Value {
    let path = format!("{}/../tests/golden/traces/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Weights from streams `base`, `base + 1`, …, one per trained entry.
fn weights(graph: &Graph, base: u64) -> Vec<f32> {
    let mut values = vec![0.0; graph.len()];
    let mut k = base;
    for node in graph.nodes() {
        let Some(&first) = node.entries.first() else { continue };
        let fan_in: usize = graph.entries()[first].shape.extents()[1..].iter().product();
        let bound = 1.0 / (fan_in as f64).sqrt();
        for (which, &entry) in node.entries.iter().enumerate() {
            let entry = &graph.entries()[entry];
            let norm = matches!(node.op, Op::BatchNorm { .. });
            let place = &mut values[entry.range.clone()];
            let numbered = |rule: &dyn Fn(usize) -> f64| {
                (0..entry.range.len()).map(|i| rule(i) as f32).collect::<Vec<_>>()
            };
            place.copy_from_slice(&match (norm, which) {
                (true, 2 | 3) => numbered(&|_| (which - 2) as f64),
                (true, _) => numbered(&|i| (1 - which) as f64 + 0.1 * symmetric(k, i)),
                (false, _) => numbered(&|i| bound * symmetric(k, i)),
            });
            k += u64::from(entry.role == Role::Trainable);
        }
    }
    values
}

fn samples(graph: &Graph, classes: usize, base: u64, step: u64) -> Samples {
    let size = graph.input().len();
    let labels: Vec<u16> = (0..8).map(|i| (bits(base + 2000 + step, i) % classes as u64) as u16).collect();
    let row = |(i, &c): (usize, &u16)| {
        let c = u64::from(c);
        let value =
            move |j| 0.5 * (symmetric(base + 1000 + step, i * size + j) + symmetric(base + 4000 + c, j));
        (0..size).map(move |j| value(j) as f32)
    };
    let inputs = labels.iter().enumerate().flat_map(row).collect();
    let conditioning = (0..graph.statistics()).map(|j| symmetric(base + 3000 + step, j) as f32).collect();
    Samples { inputs, labels, conditioning, picks: (0..8).collect() }
}

fn close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance, "{what}: {ours} here, {theirs} in PyTorch");
}

/// Compares entries by norm and four values with what the trace has.
fn compare(what: &str, graph: &Graph, values: &[f32], theirs: &Value, tolerance: f64) {
    let mut theirs = theirs.as_array().unwrap().iter();
    let (trained, rest): (Vec<_>, Vec<_>) = graph.entries().iter().partition(|e| e.role == Role::Trainable);
    for (entry, theirs) in trained.into_iter().chain(rest).zip(&mut theirs) {
        let values = &values[entry.range.clone()];
        let norm = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let expected = theirs["norm"].as_f64().unwrap();
        close(&format!("{what}, norm of {}", entry.name), norm, expected, tolerance * (1.0 + expected));
        let picks = [0, values.len() / 3, 2 * values.len() / 3, values.len() - 1];
        for (pick, expected) in picks.into_iter().zip(numbers(&theirs["picks"])) {
            close(&format!("{what}, {} at {pick}", entry.name), f64::from(values[pick]), expected, tolerance);
        }
    }
}

fn replay(name: &str, arch: &str) {
    let golden = trace(name);
    let field = |key: &str| golden[key].as_f64().unwrap_or(0.0) as f32;
    let (base, classes) = (golden["trace"].as_u64().unwrap() * 10_000, field("classes") as usize);
    let extents: Vec<usize> = numbers(&golden["input"]).iter().map(|&n| n as usize).collect();
    let input = if let [c, t] = extents[..] { [c, 1, t] } else { [extents[0], extents[1], extents[2]] };
    let (graph, _) = arch::build(&card(arch, input, classes, field("statistics") as usize)).unwrap();
    let start = weights(&graph, base);
    let sgd = Sgd { rate: field("lr"), momentum: 0.9, weight_decay: field("l2") };
    let trains: Vec<bool> = graph.entries().iter().map(|e| e.role == Role::Trainable).collect();
    // The trace of this network has no dropout: in evaluation mode ours has none either.
    let training = arch != "kdhcnn";
    let mut net = Training::new(&graph, &start, Setup::new(&trains, training, 8), sgd, Fan::Inline);
    if golden.get("mu").is_some() {
        net.pull(&start, field("mu"), graph.entries().iter().map(|e| e.range.clone()).collect());
    }
    let teacher = golden.get("lambda").map(|_| weights(&graph, base + 5000));
    let losses = numbers(&golden["f64"]["losses"]);
    for (step, expected) in losses.into_iter().enumerate() {
        let samples = samples(&graph, classes, base, step as u64);
        let taught = teacher.as_ref().map(|t| graph.run(t, &samples.inputs, &[]).unwrap().remove(0));
        let mut batch = samples.batch();
        batch.targets.teacher = taught.as_deref().map(|logits| Teacher {
            logits,
            temperature: field("temperature"),
            weight: field("lambda"),
        });
        if step == 0 && golden.get("mu").is_none() && golden.get("l2").is_none() {
            let mut gradient = vec![0.0; graph.len()];
            let mut fresh = Training::new(&graph, &start, Setup::new(&trains, training, 8), sgd, Fan::Inline);
            fresh.accumulate(&batch, &mut gradient);
            compare(
                &format!("{name}, gradient"),
                &graph,
                &fresh.natural(gradient),
                &golden["f64"]["gradient"],
                2e-5,
            );
        }
        close(&format!("{name}, loss of step {step}"), net.step(&batch), expected, 1e-4);
    }
    let end = net.into_params();
    compare(&format!("{name}, end"), &graph, &end, &golden["f64"]["final"], 1e-4);
    let last = samples(&graph, classes, base, 20);
    let logits = graph.run(&end, &last.inputs, &last.conditioning).unwrap().remove(0);
    for (ours, theirs) in logits.iter().zip(numbers(&golden["f64"]["eval_logits"])) {
        close(&format!("{name}, logits"), f64::from(*ours), theirs, 5e-4);
    }
    let loss = metrics(&logits, &last.labels, classes).loss;
    close(&format!("{name}, loss at the end"), loss, golden["f64"]["eval_loss"].as_f64().unwrap(), 1e-4);
}

#[test]
fn lenet5() {
    replay("lenet5", "lenet5");
}

#[test]
fn cc28_with_and_without_statistics() {
    replay("cc28", "cc28");
    replay("cc28_statistics", "cc28");
}

#[test]
fn cc32_with_batch_norm() {
    replay("cc32", "cc32");
}

#[test]
fn kdhcnn() {
    replay("kdhcnn", "kdhcnn");
}

#[test]
fn depthwise_and_residual_blocks() {
    replay("dw64", "dw64");
    replay("res64", "res64");
}

#[test]
fn motion() {
    replay("motion", "har1d");
}

#[test]
fn mlp_with_every_loss() {
    ["mlp", "mlp_distil", "mlp_proximal", "mlp_l2"].into_iter().for_each(|name| replay(name, "mlp"));
}

#[test]
fn losses_and_their_gradients() {
    let golden = trace("losses");
    let value = |stream, i, bound: f64| (bound * symmetric(stream, i)) as f32;
    let logits = |stream| (0..30).map(|i| value(stream, i, 4.0)).collect::<Vec<f32>>();
    let (student, teacher) = (logits(200_000), logits(200_001));
    let label = |row: usize| (bits(200_002, row) % 5) as usize;
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let field = |key: &str| case[key].as_f64().unwrap_or(0.0);
        let of_weights = matches!(name, "proximal" | "l2");
        let mut gradient = vec![0.0; if of_weights { 10 } else { 30 }];
        let mut total = 0.0;
        let (w, a): (Vec<f32>, Vec<f32>) =
            (0..10).map(|i| (value(200_003, i, 1.0), value(200_004, i, 1.0))).unzip();
        match name {
            "proximal" => total = loss::proximal(&w, &a, field("mu") as f32, &mut gradient),
            "l2" => total = loss::l2(&w, field("l2") as f32, &mut gradient),
            _ => {
                let counts = case.get("counts").map(numbers).unwrap_or_default();
                let all: f64 = counts.iter().sum();
                let prior: Vec<f32> = counts.iter().map(|c| libm::log(c / all) as f32).collect();
                let lambda = field("lambda");
                for row in 0..6 {
                    let place = row * 5..row * 5 + 5;
                    let mut z = student[place.clone()].to_vec();
                    z.iter_mut().zip(&prior).for_each(|(z, r)| *z += r);
                    let g = &mut gradient[place.clone()];
                    total +=
                        (1.0 - lambda) * loss::cross_entropy(&z, label(row), (1.0 - lambda) / 6.0, g) / 6.0;
                    if lambda > 0.0 {
                        let t = field("temperature") as f32;
                        total += lambda * loss::distillation(&z, &teacher[place], t, lambda / 6.0, g) / 6.0;
                    }
                }
            }
        }
        close(name, total, field("value"), 2e-6);
        let theirs = numbers(&case["gradient"]);
        gradient.iter().zip(theirs).for_each(|(g, t)| close(name, f64::from(*g), t, 1e-6));
    }
}
