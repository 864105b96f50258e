//! Networks with a part that does not train and can't be kept either: one error that names node, operator and remedy.
use crate::common::options;
use crate::frozen::file;
use crate::hostile::{node, tiny};
use models::id::Hash;
use models::params::{ModelCard, Preprocessing};
use onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, decode};
use onnx::runtime::Engine;
use onnx::{Extractor, bring, build};
use proptest::prelude::*;
use prost::Message;
use std::sync::LazyLock;

const WIDTH: usize = 16;

fn floats(name: &str, extents: &[usize], value: f32) -> TensorProto {
    TensorProto::floats(name, extents, &vec![value; extents.iter().product()])
}

fn gemm(name: &str, from: &str, weight: &str, to: &str) -> NodeProto {
    node("Gemm", name, &[from, weight], to, vec![AttributeProto::int("transB", 1)])
}

/// Flatten, these nodes from "flat" to "feature", a norm that is not trained, the head "fc", these nodes from "logits" to "y".
fn network(below: Vec<NodeProto>, above: Vec<NodeProto>, more: Vec<TensorProto>) -> Vec<u8> {
    let flatten = node("Flatten", "flatten", &["input"], "flat", vec![]);
    let norm = node("LayerNormalization", "norm", &["feature", "scale"], "normed", vec![]);
    let head = gemm("out", "normed", "fc.weight", if above.is_empty() { "y" } else { "logits" });
    let nodes = [vec![flatten], below, vec![norm, head], above].concat();
    let constants = vec![floats("scale", &[WIDTH], 1.0), floats("fc.weight", &[2, WIDTH], 0.5)];
    tiny(nodes, [constants, more].concat(), "y")
}

/// A network of which these nodes are below the norm.
fn below(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Vec<u8> {
    network(nodes, vec![], constants)
}

fn plain() -> Vec<NodeProto> {
    vec![node("Identity", "same", &["flat"], "feature", vec![])]
}

fn refuses(bytes: &[u8], head: &str, words: &[&str]) {
    let text = bring(bytes, head, &options()).unwrap_err().to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} does not say {words:?}");
}

#[test]
fn the_network_that_the_others_are_made_from_is_kept() {
    for head in ["fc", "fc.weight", "out"] {
        let brought = bring(&below(plain(), vec![]), head, &options()).unwrap();
        assert_eq!(brought.kept.unwrap().extractor.width(), WIDTH);
    }
}

/// Of two samples.
fn features(extractor: &Extractor) -> Vec<f32> {
    let tract = Engine::Tract.open_frozen(&options()).unwrap();
    let samples: Vec<f32> = (0..2 * WIDTH).map(|i| (i * i % 7) as f32).collect();
    extractor.open(&*tract).unwrap().run(&samples).unwrap()
}

/// Samples that are no planes, and features with an axis that is always one, are taken as they are.
#[test]
fn vectors_and_signals_have_features_too() {
    for (extents, input) in [(&[16][..], [16, 1, 1]), (&[2, 8], [2, 1, 8])] {
        let mut model = decode(&below(plain(), vec![])).unwrap();
        model.graph.as_mut().unwrap().input = vec![ValueInfoProto::batch_of("input", extents)];
        let brought = bring(&model.encode_to_vec(), "fc", &options()).unwrap();
        let card = brought.card().unwrap();
        assert_eq!(card.input, input);
        let extractor = build(&card, Some(&brought.file)).unwrap().extractor.unwrap();
        assert_eq!(features(&extractor).len(), 2 * WIDTH);
    }
    let axes = TensorProto::whole("axes", &[1]);
    let lifted = vec![node("Unsqueeze", "lift", &["flat", "axes"], "feature", vec![])];
    let mut model = decode(&below(lifted, vec![axes, floats("matrix", &[WIDTH, 2], 0.5)])).unwrap();
    let graph = model.graph.as_mut().unwrap();
    *graph.node.last_mut().unwrap() = node("MatMul", "/fc/MatMul", &["normed", "matrix"], "y", vec![]);
    let kept = bring(&model.encode_to_vec(), "fc", &options()).unwrap().kept.unwrap();
    assert_eq!(features(&kept.extractor).len(), 2 * WIDTH);
}

