//! From an exported file to the one that travels, and from that to something that trains.
use super::check::{check, settled};
use super::cut::{Cut, Parts, refuse};
use super::head::{self, Head};
use super::join::{Names, join};
use super::probe::probe;
use super::{Extractor, FROZEN, FrozenError};
use crate::export::{ExportError, export, write};
use crate::federate::BuildError;
use crate::import::{Interface, import};
use crate::metadata::Role;
use crate::network::{Network, NetworkError};
use crate::proto::{
    self, Dimension, GraphProto, ModelProto, NodeProto, OPSET, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};
use crate::runtime::Options;
use crate::runtime::contract::{FEATURES, INPUT};
use models::fed::Ensemble;
use models::nn::graph::Node;
use models::nn::{GraphBuilder, Op};
use models::params::{ModelCard, ModelSpec, Params, Preprocessing, SpecError};
use prost::Message;
use std::sync::Arc;

/// A network with a part that is kept, its head, and the file in which both travel.
pub(crate) struct Split {
    pub(crate) head: Network,
    pub(crate) extractor: Extractor,
    pub(crate) file: Vec<u8>,
    pub(crate) engines: Vec<&'static str>,
}

/// Splits a network at the head that is called `asked`, and tries the part below on this machine's engines.
pub(crate) fn bring(bytes: &[u8], asked: &str, options: &Options) -> Result<Split, BuildError> {
    let model = decoded(bytes)?;
    let graph = model.graph.as_ref().ok_or_else(|| damaged("it has no graph"))?;
    let interface = Interface::of(graph)?;
    if interface.statistics > 0 {
        return Err(damaged("it has an input for statistics, and those feed trained layers only").into());
    }
    let parts = Parts::of(graph)?;
    let head = head::find(&parts, asked)?;
    let below = parts.cut(&head.feature, interface.name)?;
    check(&model, &below)?;
    if !below.nodes.iter().any(|node| node.input.iter().any(|name| name == interface.name)) {
        let why = format!("what it reads does not depend on {:?}", interface.name);
        return Err(refuse(&graph.node[head.place], why, "name the layer that answers").into());
    }
    let network = trainable(&model, &parts, &head)?;
    let kept = kept(&model, &below, &interface, &head);
    let extractor = with_top(kept, FEATURES.into(), (interface.input, head.width), &network)?;
    let file = travelling(&extractor, &network)?;
    let engines = probe(&extractor, options)?;
    Ok(Split { head: network, extractor, file, engines })
}

/// The file as if it used an operator set that is read.
pub(crate) fn in_a_read_set(bytes: &[u8]) -> Result<Vec<u8>, FrozenError> {
    let mut model = decoded(bytes)?;
    let standard = model.opset_import.iter_mut().filter(|set| proto::is_standard(&set.domain));
    standard.for_each(|set| set.version = OPSET);
    Ok(model.encode_to_vec())
}

fn decoded(bytes: &[u8]) -> Result<ModelProto, FrozenError> {
    proto::decode(bytes).map_err(|e| FrozenError::Damaged { why: e.to_string() })
}

fn damaged(why: &str) -> FrozenError {
    FrozenError::Damaged { why: why.into() }
}

/// The head as a network that trains on features.
fn trainable(model: &ModelProto, parts: &Parts<'_>, head: &Head) -> Result<Network, BuildError> {
    let answer = parts.graph.output.first().ok_or_else(|| damaged("it has no output"))?;
    let above = parts.cut(&answer.name, &head.feature)?;
    if !above.places.contains(&head.place) {
        let why = format!("the answer {:?} does not come from it", answer.name);
        return Err(refuse(&parts.graph.node[head.place], why, "name the layer that answers").into());
    }
    let network = read(model, &above, &answer.name, (&head.feature, head.width), &head.name)?.logits()?;
    let (graph, id) = (&network.graph, network.graph.outputs()[0]);
    let last: &Node = graph.node(id);
    match last.op {
        Op::Linear { .. } if last.inputs.iter().all(|&input| graph.node(input).op == Op::Input) => {}
        op => {
            let (node, op) = (last.name.clone(), format!("{op:?}"));
            return Err(BuildError::NotLogits { node, op, head: head.name.clone() });
        }
    }
    let mut builder = GraphBuilder::new([head.width, 1, 1], 0);
    let only = builder.add(&head.name, last.op, &[builder.input()]).map_err(ExportError::from)?;
    Ok(Network { graph: builder.finish(&[only]), ..network })
}

