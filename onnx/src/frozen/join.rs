//! Putting a graph that reads features on top of the part that gives them.
use super::Extractor;
use crate::proto::{GraphProto, IR_VERSION, ModelProto, NodeProto};
use crate::runtime::contract::INPUT;
use std::collections::{BTreeMap, BTreeSet};

/// Names that no value has yet.
pub(super) struct Names {
    taken: BTreeSet<String>,
    given: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(taken: impl IntoIterator<Item = String>) -> Self {
        Self { taken: taken.into_iter().collect(), given: BTreeMap::new() }
    }

    /// What the value of this name is called from now on: the same each time.
    pub(super) fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.given.get(name) {
            return known.clone();
        }
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.taken.contains(name));
        let free = free.unwrap_or_else(|| unreachable!("there is always another number"));
        self.taken.insert(free.clone());
        self.given.insert(name.into(), free.clone());
        free
    }

    /// Makes a value have this name.
    pub(super) fn call(&mut self, name: &str, new: &str) {
        self.taken.insert(new.into());
        self.given.insert(name.into(), new.into());
    }

    /// Names everything in a graph anew, its outputs but not its inputs' types.
    pub(super) fn rename(&mut self, graph: &mut GraphProto) {
        let values = graph.node.iter_mut().flat_map(|node| {
            let NodeProto { input, output, name, .. } = node;
            input.iter_mut().chain(output).chain([name])
        });
        let constants = graph.initializer.iter_mut().map(|tensor| &mut tensor.name);
        let ends = graph.input.iter_mut().chain(&mut graph.output).map(|value| &mut value.name);
        for name in values.chain(constants).chain(ends).filter(|name| !name.is_empty()) {
            *name = self.of(name);
        }
    }
}

/// Every name in a graph.
fn names(graph: &GraphProto) -> impl Iterator<Item = &String> {
    let values = graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output).chain([&node.name]));
    let constants = graph.initializer.iter().map(|tensor| &tensor.name);
    values.chain(constants).chain(graph.output.iter().map(|output| &output.name))
}

/// The graph of `above`, whose input are features, on `below`; and what the features are called in it.
pub(super) fn join(below: &Extractor, above: ModelProto) -> (ModelProto, String) {
    let mut top = above.graph.unwrap_or_default();
    let model = &below.model;
    let mut bottom = model.graph.clone().unwrap_or_default();
    let mut free = Names::new(names(&top).filter(|name| *name != INPUT).cloned());
    free.call(INPUT, INPUT);
    free.rename(&mut bottom);
    let feature = free.of(&below.feature);
    let reads = top.node.iter_mut().flat_map(|node| &mut node.input);
    reads.filter(|name| *name == INPUT).for_each(|name| name.clone_from(&feature));
    bottom.node.append(&mut top.node);
    bottom.initializer.append(&mut top.initializer);
    let graph = GraphProto { name: top.name, output: top.output, ..bottom };
    let joined = ModelProto {
        ir_version: model.ir_version.max(IR_VERSION),
        graph: Some(graph),
        opset_import: model.opset_import.clone(),
        ..above
    };
    (joined, feature)
}
