//! Files from anywhere: an error that names the trouble, never a panic, never much memory.

use crate::common::{card, ensemble, options};
use models::nn::arch;
use models::nn::graph::Dims;
use models::tensor::TensorView;
use onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    decode,
};
use onnx::runtime::Engine;
use onnx::{Role, export, import};
use proptest::prelude::*;
use prost::Message;
use std::path::Path;
use std::sync::LazyLock;

/// An export with every kind of node.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut card = card("cc32-gn", 2);
    card.input = [1, 8, 8];
    card.preprocessing = models::params::Preprocessing::none(1);
    let (graph, _) = arch::build(&card).unwrap();
    export(&ensemble(&card, 1), &graph, Role::Specialist).unwrap()
});

/// Exports of others, without their weights.
static EXPORTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let names = [
        "signal.script.train.17",
        "signal.plain.train.21",
        "squeezenet.dynamo.eval.20",
        "lenet.script.eval.13",
    ];
    names.map(|name| std::fs::read(crate::exports::folder().join(format!("{name}.onnx"))).unwrap()).to_vec()
});

/// Bytes that are structure, not weights: where a flip is worth trying.
static STRUCTURE: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let mut model = decode(&GOOD).unwrap();
    let mut places = Vec::new();
    let weights = model
        .graph
        .as_mut()
        .unwrap()
        .initializer
        .iter()
        .map(|t| t.raw_data.clone())
        .filter(|raw| raw.len() > 64);
    let mut at = 0;
    for raw in weights {
        let start = at + GOOD[at..].windows(raw.len()).position(|w| w == raw).unwrap();
        places.extend(at..start);
        at = start + raw.len();
    }
    places.extend(at..GOOD.len());
    places
});

pub(crate) fn tiny(nodes: Vec<NodeProto>, initializer: Vec<TensorProto>, output: &str) -> Vec<u8> {
    let graph = GraphProto {
        node: nodes,
        name: "tiny".into(),
        initializer,
        input: vec![ValueInfoProto::batch_of("input", &[1, 4, 4])],
        output: vec![ValueInfoProto::batch_of(output, &[2])],
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() }.encode_to_vec()
}

pub(crate) fn node(
    op: &str,
    name: &str,
    input: &[&str],
    output: &str,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    let input = input.iter().map(|name| (*name).into()).collect();
    NodeProto {
        input,
        output: vec![output.into()],
        name: name.into(),
        op_type: op.into(),
        attribute,
        domain: String::new(),
    }
}

/// What is read can be run: an answer or an error.
fn answer_one(bytes: &[u8], input: Dims) {
    let native = Engine::Native.open(&options()).unwrap();
    let (extents, values) = ([1, input.channels, input.height, input.width], vec![0.5; input.len()]);
    if let Ok(mut session) = native.prepare(bytes) {
        session.run(TensorView::new(&extents, &values)).unwrap();
    }
}

fn refusal(bytes: &[u8]) -> String {
    import(bytes).unwrap_err().to_string()
}

fn refuses(bytes: &[u8], words: &[&str]) {
    let text = refusal(bytes);
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} does not say {words:?}");
}

#[test]
fn what_is_no_graph_is_refused() {
    assert!(import(&GOOD).is_ok());
    refuses(b"", &["operator set 0"]);
    refuses(b"hello, this is text", &["damaged or not ONNX"]);
    refuses(&tiny(vec![], vec![], "y"), &["nothing writes its output \"y\""]);
    let mut model = decode(&GOOD).unwrap();
    model.opset_import[0].version = 9;
    refuses(&model.encode_to_vec(), &["operator set 9", "opset_version=17"]);
    model.opset_import[0].version = 17;
    model.graph = None;
    refuses(&model.encode_to_vec(), &["no graph"]);
}

#[test]
fn a_node_that_cannot_be_used_is_named() {
    let relu = |input, output| node("Relu", "squash", &[input], output, vec![]);
    refuses(
        &tiny(vec![node("Einsum", "mix", &["input"], "y", vec![])], vec![], "y"),
        &["node mix", "Einsum", "Gemm", "--engine ort"],
    );
    refuses(
        &tiny(vec![relu("nowhere", "y")], vec![], "y"),
        &["node squash (Relu)", "\"nowhere\"", "nothing writes it"],
    );
    refuses(
        &tiny(vec![relu("b", "a"), node("Relu", "back", &["a"], "b", vec![])], vec![], "b"),
        &["squash", "cycle"],
    );
    refuses(&tiny(vec![relu("y", "y")], vec![], "y"), &["squash", "cycle"]);
    refuses(&tiny(vec![relu("input", "input")], vec![], "input"), &["squash", "already there"]);
    let flatten = node("Flatten", "flat", &["input"], "y", vec![AttributeProto::int("axis", 2)]);
    refuses(&tiny(vec![flatten], vec![], "y"), &["flat (Flatten)", "axis is 2", "only 1"]);
    let strange = node("Relu", "squash", &["input"], "y", vec![AttributeProto::int("slope", 2)]);
    refuses(&tiny(vec![strange], vec![], "y"), &["attribute slope"]);
    let step = node("Reshape", "apart", &["input", "shape"], "a", vec![]);
    let shape = TensorProto::whole("shape", &[0, 1, -1]);
    refuses(
        &tiny(vec![step, relu("a", "y")], vec![shape], "y"),
        &["squash", "step of a group normalisation"],
    );
}