/// What is above the features, read as any network is.
fn read(
    model: &ModelProto,
    above: &Cut<'_>,
    answer: &str,
    (feature, width): (&str, usize),
    head: &str,
) -> Result<Network, FrozenError> {
    let graph = GraphProto {
        node: cloned(&above.nodes),
        name: head.into(),
        initializer: cloned(&above.constants),
        input: vec![ValueInfoProto::batch_of(feature, &[width])],
        output: vec![ValueInfoProto::batch_of(answer, &[])],
    };
    // What may follow a head means the same in all sets that a frozen part may use.
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: OPSET }];
    let metadata_props = model.metadata_props.clone();
    let alone = ModelProto { graph: Some(graph), opset_import, metadata_props, ..ModelProto::default() };
    let above = |source| FrozenError::Above { head: head.into(), source: Box::new(source) };
    import(&alone.encode_to_vec()).map_err(above)
}

fn cloned<T: Clone>(parts: &[&T]) -> Vec<T> {
    parts.iter().copied().cloned().collect()
}

/// The part that is kept: its input and its features have the names that they have everywhere, and it reads planes.
fn kept(model: &ModelProto, below: &Cut<'_>, interface: &Interface<'_>, head: &Head) -> ModelProto {
    let mut graph = GraphProto {
        node: below.nodes.iter().map(|node| settled(node)).collect(),
        initializer: cloned(&below.constants),
        ..GraphProto::default()
    };
    let mut names = Names::new([INPUT.to_owned(), FEATURES.to_owned()]);
    names.call(&head.feature, FEATURES);
    if interface.rank == 3 {
        names.call(interface.name, INPUT);
    }
    names.rename(&mut graph);
    if interface.rank < 3 {
        let [channels, _, time] = interface.input.map(|extent| extent as i64);
        let extents = if interface.rank == 1 { vec![0, channels] } else { vec![0, channels, time] };
        let constant = names.of("input/extents");
        graph.initializer.push(TensorProto::whole(constant.clone(), &extents));
        let (input, output) = (vec![INPUT.into(), constant], vec![names.of(interface.name)]);
        let node = NodeProto {
            input,
            output,
            op_type: "Reshape".into(),
            name: "input/reshape".into(),
            ..NodeProto::default()
        };
        graph.node.insert(0, node);
    }
    graph.input = vec![ValueInfoProto::batch_of(INPUT, &interface.input)];
    graph.output = vec![ValueInfoProto::batch_of(FEATURES, &[head.width])];
    let opset_import = model.opset_import.clone();
    ModelProto { ir_version: model.ir_version, graph: Some(graph), opset_import, ..ModelProto::default() }
}

/// The part that is kept, with the head that it came with.
fn with_top(
    model: ModelProto,
    feature: String,
    (input, width): ([usize; 3], usize),
    head: &Network,
) -> Result<Extractor, BuildError> {
    let labels: Vec<String> = (0..classes(head)).map(|class| class.to_string()).collect();
    let preprocessing = Preprocessing::none(width);
    let card = ModelCard { arch: "head".into(), input: [width, 1, 1], labels, statistics: 0, preprocessing };
    let spec = Arc::new(head.graph.spec(card)?);
    let start = Params::new(Arc::clone(&spec), head.values.clone())?;
    let top = export(&Ensemble::single(&start, &[]), &head.graph, Role::Specialist)?;
    let top = decoded(&top)?;
    Ok(Extractor { model, feature, input, width, top })
}

