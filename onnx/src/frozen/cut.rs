//! Cutting a file's graph: the nodes and constants that one value needs, given another.
use super::FrozenError;
use crate::import::node_name;
use crate::proto::{GraphProto, NodeProto, TensorProto};
use std::collections::{BTreeMap, BTreeSet};

/// A graph with who writes what.
pub(super) struct Parts<'a> {
    pub(super) graph: &'a GraphProto,
    writers: BTreeMap<&'a str, usize>,
    constants: BTreeMap<&'a str, &'a TensorProto>,
}

/// What a value needs, in the file's order.
#[derive(Debug, Default)]
pub(super) struct Cut<'a> {
    pub(super) nodes: Vec<&'a NodeProto>,
    pub(super) constants: Vec<&'a TensorProto>,
    /// Places of the nodes in the file.
    pub(super) places: BTreeSet<usize>,
}

pub(super) fn refuse(node: &NodeProto, why: String, remedy: &str) -> FrozenError {
    let (name, op) = (node_name(node).to_owned(), node.op_type.clone());
    FrozenError::Node { node: name, op, why, remedy: remedy.into() }
}

impl<'a> Parts<'a> {
    /// # Errors
    /// [`FrozenError`] if a name is given to two values.
    pub(super) fn of(graph: &'a GraphProto) -> Result<Self, FrozenError> {
        let mut constants = BTreeMap::new();
        for tensor in &graph.initializer {
            if constants.insert(tensor.name.as_str(), tensor).is_some() {
                let (name, why) = (tensor.name.clone(), "there are two of this name".into());
                return Err(FrozenError::Constant { name, why });
            }
        }
        let mut writers = BTreeMap::new();
        for (index, node) in graph.node.iter().enumerate() {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                if constants.contains_key(output.as_str()) || writers.insert(output.as_str(), index).is_some()
                {
                    let why = format!("it writes {output:?}, which is already there");
                    return Err(refuse(node, why, "repair the file or export the network again"));
                }
            }
        }
        Ok(Self { graph, writers, constants })
    }

    /// The constant of this name.
    pub(super) fn constant(&self, name: &str) -> Option<&'a TensorProto> {
        self.constants.get(name).copied()
    }

    /// The node that writes this value.
    pub(super) fn writer(&self, name: &str) -> Option<&'a NodeProto> {
        self.writers.get(name).map(|&index| &self.graph.node[index])
    }

    /// The nodes that read this value.
    pub(super) fn readers(&self, name: &str) -> impl Iterator<Item = &'a NodeProto> {
        self.graph.node.iter().filter(move |node| node.input.iter().any(|input| input == name))
    }

    /// All that `wanted` needs where `given` is there. The nodes come each after those that it reads.
    ///
    /// # Errors
    /// [`FrozenError::Node`]: a node reads what isn't written before it.
    pub(super) fn cut(&self, wanted: &str, given: &str) -> Result<Cut<'a>, FrozenError> {
        let (mut needed, mut constants) = (BTreeSet::from([wanted]), BTreeSet::new());
        let mut cut = Cut::default();
        for (index, node) in self.graph.node.iter().enumerate().rev() {
            if !node.output.iter().any(|name| name != given && needed.contains(name.as_str())) {
                continue;
            }
            for name in
                node.input.iter().map(String::as_str).filter(|name| !name.is_empty() && *name != given)
            {
                match (self.writers.get(name), self.constants.contains_key(name)) {
                    (_, true) => drop(constants.insert(name)),
                    (Some(&writer), _) if writer < index => drop(needed.insert(name)),
                    (writer, _) => return Err(self.absent(node, name, writer.is_some())),
                }
            }
            cut.places.insert(index);
        }
        cut.nodes = cut.places.iter().map(|&index| &self.graph.node[index]).collect();
        cut.constants =
            self.graph.initializer.iter().filter(|t| constants.contains(t.name.as_str())).collect();
        Ok(cut)
    }

    fn absent(&self, node: &NodeProto, name: &str, written: bool) -> FrozenError {
        if self.graph.input.iter().any(|input| input.name == name) {
            let why = format!("it leads from {name:?} to the answer around the head");
            return refuse(node, why, "let nothing but the head answer");
        }
        let why = match written {
            true => "this node or a later one writes it: the graph has a cycle or is out of order",
            false => "nothing writes it",
        };
        refuse(node, format!("it reads {name:?}, but {why}"), "repair the file or export the network again")
    }
}