#[test]
fn a_weight_that_does_not_fit_is_named() {
    let gemm = || node("Gemm", "fc", &["v", "w"], "y", vec![AttributeProto::int("transB", 1)]);
    let flatten = || node("Flatten", "flat", &["input"], "v", vec![]);
    let with = |w: TensorProto| tiny(vec![flatten(), gemm()], vec![w], "y");
    assert!(import(&with(TensorProto::floats("w", &[2, 16], &[0.5; 32]))).is_ok());
    refuses(&with(TensorProto::floats("w", &[2, 15], &[0.5; 30])), &["fc (Gemm)", "[2, 15]", "[2, 16]"]);
    refuses(
        &with(TensorProto { dims: vec![2, 16], ..TensorProto::floats("w", &[1], &[0.5]) }),
        &["constant w", "1 values for extents [2, 16]"],
    );
    refuses(
        &with(TensorProto { dims: vec![1 << 40, 1 << 40], ..TensorProto::floats("w", &[1], &[0.5]) }),
        &["constant w", "can't be meant"],
    );
    refuses(
        &with(TensorProto { dims: vec![-2, 16], ..TensorProto::floats("w", &[1], &[0.5]) }),
        &["constant w", "can't be meant"],
    );
    refuses(
        &with(TensorProto { data_location: 1, ..TensorProto::floats("w", &[2, 16], &[0.5; 32]) }),
        &["constant w", "another file"],
    );
    refuses(
        &with(TensorProto { data_type: 11, ..TensorProto::floats("w", &[2, 16], &[0.5; 32]) }),
        &["constant w", "element type 11"],
    );
    refuses(&with(TensorProto::floats("w", &[2, 16], &[f32::NAN; 32])), &["constant w", "not finite"]);
    let shared = node("Gemm", "again", &["v", "w"], "z", vec![AttributeProto::int("transB", 1)]);
    let weight = TensorProto::floats("w", &[2, 16], &[0.5; 32]);
    refuses(
        &tiny(vec![flatten(), gemm(), shared], vec![weight], "y"),
        &["again", "the weight of another node"],
    );
}

#[test]
fn giant_windows_and_samples_are_refused_unallocated() {
    let conv = node("Conv", "wide", &["input", "w"], "y", vec![AttributeProto::ints("pads", [1 << 30; 4])]);
    let weight = TensorProto::floats("w", &[1, 1, 1, 1], &[1.0]);
    refuses(&tiny(vec![conv], vec![weight.clone()], "y"), &["wide (Conv)", "pads"]);
    let pads = || vec![AttributeProto::ints("pads", [1024; 4])];
    let names: Vec<String> = (0..20).map(|i| format!("c{i}")).collect();
    let read = |i: usize| if i == 0 { "input".to_owned() } else { names[i - 1].clone() };
    let nodes =
        (0..20).map(|i| node("Conv", &names[i], &[&read(i), &format!("w{i}")], &names[i], pads())).collect();
    let weights = (0..20).map(|i| TensorProto { name: format!("w{i}"), ..weight.clone() }).collect();
    refuses(&tiny(nodes, weights, "c19"), &["node c2", "more than 2^26 numbers"]);
    let mut model = decode(&tiny(vec![], vec![], "y")).unwrap();
    model.graph.as_mut().unwrap().input = vec![ValueInfoProto::batch_of("input", &[1 << 40, 1 << 40, 3])];
    refuses(&model.encode_to_vec(), &["too large", "numbers of one sample"]);
}

