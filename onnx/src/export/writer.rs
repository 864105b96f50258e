//! The file being written: nodes and constants, in order, every name once.
use super::ExportError;
use crate::import::STATISTICS;
use crate::network::Network;
use crate::proto::{
    AttributeProto, GraphProto, IR_VERSION, ModelProto, NodeProto, OPSET, OperatorSetIdProto, TensorProto,
    ValueInfoProto,
};
use crate::runtime::contract::INPUT;
use models::nn::NodeId;
use models::nn::graph::{Dims, Node};
use prost::Message;
use std::collections::BTreeSet;

/// What a node of the graph is called in the file.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// Name.
    pub(crate) name: String,
    /// Whether it is `[N, width]`, not `[N, channels, height, width]`.
    pub(crate) flat: bool,
}

/// The file being written.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    network: &'a Network,
    graph: GraphProto,
    values: Vec<Value>,
    taken: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(network: &'a Network) -> Result<Self, ExportError> {
        let (expected, got) = (network.graph.len(), network.values.len());
        if expected != got {
            return Err(ExportError::Mismatch { what: "the network", expected, got });
        }
        let inputs = [INPUT, STATISTICS].map(str::to_owned);
        let taken = network.outputs.iter().cloned().chain(inputs).collect();
        let graph = GraphProto { name: network.metadata.arch.clone(), ..GraphProto::default() };
        let values = vec![Value { name: INPUT.into(), flat: false }];
        Ok(Self { network, graph, values, taken })
    }

    pub(super) fn define(&mut self, index: usize, value: Value) {
        debug_assert_eq!(index, self.values.len(), "nodes are written in their order");
        self.values.push(value);
    }

    /// Input number `which` of a node, as it is.
    pub(crate) fn input(&self, node: &Node, which: usize) -> Value {
        self.values[node.inputs[which].0].clone()
    }

    /// Input number `which` of a node, flattened if it isn't yet.
    pub(crate) fn flat(&mut self, node: &Node, which: usize) -> String {
        self.flattened(node.inputs[which], &node.name)
    }

    /// Input number `which` of a node with rows and columns: a vector becomes a plane of one pixel.
    pub(crate) fn image(&mut self, node: &Node, which: usize) -> String {
        let (Value { name, flat }, dims) = (self.input(node, which), self.dims(node, which));
        if !flat {
            return name;
        }
        let extents = [0, dims.channels as i64, dims.height as i64, dims.width as i64];
        let plane = format!("{}/plane", node.name);
        let extents = self.constant(|name| TensorProto::whole(name, &extents), &format!("{plane}.extents"));
        self.emit("Reshape", &plane, vec![name, extents], vec![])
    }

    fn flattened(&mut self, id: NodeId, for_node: &str) -> String {
        match self.values[id.0].clone() {
            Value { name, flat: true } => name,
            Value { name, .. } => self.emit(
                "Flatten",
                &format!("{for_node}/flatten"),
                vec![name],
                vec![AttributeProto::int("axis", 1)],
            ),
        }
    }

    /// Extents of an input of a node.
    pub(crate) fn dims(&self, node: &Node, which: usize) -> Dims {
        self.network.graph.node(node.inputs[which]).dims
    }

    /// Writes a node; its value has its name (made unique).
    pub(crate) fn emit(
        &mut self,
        op_type: &str,
        name: &str,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
    ) -> String {
        let name = self.unique(name);
        let output = vec![name.clone()];
        self.graph.node.push(NodeProto {
            input,
            output,
            name: name.clone(),
            op_type: op_type.into(),
            attribute,
            domain: String::new(),
        });
        name
    }

    /// Writes parameter number `which` of a node, if it has one, in these extents (its own if `None`).
    pub(crate) fn parameter(
        &mut self,
        node: &Node,
        which: usize,
        extents: Option<&[usize]>,
    ) -> Option<String> {
        let network = self.network;
        let entry = &network.graph.entries()[*node.entries.get(which)?];
        let extents = extents.unwrap_or(entry.shape.extents());
        Some(self.constant(
            |name| TensorProto::floats(name, extents, &network.values[entry.range.clone()]),
            &entry.name,
        ))
    }

    /// Writes a constant.
    pub(crate) fn constant(&mut self, tensor: impl FnOnce(String) -> TensorProto, name: &str) -> String {
        let name = self.unique(name);
        self.graph.initializer.push(tensor(name.clone()));
        name
    }

    fn unique(&mut self, name: &str) -> String {
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.taken.contains(name));
        let name = free.unwrap_or_else(|| unreachable!("there is always another number"));
        self.taken.insert(name.clone());
        name
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let outputs: Vec<_> =
            self.network.graph.outputs().iter().copied().zip(&self.network.outputs).collect();
        for (id, output) in outputs {
            let value = self.flattened(id, output);
            self.name_output(&value, output);
            let width = self.network.graph.node(id).dims.len();
            self.graph.output.push(ValueInfoProto::batch_of(output, &[width]));
        }
        let input = self.network.graph.input();
        self.graph.input.push(ValueInfoProto::batch_of(INPUT, &[input.channels, input.height, input.width]));
        let statistics = Some(self.network.graph.statistics()).filter(|&width| width > 0);
        self.graph.input.extend(statistics.map(|width| ValueInfoProto::batch_of(STATISTICS, &[width])));
        let model = ModelProto {
            ir_version: IR_VERSION,
            producer_name: "spectra".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            graph: Some(self.graph),
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
            metadata_props: self.network.metadata.to_props(),
        };
        model.encode_to_vec()
    }

    /// Gives a value the name of an output, wherever it is written or read; a value that can't lose its name is copied.
    fn name_output(&mut self, value: &str, output: &str) {
        let fixed = self.graph.output.iter().any(|o| o.name == value) || [INPUT, STATISTICS].contains(&value);
        if fixed {
            let (input, name) = (vec![value.to_owned()], format!("{output}/identity"));
            self.emit("Identity", &name, input, vec![]);
            return self.name_output(&name, output);
        }
        let values =
            self.graph.node.iter_mut().flat_map(|node| node.input.iter_mut().chain(&mut node.output));
        values.filter(|name| *name == value).for_each(|name| output.clone_into(name));
        self.values.iter_mut().filter(|v| v.name == value).for_each(|v| output.clone_into(&mut v.name));
    }
}
