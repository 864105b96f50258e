//! Networks that PyTorch has exported train here as they do there: `tests/golden/imported/README.md` says how the files were made.

use crate::fnv;
use models::id::ClientId;
use models::nn::{Dataset, Graph, Inputs, Job, LearningRate, LocalTrainer, Loss, Trainer};
use models::params::{Mask, ModelSpec, Params, Role};
use models::tensor::rng::{Key, Purpose};
use onnx::proto::{FLOAT, ModelProto, TensorProto, decode};
use onnx::{Network, import, write};
use prost::Message;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

const SAMPLES: usize = 8;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/imported")
}

/// The folder of the cases: another one where `SPECTRA_IMPORTED` names it, as for the networks at their full widths.
fn chosen() -> PathBuf {
    std::env::var_os("SPECTRA_IMPORTED").map_or_else(folder, PathBuf::from)
}

fn cases() -> Vec<Value> {
    let text = std::fs::read_to_string(chosen().join("cases.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap().as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// A learned array, by its name and extents alone.
fn weights(name: &str, extents: &[i64]) -> Vec<f32> {
    let count: i64 = extents.iter().product();
    let fan: i64 = extents.iter().skip(1).product();
    let value = |s: f64| match extents.len() {
        2.. => s * (3.0 / fan as f64).sqrt(),
        _ if name.ends_with("running_var") => 1.0 + 0.5 * s,
        _ if name.ends_with(".weight") => 1.0 + 0.1 * s,
        _ => 0.1 * s,
    };
    fnv::symmetric(name, count as usize).map(|s| value(s) as f32).collect()
}

fn is_empty(t: &TensorProto) -> bool {
    t.data_type == FLOAT
        && t.raw_data.is_empty()
        && t.float_data.is_empty()
        && t.dims.iter().product::<i64>() > 0
}

/// The file with the weights that its names stand for, and these.
fn filled(case: &str) -> (Vec<u8>, Vec<(String, Vec<f32>)>) {
    let mut model: ModelProto =
        decode(&std::fs::read(chosen().join(format!("{case}.onnx"))).unwrap()).unwrap();
    let mut learned = vec![];
    for t in model.graph.as_mut().unwrap().initializer.iter_mut().filter(|t| is_empty(t)) {
        let values = weights(&t.name, &t.dims);
        t.raw_data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        learned.push((t.name.clone(), values));
    }
    (model.encode_to_vec(), learned)
}

/// The same for a file that may be damaged, where that takes little memory.
pub(crate) fn with_weights(bytes: &[u8]) -> Vec<u8> {
    let Ok(mut model) = decode(bytes) else { return bytes.to_vec() };
    for t in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        let count =
            t.dims.iter().try_fold(1_i64, |n, &d| n.checked_mul(d).filter(|n| (0..1 << 18).contains(n)));
        if t.data_type == FLOAT && t.raw_data.is_empty() && count.is_some() {
            t.raw_data = weights(&t.name, &t.dims).iter().flat_map(|v| v.to_le_bytes()).collect();
        }
    }
    model.encode_to_vec()
}

/// The samples of a case.
fn inputs(case: &Value, width: usize) -> Vec<f32> {
    fnv::symmetric(case["input"].as_str().unwrap(), SAMPLES * width).map(|v| v as f32).collect()
}

fn trainer(case: &Value, network: &Network, graph: Arc<Graph>, spec: &Arc<ModelSpec>) -> LocalTrainer {
    let (width, classes) = (network.graph.input().len(), spec.classes());
    let inputs = inputs(case, width);
    let labels = (0..SAMPLES).map(|i| (i % classes) as u16).collect();
    let data = Dataset::new(Inputs::Floats(inputs), labels, width, classes).unwrap();
    let trainer = LocalTrainer::new((graph, Arc::clone(spec)), data, (1, ClientId(1)), None).unwrap();
    trainer.without_validation()
}

/// One step of plain gradient descent over all samples; the loss before it.
fn step(trainer: &mut LocalTrainer, start: &Params, rate: f32) -> (Params, f64) {
    let all = Mask::all(start.spec());
    let job = Job {
        trains: &all,
        epochs: 1,
        batch: SAMPLES,
        rate: LearningRate(rate),
        momentum: 0.0,
        order: Key::new(1, Purpose::Batches),
        loss: Loss::default(),
        conditioning: &[],
    };
    let trained = trainer.train(start, &job).unwrap();
    (trained.params, trained.loss)
}

/// The gradients of a case, by name.
fn gradients(case: &Value) -> Vec<(String, Vec<f64>)> {
    let bytes = std::fs::read(chosen().join(case["file"].as_str().unwrap())).unwrap();
    let mut words = bytes.as_chunks::<2>().0.iter().map(|w| f64::from(i16::from_le_bytes(*w)));
    let entries = case["gradients"].as_array().unwrap().iter();
    let read = entries.map(|e| {
        let (len, scale) = (e["len"].as_u64().unwrap() as usize, e["scale"].as_f64().unwrap());
        let values = words.by_ref().take(len).map(|v| v * scale / 32767.0).collect();
        (e["name"].as_str().unwrap().to_owned(), values)
    });
    read.collect()
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * b).sum();
    let (aa, bb): (f64, f64) = (a.iter().map(|a| f64::from(*a).powi(2)).sum(), b.iter().map(|b| b * b).sum());
    dot / (aa * bb).sqrt().max(f64::MIN_POSITIVE)
}

#[test]
fn forward_is_that_of_onnx_runtime() {
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let network = import(&filled(name).0).unwrap_or_else(|e| panic!("{name}: {e}"));
        let inputs = inputs(&case, network.graph.input().len());
        let ours = network.graph.run(&network.values, &inputs, &[]).unwrap().remove(0);
        let theirs: Vec<f64> = case["answer"].as_array().unwrap().iter().flat_map(numbers).collect();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!(
                (f64::from(*ours) - theirs).abs() <= 1e-4,
                "{name}: {ours} here, {theirs} in ONNX Runtime"
            );
        }
    }
}

