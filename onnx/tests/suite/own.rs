//! Networks of a user's own, beyond their arithmetic: statistics, dropouts that the exporter wrote out.

use crate::common::options;
use crate::exports::folder;
use models::fed::conditioning::Columns;
use models::nn::graph::Node;
use models::nn::{Graph, GraphBuilder, NodeId, Op};
use models::params::{ModelCard, Params, Preprocessing};
use onnx::{Brought, BuildError, ImportError, Network, NetworkError, bring, build, import, write};

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

#[test]
fn a_network_with_an_input_for_statistics_is_brought_along_whole() {
    let brought = bring(&file("conditioned.onnx"), "head", &options()).unwrap();
    let Brought { network, file: travelling, kept: None } = brought else { panic!("all of it trains") };
    assert_eq!(network.graph.statistics(), 12);
    let back = import(&travelling).unwrap();
    assert_eq!((&back.graph, &back.values), (&network.graph, &network.values));
    let labels = ["a", "b", "c", "d"].map(String::from).to_vec();
    let arch = format!("onnx:{}", models::id::Hash::of(&travelling));
    let card = |statistics| {
        let (arch, labels) = (arch.clone(), labels.clone());
        ModelCard { arch, input: [1, 8, 8], labels, statistics, preprocessing: Preprocessing::none(1) }
    };
    let built = build(&card(12), Some(&travelling)).unwrap();
    assert_eq!(built.start.as_ref().unwrap().values(), network.values);
    assert!(build(&card(0), Some(&travelling)).is_err(), "its width is part of the card");

    // What the host alone trains is what the vector feeds: folded into the bias, the network answers without it as it did with it.
    let (start, vector) = (built.start.unwrap(), [0.25_f32; 12]);
    let folded = Columns::of(&built.spec).unwrap().folded(&start, &vector);
    let answer = |of: &Params, s: &[f32]| built.graph.run(of.values(), &[0.5; 64], s).unwrap().remove(0);
    assert_ne!(answer(&start, &vector), answer(&start, &[0.0; 12]), "the vector counts");
    for (with, without) in answer(&start, &vector).iter().zip(answer(&folded, &[0.0; 12])) {
        assert!((with - without).abs() < 1e-6, "{with} with the vector, {without} with it folded in");
    }
}

/// Two linear layers, whose inputs `join` makes.
fn joined(
    join: impl FnOnce(&mut GraphBuilder, NodeId, NodeId) -> (NodeId, NodeId),
    bias: bool,
) -> Result<(), BuildError> {
    let mut builder = GraphBuilder::new([5, 1, 1], 3);
    let (x, s) = (builder.input(), builder.conditioning().unwrap());
    let (first, more) = join(&mut builder, x, s);
    let hidden = builder.add("fc", Op::Linear { out: 4, bias }, &[first]).unwrap();
    let wide = match more == x {
        true => hidden,
        false => builder.add("wide", Op::Concat, &[hidden, more]).unwrap(),
    };
    let head = builder.add("head", Op::Linear { out: 2, bias: true }, &[wide]).unwrap();
    let graph: Graph = builder.finish(&[head]);
    let values = vec![0.5; graph.len()];
    let metadata = import(&file("conditioned.onnx")).unwrap().metadata;
    let network = Network { graph, values, outputs: vec!["logits".into()], metadata };
    bring(&write(&network).unwrap(), "head", &options()).map(|_| ())
}

#[test]
fn statistics_may_enter_only_where_they_can_be_kept_from_leaving() {
    let concat = |b: &mut GraphBuilder, inputs: &[NodeId]| b.add("cat", Op::Concat, inputs).unwrap();
    joined(|b, x, s| (concat(b, &[x, s]), x), true).unwrap();
    let refused = |result: Result<(), BuildError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, BuildError::Network(NetworkError::Statistics { .. })), "{error}");
    };
    refused(joined(|b, x, s| (concat(b, &[s, x]), x), true));
    refused(joined(|b, x, s| (concat(b, &[x, s]), x), false));
    refused(joined(|b, x, s| (concat(b, &[x, s]), s), true));
    refused(joined(|_, x, s| (x, s), true));
    refused(joined(|_, x, s| (s, x), true));
    refused(joined(|_, x, _| (x, x), true));
    let twice = |b: &mut GraphBuilder, x: NodeId, s: NodeId| (concat(b, &[x, s, s]), x);
    refused(joined(twice, true));
}

#[test]
fn a_dropout_that_is_written_out_is_one_if_it_draws_every_number() {
    let network = import(&file("dropping.onnx")).unwrap();
    let drops = |node: &&Node| matches!(node.op, Op::Dropout { .. });
    let dropped: Vec<_> = network.graph.nodes().iter().filter(drops).map(|node| node.op).collect();
    assert_eq!(dropped, [Op::Dropout { p: 0.25 }]);
    let error = import(&file("dropping_rows.onnx")).unwrap_err();
    assert!(matches!(error, ImportError::Node { ref op, .. } if op == "Mul"), "{error}");
}
