//! Networks with parts that do not train: PyTorch's exports of a transformer and of a ConvNeXt block become an extractor with
//! a head that trains (`tests/golden/frozen/README.md`).
use crate::common::{engines, options};
use models::data::{Elements, Inputs as Raw, Samples};
use models::fed::Ensemble;
use models::id::ClientId;
use models::infer::Runtime;
use models::nn::{Dataset, Inputs, Job, LearningRate, LocalTrainer, Loss, Split, Trainer};
use models::params::{Mask, ModelCard, Part};
use models::tensor::TensorView;
use models::tensor::rng::{Key, Purpose};
use onnx::{Brought, Built, Role, bring, build, export};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

const SIDE: usize = 8;
const CLASSES: usize = 4;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frozen")
}

pub(crate) fn file(case: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{case}.onnx"))).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn rows(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().flat_map(numbers).collect()
}

struct Golden {
    case: String,
    input: Vec<f32>,
    features: Vec<f32>,
    answer: Vec<f32>,
}

fn golden() -> Vec<Golden> {
    let text = std::fs::read_to_string(folder().join("cases.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let one = |case: &Value| Golden {
        case: case["case"].as_str().unwrap().into(),
        input: numbers(&all["input"]),
        features: rows(&case["features"]),
        answer: rows(&case["answer"]),
    };
    all["cases"].as_array().unwrap().iter().map(one).collect()
}

fn brought(case: &str) -> Brought {
    bring(&file(case), "head", &options()).unwrap_or_else(|e| panic!("{case}: {e}"))
}

pub(crate) fn built(case: &str) -> (ModelCard, Built) {
    let brought = brought(case);
    let card = brought.card().unwrap();
    let built = build(&card, Some(&brought.file)).unwrap();
    (card, built)
}

/// Engines that can run what the native one doesn't know.
fn able() -> Vec<Box<dyn Runtime>> {
    engines().into_iter().filter(|engine| engine.name() != "native").collect()
}

fn near(case: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{case}");
    let apart = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart <= 1e-4, "{case}: {apart}");
}

#[test]
fn features_are_what_the_whole_network_computes_below_its_head() {
    assert_eq!(golden().len(), 5);
    for golden in golden() {
        let (card, built) = built(&golden.case);
        assert_eq!((card.input, card.labels.len()), ([1, SIDE, SIDE], CLASSES), "{}", golden.case);
        let (extractor, spec) = (built.extractor.unwrap(), &built.spec);
        assert_eq!((spec.backbone_len(), spec.features()), (0, extractor.width()), "only the head trains");
        assert!(!able().is_empty());
        for engine in able() {
            let case = format!("{} by {}", golden.case, engine.name());
            let features = extractor.open(&*engine).unwrap().run(&golden.input).unwrap();
            near(&case, &features, &golden.features);
        }
    }
}

#[test]
fn the_answer_of_the_parts_together_is_that_of_the_file() {
    for golden in golden() {
        let (_, built) = built(&golden.case);
        let ensemble = Ensemble::single(built.start.as_ref().unwrap(), &[]);
        let exported = export(&ensemble, &built.graph, Role::Specialist).unwrap();
        let whole = built.extractor.unwrap().under(&exported).unwrap();
        let extents = [golden.input.len() / (SIDE * SIDE), 1, SIDE, SIDE];
        for engine in able() {
            let case = format!("{} by {}", golden.case, engine.name());
            let answer =
                engine.prepare(&whole).unwrap().run(TensorView::new(&extents, &golden.input)).unwrap();
            let got = answer.log_probabilities.values();
            let sums: Vec<f32> =
                golden.answer.chunks(CLASSES).map(|row| row.iter().map(|x| x.exp()).sum()).collect();
            let is_logits = golden.case.starts_with("vit");
            let expected = golden.answer.iter().enumerate();
            let expected: Vec<f32> =
                expected.map(|(i, x)| if is_logits { x - sums[i / CLASSES].ln() } else { x.ln() }).collect();
            near(&case, got, &expected);
            near(&case, answer.features.unwrap().values(), &golden.features);
        }
    }
}

fn samples(n: usize) -> Samples {
    let labels: Vec<u16> = (0..n).map(|i| (i % CLASSES) as u16).collect();
    let mut noise = Key::new(5, Purpose::Partition).stream();
    let pixel = |i: usize| (40 * labels[i / (SIDE * SIDE)] as usize + i % 23) as u8;
    let pixels = (0..n * SIDE * SIDE).map(|i| pixel(i).saturating_add((30.0 * noise.unit()) as u8)).collect();
    Samples::new(Raw::new([1, SIDE, SIDE], Elements::U8(pixels)).unwrap(), labels).unwrap()
}

#[test]
fn a_head_trained_on_the_features_is_the_same_as_in_a_network_that_is_nothing_else() {
    let (card, built) = built("vit.dynamo.18");
    let extractor = built.extractor.unwrap();
    let engine = able().pop().unwrap();
    let mut seen = vec![];
    let samples = samples(70);
    let data =
        extractor.open(&*engine).unwrap().dataset(&samples, &card, &mut |done| seen.push(done)).unwrap();
    assert_eq!(seen, [32, 64, 70], "few samples at a time");
    let mut features = vec![0.0; data.width()];
    let all: Vec<f32> = (0..data.len())
        .flat_map(|i| {
            data.sample(i, &mut features);
            features.clone()
        })
        .collect();
    let plain = Dataset::new(Inputs::Ready(all), samples.labels().to_vec(), data.width(), CLASSES).unwrap();
    assert_eq!(data, plain);

    let train = |data: Dataset, cached: bool| {
        let network = (Arc::clone(&built.graph), Arc::clone(&built.spec));
        let trainer = LocalTrainer::new(network, data, (3, ClientId(1)), None).unwrap().without_validation();
        let mut trainer = if cached { trainer } else { trainer.with_cache(None) };
        let start = built.start.as_ref().unwrap();
        let before = trainer.evaluate(start, &[], Split::Train).unwrap().loss;
        let job = Job {
            trains: &Mask::part(&built.spec, Part::Head),
            epochs: 12,
            batch: 10,
            rate: LearningRate(0.05),
            momentum: 0.9,
            order: Key::new(1, Purpose::Batches),
            loss: Loss::default(),
            conditioning: &[],
        };
        let trained = trainer.train(start, &job).unwrap();
        let after = trainer.evaluate(&trained.params, &[], Split::Train).unwrap().loss;
        assert!(after < 0.5 * before, "{before} → {after}");
        trained.params.into_values()
    };
    assert_eq!(train(data.clone(), true), train(data, false), "with and without a memory of features");
}

#[test]
fn the_same_network_travels_as_the_same_bytes_and_the_file_is_a_network_by_itself() {
    for golden in golden() {
        let (once, again) = (brought(&golden.case), brought(&golden.case));
        assert!(once.file == again.file);
        let kept = once.kept.unwrap();
        assert!(kept.extractor.nodes() > 10 && !kept.engines.is_empty(), "{kept:?}");
        assert!(kept.refused.to_string().contains("node "), "{}", kept.refused);
    }
}