/// The file that a host gives its boards: the part that is kept, the head on it, and where one ends.
fn travelling(extractor: &Extractor, head: &Network) -> Result<Vec<u8>, BuildError> {
    let (mut file, feature) = join(extractor, decoded(&write(head)?)?);
    if let Some(graph) = &mut file.graph {
        graph.output.push(ValueInfoProto::batch_of(&feature, &[extractor.width]));
    }
    file.metadata_props.push(StringStringEntryProto { key: FROZEN.into(), value: feature });
    Ok(file.encode_to_vec())
}

/// The network in a file that [`bring`] has made, for the boards and the host of this card; `None` if no part of it is frozen.
pub(crate) fn open(
    file: &[u8],
    card: &ModelCard,
) -> Result<Option<(Network, ModelSpec, Extractor)>, BuildError> {
    let model = decoded(file)?;
    let Some(feature) =
        model.metadata_props.iter().find(|prop| prop.key == FROZEN).map(|prop| prop.value.clone())
    else {
        return Ok(None);
    };
    let graph = model.graph.as_ref().ok_or_else(|| damaged("it has no graph"))?;
    let (interface, parts) = (Interface::of(graph)?, Parts::of(graph)?);
    let (width, answer) = ends(graph, &feature)?;
    let below = parts.cut(&feature, interface.name)?;
    check(&model, &below)?;
    let above = parts.cut(answer, &feature)?;
    let head = read(&model, &above, answer, (&feature, width), "the head")?.logits()?;
    let spec = spec_of(&head, card, interface.input)?;
    let kept = GraphProto {
        node: cloned(&below.nodes),
        initializer: cloned(&below.constants),
        input: graph.input.clone(),
        output: vec![ValueInfoProto::batch_of(&feature, &[width])],
        ..GraphProto::default()
    };
    let (ir_version, opset_import) = (model.ir_version, model.opset_import.clone());
    let kept = ModelProto { ir_version, graph: Some(kept), opset_import, ..ModelProto::default() };
    let extractor = with_top(kept, feature, (interface.input, width), &head)?;
    Ok(Some((head, spec, extractor)))
}

/// The width of the features, as the file's output of that name has it, and the name of the answer.
fn ends<'a>(graph: &'a GraphProto, feature: &str) -> Result<(usize, &'a str), FrozenError> {
    let answer = graph.output.first().filter(|answer| answer.name != feature);
    let stated = graph.output.iter().find(|output| output.name == feature);
    let shape = stated.and_then(|output| output.r#type.as_ref()?.tensor_type.as_ref()?.shape.as_ref());
    let width = match shape.map(|shape| shape.dim.as_slice()) {
        Some([_, width]) => match width.value {
            Some(Dimension::Value(width)) => usize::try_from(width).ok(),
            _ => None,
        },
        _ => None,
    };
    let width = width.filter(|width| (1..=super::MOST_FEATURES).contains(width));
    match (width, answer) {
        (Some(width), Some(answer)) => Ok((width, &answer.name)),
        _ => Err(damaged("it does not say what its features are")),
    }
}

fn classes(head: &Network) -> usize {
    head.graph.outputs().first().map_or(0, |&id| head.graph.node(id).dims.len())
}

/// The specification of a card whose samples go through the part that is kept.
fn spec_of(head: &Network, card: &ModelCard, input: [usize; 3]) -> Result<ModelSpec, NetworkError> {
    let classes = classes(head);
    if (input, classes, 0) == (card.input, card.labels.len(), card.statistics) {
        return Ok(head.graph.spec(card.clone())?);
    }
    let needs = format!("{input:?}, {classes} classes, 0 statistics");
    let got = format!("{:?}, {} classes, {} statistics", card.input, card.labels.len(), card.statistics);
    Err(SpecError::Unsuitable { arch: card.arch.clone(), needs, got }.into())
}
