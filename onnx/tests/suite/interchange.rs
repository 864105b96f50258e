//! Export and import are inverses, to the byte; what is written never changes by accident.

use crate::common::{card, ensemble, params};
use models::fed::Ensemble;
use models::nn::graph::{GraphBuilder, Node};
use models::nn::{Op, arch};
use models::params::{ModelCard, Preprocessing};
use onnx::proto::{AttributeProto, ModelProto, decode};
use onnx::{ExportError, Metadata, Network, Role, export, import, write};
use prost::Message;

fn network(card: &ModelCard, seed: u64) -> Network {
    let params = params(card, seed);
    let (graph, spec) = arch::build(card).unwrap();
    let metadata = Metadata::of(&spec, Role::Specialist);
    Network {
        graph: (*graph).clone(),
        values: params.into_values(),
        outputs: vec!["logits".into()],
        metadata,
    }
}

#[test]
fn every_architecture_comes_back_as_it_was() {
    for name in arch::NAMES {
        let network = network(&card(name, 0), 5);
        let bytes = write(&network).unwrap();
        let back = import(&bytes).unwrap();
        assert_eq!(back.values, network.values, "{name}");
        assert_eq!(back.metadata, network.metadata);
        assert_eq!(write(&back).unwrap(), bytes, "{name}");
        let (_, spec) = arch::build(&card(name, 0)).unwrap();
        assert_eq!(
            back.spec().unwrap().hash(),
            spec.hash(),
            "{name} is trained under the specification it came from"
        );
        let ops = |n: &Network| n.graph.nodes().iter().map(|node| node.op).collect::<Vec<_>>();
        assert_eq!(ops(&back), ops(&network), "{name}");
    }
}

/// A batch norm of this momentum and a head.
fn norm(momentum: f64) -> Network {
    let mut g = GraphBuilder::new([2, 3, 3], 0);
    let norm = g.add("norm", Op::BatchNorm { epsilon: 1e-5, momentum }, &[g.input()]).unwrap();
    let flat = g.add("flatten", Op::Flatten, &[norm]).unwrap();
    let head = g.add("head", Op::Linear { out: 2, bias: true }, &[flat]).unwrap();
    let graph = g.finish(&[head]);
    Network {
        values: vec![0.5; graph.len()],
        graph,
        outputs: vec!["logits".into()],
        metadata: Metadata {
            arch: "norm".into(),
            labels: vec![],
            preprocessing: None,
            role: None,
            spec: None,
        },
    }
}

/// `momentum` as files have it, `None` where they leave it out.
fn with_momentum(old: Option<f32>) -> Vec<u8> {
    let mut model: ModelProto = decode(&write(&norm(0.1)).unwrap()).unwrap();
    for node in &mut model.graph.as_mut().unwrap().node {
        node.attribute.retain(|a| a.name != "momentum");
        if let (Some(old), "BatchNormalization") = (old, node.op_type.as_str()) {
            node.attribute.push(AttributeProto::float("momentum", old));
        }
    }
    model.encode_to_vec()
}

fn momentum_of(network: &Network) -> Vec<f64> {
    let of = |node: &Node| match node.op {
        Op::BatchNorm { momentum, .. } => Some(momentum),
        _ => None,
    };
    network.graph.nodes().iter().filter_map(of).collect()
}

#[test]
fn a_norm_keeps_its_momentum() {
    for momentum in [0.1, 0.01, 0.003, 0.25, 0.0, 1.0, 0.1234567] {
        let back = import(&write(&norm(momentum)).unwrap()).unwrap();
        assert_eq!(momentum_of(&back), [momentum]);
    }
    let read = |old| momentum_of(&import(&with_momentum(old)).unwrap());
    assert_eq!((read(None), read(Some(0.9)), read(Some(0.99))), (vec![0.1], vec![0.1], vec![0.01]));
}

#[test]
fn a_momentum_that_is_none_is_refused() {
    for old in [1.5, -0.1, f32::NAN] {
        let refused = import(&with_momentum(Some(old))).unwrap_err().to_string();
        assert!(refused.contains("momentum") && refused.contains("0 to 1"), "{refused}");
    }
}

#[test]
fn a_mixture_comes_back_as_it_was() {
    for (name, statistics) in [("cc28", 0), ("cc28", 4), ("cc32-gn", 4), ("kdhcnn", 0), ("har1d", 0)] {
        let ensemble = ensemble(&card(name, statistics), 5);
        let (graph, spec) = arch::build(&card(name, statistics)).unwrap();
        for role in [Role::Specialist, Role::Generalist] {
            let bytes = export(&ensemble, &graph, role).unwrap();
            assert_eq!(export(&ensemble, &graph, role).unwrap(), bytes, "the same bytes for the same model");
            let back = import(&bytes).unwrap();
            assert_eq!(write(&back).unwrap(), bytes, "{name}");
            assert_eq!((back.metadata.role, back.metadata.spec), (Some(role), Some(spec.hash())));
            assert_eq!(back.metadata.labels[3], "class 3");
            assert_eq!(back.graph.statistics(), 0, "the conditioning vector is folded in");
        }
    }
}

#[test]
fn a_member_without_a_share_is_left_out() {
    let card = card("mlp", 0);
    let (graph, _) = arch::build(&card).unwrap();
    let mut mixed = ensemble(&card, 5);
    mixed.members[1].share = 0.0;
    mixed.members[2].share = 0.0;
    let alone = Ensemble { members: vec![mixed.members[0].clone()], ..mixed.clone() };
    assert_eq!(
        export(&mixed, &graph, Role::Specialist).unwrap(),
        export(&alone, &graph, Role::Specialist).unwrap()
    );
    mixed.members[0].share = 0.0;
    assert_eq!(export(&mixed, &graph, Role::Specialist), Err(ExportError::NoMember));
}

#[test]
fn an_ensemble_of_another_graph_is_refused() {
    let (other, _) = arch::build(&card("lenet5", 0)).unwrap();
    let refused = export(&Ensemble::single(&params(&card("mlp", 0), 1), &[]), &other, Role::Generalist);
    assert!(matches!(refused, Err(ExportError::Mismatch { .. })), "{refused:?}");
}

/// The smallest export. `SPECTRA_BLESS=1 cargo test -p onnx` writes it anew; then look at why it changed.
#[test]
fn bytes_are_golden() {
    let labels = vec!["cat".into(), "dog".into()];
    let card = ModelCard {
        arch: "mlp".into(),
        input: [1, 1, 2],
        labels,
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    };
    let (graph, spec) = arch::build(&card).unwrap();
    let values = (0..spec.len()).map(|i| i as f32 / 1024.0).collect();
    let params = models::params::Params::new(spec, values).unwrap();
    let bytes = export(&Ensemble::single(&params, &[]), &graph, Role::Generalist).unwrap();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mlp.onnx");
    if std::env::var_os("SPECTRA_BLESS").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == bytes, "the export differs from {}", path.display());
}