#[test]
fn what_follows_the_head_must_train() {
    let above = |nodes, more| network(plain(), nodes, more);
    let strange = vec![node("Einsum", "mix", &["logits"], "y", vec![])];
    let words = ["node norm", "LayerNormalization", "head \"fc\"", "node mix", "Einsum"];
    refuses(&above(strange, vec![]), "fc", &words);
    let curve = vec![node("Sigmoid", "bend", &["logits"], "y", vec![])];
    refuses(&above(curve, vec![]), "fc", &["node bend", "Sigmoid", "only a softmax"]);
    let second = vec![gemm("again", "logits", "w2", "y")];
    refuses(
        &above(second, vec![floats("w2", &[2, 2], 1.0)]),
        "fc",
        &["node again", "follows the head \"fc\""],
    );
    let around = vec![
        node("ReduceMean", "mean", &["flat"], "other", vec![]),
        node("Add", "sum", &["logits", "other"], "y", vec![]),
    ];
    refuses(&above(around, vec![]), "fc", &["node flatten (Flatten)", "around the head"]);
    let softmax = vec![node("LogSoftmax", "end", &["logits"], "y", vec![])];
    assert!(bring(&above(softmax, vec![]), "fc", &options()).is_ok());
}

#[test]
fn the_head_must_be_one_layer_that_is_there() {
    let words = ["no fully connected layer", "\"classifier\"", "are fc"];
    refuses(&below(plain(), vec![]), "classifier", &words);
    let tied = vec![gemm("first", "flat", "fc.weight", "two"), gemm("back", "two", "wide", "feature")];
    let wide = floats("wide", &[WIDTH, 2], 0.1);
    refuses(&below(tied, vec![wide]), "fc", &["first", "out", "say --head"]);
    let inner = vec![gemm("inner", "flat", "inner.weight", "feature")];
    let weight = floats("inner.weight", &[WIDTH, WIDTH], 0.1);
    let words = ["norm", "LayerNormalization", "from the head \"inner\""];
    refuses(&below(inner, vec![weight]), "inner", &words);
    let tile = node("Tile", "wide", &["flat", "times"], "w", vec![]);
    let huge = vec![tile, gemm("huge", "w", "huge.weight", "feature")];
    let constants =
        vec![TensorProto::whole("times", &[1, 1025]), floats("huge.weight", &[WIDTH, 1025 * WIDTH], 0.0)];
    refuses(&below(huge, constants), "huge", &["16400 features", "at most 16384"]);
}

#[test]
fn a_broken_file_stays_broken() {
    let circle = vec![
        node("Add", "a", &["flat", "b"], "feature", vec![]),
        node("Identity", "b", &["feature"], "b", vec![]),
    ];
    refuses(&below(circle, vec![]), "fc", &["node a (Add)", "cycle"]);
    let nowhere = vec![node("Identity", "a", &["gone"], "feature", vec![])];
    refuses(&below(nowhere, vec![]), "fc", &["node a", "nothing writes it"]);
    let twice = [plain(), plain()].concat();
    refuses(&below(twice, vec![]), "fc", &["same", "already there"]);
    let with = |shift| below(vec![node("Add", "a", &["flat", "shift"], "feature", vec![])], vec![shift]);
    let shift = floats("shift", &[WIDTH], 0.5);
    let elsewhere = TensorProto { data_location: 1, ..shift.clone() };
    refuses(&with(elsewhere), "fc", &["constant shift", "another file"]);
    for (dims, word) in [(1 << 40, "can't be meant"), (-3, "can't be meant"), (17, "64 bytes")] {
        let wrong = TensorProto { dims: vec![dims], ..shift.clone() };
        refuses(&with(wrong), "fc", &["constant shift", word]);
    }
    let mut model = decode(&below(plain(), vec![])).unwrap();
    model.opset_import[0].version = 9;
    refuses(&model.encode_to_vec(), "fc", &["operator set 9", "11 to 25"]);
}

#[test]
fn a_network_that_would_train_in_another_operator_set_is_not_kept() {
    let nodes =
        vec![node("Flatten", "flatten", &["input"], "flat", vec![]), gemm("out", "flat", "fc.weight", "y")];
    let mut model = decode(&tiny(nodes, vec![floats("fc.weight", &[2, WIDTH], 0.5)], "y")).unwrap();
    model.opset_import[0].version = 23;
    refuses(&model.encode_to_vec(), "fc", &["operator set 23", "opset_version=17"]);
}

