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

fn plain() -> Vec<NodeProto> {
    vec![node("Identity", "same", &["flat"], "feature", vec![])]
}

fn refuses(bytes: &[u8], head: &str, words: &[&str]) {
    let shape = TensorProto::whole("shape", &[1, 16]);
    refuses(
        &network(fixed, vec![], vec![shape]),
        "fc",
        &["one (Reshape)", "for one sample alone", "dynamic_axes"],
    );
    let mean = node("ReduceMean", "mean", &["flat"], "m", vec![AttributeProto::ints("axes", [0])]);
    let coupled = vec![mean, node("Sub", "less", &["flat", "m"], "feature", vec![])];
    refuses(&network(coupled, vec![], vec![]), "fc", &["norm", "depend on the samples beside", "net.eval()"]);
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
    let good = bring(&network(plain(), vec![], vec![]), "fc", &options()).unwrap().file;
    assert!(build(&card(&good), Some(&good)).unwrap().extractor.is_some());
    let says = |change: &dyn Fn(&mut ModelProto)| {
        let mut model = decode(&good).unwrap();
        change(&mut model);
        let bytes = model.encode_to_vec();
        build(&card(&bytes), Some(&bytes)).unwrap_err().to_string()
    };
    let graph = |model: &mut ModelProto| -> GraphProto { model.graph.clone().unwrap() };
    let refused = says(&|model| model.metadata_props.last_mut().unwrap().value = "nothing".into());
    assert!(refused.contains("features"), "{refused}");
    let refused = says(&|model| model.graph = Some(GraphProto { output: vec![], ..graph(model) }));
    assert!(refused.contains("features"), "{refused}");
    let refused = says(&|model| model.metadata_props.clear());
    assert!(refused.contains("LayerNormalization"), "it would be trained: {refused}");
    let other = ModelCard { input: [1, 2, 8], ..card(&good) };
    assert!(build(&other, Some(&good)).unwrap_err().to_string().contains("[1, 4, 4]"));
    let other = ModelCard { labels: vec!["0".into()], ..card(&good) };
    assert!(build(&other, Some(&good)).unwrap_err().to_string().contains("2 classes"));
}

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
        let card = ModelCard { input: [1, 8, 8], labels: (0..4).map(|c| c.to_string()).collect(), ..card(&bytes) };
        if let Ok(built) = build(&card, Some(&bytes)) {
            prop_assert_eq!(built.spec.len(), built.start.unwrap().values().len());
        }
    }
}

static TRAVELLING: std::sync::LazyLock<Vec<u8>> =
    std::sync::LazyLock::new(|| bring(&file("next.plain.20"), "head", &options()).unwrap().file);
