//! A node of the file, and how it is refused.
use super::ImportError;
use super::attributes::Attributes;
use crate::op::IMPORTERS;
use crate::proto::{GraphProto, NodeProto, is_standard};

/// A node of the file.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(super) node: &'a NodeProto,
    graph: &'a GraphProto,
    index: usize,
    opset: i64,
}

impl<'a> Source<'a> {
    pub(super) fn new(graph: &'a GraphProto, index: usize, opset: i64) -> Self {
        Self { node: &graph.node[index], graph, index, opset }
    }

    /// Version of the operator set.
    pub(crate) fn opset(&self) -> i64 {
        self.opset
    }

    pub(crate) fn op(&self) -> &str {
        &self.node.op_type
    }

    pub(super) fn standard(&self) -> bool {
        is_standard(&self.node.domain)
    }

    /// Its name; a nameless one is known by what it writes.
    pub(crate) fn name(&self) -> &str {
        node_name(self.node)
    }

    /// The refusal of this node.
    pub(crate) fn refuse(&self, why: String, remedy: &str) -> ImportError {
        ImportError::Node { node: self.name().into(), op: self.op().into(), why, remedy: remedy.into() }
    }

    pub(super) fn unknown(&self) -> ImportError {
        let op =
            if self.standard() { self.op().into() } else { format!("{}.{}", self.node.domain, self.op()) };
        ImportError::UnknownOperator {
            node: self.name().into(),
            op,
            known: IMPORTERS.map(|(name, _)| name).join(", "),
        }
    }

    /// Number of inputs.
    pub(crate) fn arity(&self) -> usize {
        self.node.input.len()
    }

    /// Whether input number `which` is given.
    pub(crate) fn has(&self, which: usize) -> bool {
        self.node.input.get(which).is_some_and(|name| !name.is_empty())
    }

    /// The name of input number `which`.
    pub(crate) fn input(&self, which: usize) -> Result<&'a str, ImportError> {
        match self.node.input.get(which) {
            Some(name) if !name.is_empty() => Ok(name),
            _ => Err(self.refuse(format!("input {which} is missing"), "export the network again")),
        }
    }

    /// Its attributes, all of which must be known.
    pub(crate) fn attributes(&self, known: &[&str]) -> Result<Attributes<'_, 'a>, ImportError> {
        Attributes::new(self, known)
    }

    /// Why a name that it reads isn't there.
    pub(super) fn absent(&self, name: &str) -> ImportError {
        let written_later =
            self.graph.node[self.index..].iter().any(|node| node.output.iter().any(|output| output == name));
        let why = if written_later {
            "this node or a later one writes it: the graph has a cycle or is out of order"
        } else {
            "nothing writes it"
        };
        self.refuse(format!("it reads {name:?}, but {why}"), "repair the file or export the network again")
    }
}

/// The name of a node; a nameless one is known by what it writes.
pub(crate) fn node_name(node: &NodeProto) -> &str {
    let written = node.output.first().map_or("", String::as_str);
    if node.name.is_empty() { written } else { &node.name }
}