#[test]
fn engines_must_make_something_of_it() {
    let strange = vec![node("Frobnicate", "odd", &["flat"], "feature", vec![])];
    let words = ["node odd", "Frobnicate", "no engine can run it", "tract"];
    refuses(&below(strange, vec![]), "fc", &words);
    let branch = AttributeProto { name: "then_branch".into(), r#type: 5, ..AttributeProto::default() };
    let branches = vec![node("If", "maybe", &["flat"], "feature", vec![branch])];
    refuses(&below(branches, vec![]), "fc", &["node maybe (If)", "then_branch", "without branches"]);
    let broken = vec![node("Div", "ratio", &["flat", "zero"], "feature", vec![])];
    let words = ["ratio (Div)", "not finite", "division by zero"];
    refuses(&below(broken, vec![floats("zero", &[1], 0.0)]), "fc", &words);
    let random = vec![node("RandomNormalLike", "noise", &["flat"], "feature", vec![])];
    refuses(&below(random, vec![]), "fc", &["node noise", "random", "net.eval()"]);
    let fixed = vec![node("Reshape", "one", &["flat", "shape"], "feature", vec![])];
    let words = ["one (Reshape)", "for one sample alone", "dynamic_axes"];
    refuses(&below(fixed, vec![TensorProto::whole("shape", &[1, 16])]), "fc", &words);
    let mean = node("ReduceMean", "mean", &["flat"], "m", vec![AttributeProto::ints("axes", [0])]);
    let coupled = vec![mean, node("Sub", "less", &["flat", "m"], "feature", vec![])];
    refuses(&below(coupled, vec![]), "fc", &["depend on the samples beside", "net.eval()"]);
}

fn card(bytes: &[u8]) -> ModelCard {
    ModelCard {
        arch: ModelCard::arch_of(Hash::of(bytes)),
        input: [1, 4, 4],
        labels: vec!["0".into(), "1".into()],
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    }
}

#[test]
fn a_board_takes_no_file_that_says_something_else_than_its_card() {
    let good = bring(&below(plain(), vec![]), "fc", &options()).unwrap().file;
    assert!(build(&card(&good), Some(&good)).unwrap().extractor.is_some());
    let says = |change: &dyn Fn(&mut ModelProto)| {
        let mut model = decode(&good).unwrap();
        change(&mut model);
        let bytes = model.encode_to_vec();
        build(&card(&bytes), Some(&bytes)).unwrap_err().to_string()
    };
    let refused = says(&|model| model.metadata_props.last_mut().unwrap().value = "nothing".into());
    assert!(refused.contains("features"), "{refused}");
    let refused = says(&|model| {
        let graph = model.graph.clone().unwrap();
        model.graph = Some(GraphProto { output: vec![], ..graph });
    });
    assert!(refused.contains("features"), "{refused}");
    let refused = says(&|model| model.metadata_props.clear());
    assert!(refused.contains("LayerNormalization"), "it would be trained: {refused}");
    let other = ModelCard { input: [1, 2, 8], ..card(&good) };
    assert!(build(&other, Some(&good)).unwrap_err().to_string().contains("[1, 4, 4]"));
    let other = ModelCard { labels: vec!["0".into()], ..card(&good) };
    assert!(build(&other, Some(&good)).unwrap_err().to_string().contains("2 classes"));
}

static TRAVELLING: LazyLock<Vec<u8>> =
    LazyLock::new(|| bring(&file("next.plain.20"), "head", &options()).unwrap().file);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Nothing is run here: a board reads such a file before it trusts it to an engine.
    #[test]
    fn a_changed_file_is_refused_or_means_something(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = TRAVELLING.clone();
        for (place, byte) in flips {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let labels = (0..4).map(|c| c.to_string()).collect();
        let card = ModelCard { input: [1, 8, 8], labels, ..card(&bytes) };
        if let Ok(built) = build(&card, Some(&bytes)) {
            prop_assert_eq!(built.spec.len(), built.start.unwrap().values().len());
        }
    }
}