#[test]
fn training_is_that_of_pytorch() {
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let (bytes, learned) = filled(name);
        let network = import(&bytes).unwrap().logits().unwrap();
        let spec = Arc::new(network.spec().unwrap());
        let graph = Arc::new(network.graph.clone());
        let mut trainer = trainer(&case, &network, graph, &spec);
        let start = Params::new(Arc::clone(&spec), network.values.clone()).unwrap();

        let mut params = start.clone();
        for (i, theirs) in numbers(&case["losses"]).into_iter().enumerate() {
            let (next, loss) = step(&mut trainer, &params, case["rate"].as_f64().unwrap() as f32);
            assert!((loss - theirs).abs() <= 1e-3, "{name}: loss {loss} in step {i}, {theirs} in PyTorch");
            params = next;
        }

        // So long a step that the weights before it are lost in rounding: what is left is the gradient.
        let rate = 4096.0;
        let (end, _) = step(&mut trainer, &start, rate);
        let theirs = gradients(&case);
        let least = case["cosine"].as_f64().unwrap_or(0.99999);
        let trained = || spec.entries().iter().filter(|e| e.role == Role::Trainable);
        assert_eq!(trained().count(), theirs.len(), "{name}: as many arrays are trained");
        for entry in trained() {
            let range = entry.range.clone();
            let (from, to) = (&start.values()[range.clone()], &end.values()[range]);
            let gradient: Vec<f32> = from.iter().zip(to).map(|(a, b)| (a - b) / rate).collect();
            let (of, values) = learned.iter().find(|(_, v)| v == from).expect(&entry.name);
            let (_, theirs) = theirs.iter().find(|(name, _)| name == of).expect(&entry.name);
            assert_eq!(values.len(), theirs.len());
            let norm = theirs.iter().map(|g| g * g).sum::<f64>().sqrt();
            // A bias before a norm has no gradient but for rounding.
            if norm < 1e-6 {
                assert!(gradient.iter().all(|g| g.abs() < 1e-4), "{name}, {}", entry.name);
                continue;
            }
            let cosine = cosine(&gradient, theirs);
            assert!(cosine >= least, "{name}, {}: cosine {cosine}, norm {norm}", entry.name);
        }
    }
}

#[test]
fn what_is_trained_comes_back_as_it_was() {
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let network = import(&filled(name).0).unwrap().logits().unwrap();
        let spec = Arc::new(network.spec().unwrap());
        let mut trainer = trainer(&case, &network, Arc::new(network.graph.clone()), &spec);
        let start = Params::new(Arc::clone(&spec), network.values.clone()).unwrap();
        let trained = Network { values: step(&mut trainer, &start, 0.01).0.into_values(), ..network };
        let bytes = write(&trained).unwrap();
        let back = import(&bytes).unwrap();
        assert_eq!(back.values, trained.values, "{name}");
        for (ours, theirs) in trained.graph.nodes().iter().zip(back.graph.nodes()) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(back.graph, trained.graph, "{name}");
        assert_eq!(write(&back).unwrap(), bytes, "{name}");
        assert_eq!(back.spec().unwrap().hash(), spec.hash(), "{name}");
    }
}