#[test]
fn what_a_graph_computes_is_bounded() {
    let whole = |name: &str, values: &[i64]| TensorProto::whole(name, values);
    let expand = node("Expand", "blow", &["one", "to"], "y", vec![]);
    let one = TensorProto::floats("one", &[1], &[1.0]);
    refuses(&tiny(vec![expand], vec![one, whole("to", &[1 << 30, 1 << 30])], "y"), &["blow", "not read"]);
    // Doubling again and again.
    let doubles = (0..40).map(|i| {
        let (from, to) = (format!("v{i}"), format!("v{}", i + 1));
        node("Concat", &format!("twice{i}"), &[&from, &from], &to, vec![AttributeProto::int("axis", 0)])
    });
    let text = refusal(&tiny(doubles.collect(), vec![whole("v0", &[1, 2, 3])], "v40"));
    assert!(text.contains("not read") || text.contains("too large"), "{text}");
    let nodes = (0..10_000).map(|i| node("Relu", &format!("r{i}"), &["input"], &format!("o{i}"), vec![]));
    refuses(&tiny(nodes.collect(), vec![], "o1"), &["too large", "number of nodes"]);
    let kept = whole("axes", &[i64::MIN, i64::MAX]);
    let mean = node("ReduceMean", "mean", &["input", "axes"], "y", vec![]);
    refuses(&tiny(vec![mean], vec![kept.clone()], "y"), &["mean (ReduceMean)", "axes"]);
    let squeeze = node("Squeeze", "less", &["input", "axes"], "y", vec![]);
    refuses(&tiny(vec![squeeze], vec![kept.clone()], "y"), &["less (Squeeze)"]);
    let reshape = node("Reshape", "shape", &["input", "axes"], "y", vec![]);
    refuses(&tiny(vec![reshape], vec![kept], "y"), &["shape (Reshape)", "reshapes to"]);
}

#[test]
fn weights_beside_the_file_stay_in_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, path) = (dir.path().join("net"), dir.path().join("net/net.onnx"));
    std::fs::create_dir(&folder).unwrap();
    let values: Vec<u8> = (0..32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    std::fs::write(folder.join("weights"), [&[9; 16][..], &values].concat()).unwrap();
    std::fs::write(dir.path().join("secret"), &values).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path().join("secret"), folder.join("link")).unwrap();
    let external = |entries: &[(&str, &str)]| {
        let entry = |&(key, value): &(&str, &str)| onnx::proto::StringStringEntryProto {
            key: key.into(),
            value: value.into(),
        };
        let external_data = entries.iter().map(entry).collect();
        let w = TensorProto { data_location: 1, external_data, ..TensorProto::floats("w", &[2, 16], &[]) };
        let gemm = node("Gemm", "fc", &["v", "w"], "y", vec![AttributeProto::int("transB", 1)]);
        std::fs::write(
            &path,
            tiny(vec![node("Flatten", "flat", &["input"], "v", vec![]), gemm], vec![w], "y"),
        )
        .unwrap();
        onnx::read(&path)
    };
    let read = external(&[("location", "weights"), ("offset", "16"), ("length", "128")]).unwrap();
    assert_eq!(import(&read).unwrap().values[..3], [0.0, 1.0, 2.0]);
    let outside = dir.path().join("secret").to_string_lossy().into_owned();
    for location in ["../secret", "link", "absent", "", ".", outside.as_str()] {
        let refused = external(&[("location", location)]).unwrap_err().to_string();
        assert!(refused.contains("constant w") && refused.contains("folder"), "{refused}");
    }
    for (key, value) in [("offset", "145"), ("length", "9999999999999"), ("length", "-1"), ("offset", "x")] {
        let refused = external(&[("location", "weights"), (key, value)]).unwrap_err().to_string();
        assert!(refused.contains("constant w"), "{refused}");
    }
    assert!(onnx::read(&folder.join("no.onnx")).is_err());
    for (odd, what) in [(Path::new("/dev/zero"), "a device"), (folder.as_path(), "a directory")] {
        let refused = onnx::read(odd).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_cut_file_is_refused(at in any::<prop::sample::Index>()) {
        let at = at.index(GOOD.len());
        prop_assert!(import(&GOOD[..at]).is_err());
    }

    #[test]
    fn a_changed_file_is_refused_or_means_something(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = GOOD.clone();
        for (place, byte) in flips {
            bytes[STRUCTURE[place.index(STRUCTURE.len())]] = byte;
        }
        if let Ok(network) = import(&bytes) {
            prop_assert_eq!(network.graph.len(), network.values.len());
            prop_assert!(onnx::write(&network).is_ok());
            answer_one(&bytes, network.graph.input());
        }
    }

    #[test]
    fn a_changed_export_is_refused_or_means_something(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = EXPORTS[which.index(EXPORTS.len())].clone();
        for (place, byte) in flips {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(network) = import(&crate::exports::with_weights(&bytes)) {
            prop_assert_eq!(network.graph.len(), network.values.len());
            prop_assert!(onnx::write(&network).is_ok());
            let input = network.graph.input();
            if network.graph.statistics() == 0 {
                prop_assert!(network.graph.run(&network.values, &vec![0.5; input.len()], &[]).is_ok());
            }
        }
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(import(&bytes).is_err());
    }
}
