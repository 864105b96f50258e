//! The graph being read: what each name of the file has become so far.
mod constants;
mod nodes;

use super::constant::Constant;
use super::interface::Interface;
use super::partial::{Partial, Value};
use super::{ImportError, Source};
use crate::proto::{GraphProto, NodeProto};
use models::nn::graph::Dims;
use models::nn::{Graph, GraphBuilder, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Most numbers in one sample's activations, all nodes together.
const MAX_ACTIVATIONS: usize = 1 << 26;

/// The graph being read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    builder: GraphBuilder,
    parameters: Vec<f32>,
    values: BTreeMap<&'a str, Partial>,
    constants: BTreeMap<&'a str, Constant>,
    spent: BTreeSet<String>,
    names: BTreeSet<String>,
    readers: BTreeMap<&'a str, Vec<&'a NodeProto>>,
    samples: Option<i64>,
    activations: usize,
    computed: usize,
}

impl<'a> Reader<'a> {
    /// `read` are the graph's initializers, in their order.
    pub(super) fn new(
        graph: &'a GraphProto,
        read: Vec<Constant>,
        interface: &Interface<'a>,
    ) -> Result<Self, ImportError> {
        let floats = read.iter().filter_map(Constant::floats).map(<[f32]>::len).sum();
        let mut constants = BTreeMap::new();
        for (tensor, constant) in graph.initializer.iter().zip(read) {
            if constants.insert(tensor.name.as_str(), constant).is_some() {
                return Err(ImportError::Constant {
                    name: tensor.name.clone(),
                    why: "there are two of this name".into(),
                });
            }
        }
        let mut readers: BTreeMap<&str, Vec<&NodeProto>> = BTreeMap::new();
        for (node, name) in graph.node.iter().flat_map(|node| node.input.iter().map(move |i| (node, i))) {
            readers.entry(name).or_default().push(node);
        }
        let size = interface.input.iter().try_fold(1_usize, |n, &e| n.checked_mul(e)).unwrap_or(usize::MAX);
        let activations = within("numbers of one sample", size.saturating_add(interface.statistics))?;
        let builder = GraphBuilder::new(interface.input, interface.statistics);
        let sample = Value { id: builder.input(), rank: interface.rank };
        let mut values = BTreeMap::from([(interface.name, Partial::Value(sample))]);
        if let Some(id) = builder.conditioning() {
            values.insert(super::interface::STATISTICS, Partial::Value(Value { id, rank: 1 }));
        }
        let (parameters, spent, names) = (Vec::with_capacity(floats), BTreeSet::new(), BTreeSet::new());
        let samples = interface.samples;
        Ok(Self {
            builder,
            parameters,
            values,
            constants,
            spent,
            names,
            readers,
            samples,
            activations,
            computed: 0,
        })
    }

    /// The number of samples, where the file has a fixed one.
    pub(crate) fn samples(&self) -> Option<i64> {
        self.samples
    }

    /// What input number `which` of a node is so far.
    pub(crate) fn partial(&self, source: &Source<'a>, which: usize) -> Result<Partial, ImportError> {
        let name = source.input(which)?;
        self.values.get(name).cloned().ok_or_else(|| match self.constants.contains_key(name) {
            true => source.refuse(format!("{name:?} is a constant"), "only weights may be constants"),
            false => source.absent(name),
        })
    }

    /// The node that input number `which` is.
    pub(crate) fn value(&self, source: &Source<'a>, which: usize) -> Result<Value, ImportError> {
        match self.partial(source, which)? {
            Partial::Value(value) => Ok(value),
            other => Err(self.unfinished(source, &other)),
        }
    }

    /// The value of a name, if it has one already.
    pub(super) fn known(&self, name: &str) -> Option<Value> {
        match self.values.get(name) {
            Some(Partial::Value(value)) => Some(*value),
            _ => None,
        }
    }

    /// The refusal of a node that reads a step of something else.
    pub(crate) fn unfinished(&self, source: &Source<'a>, partial: &Partial) -> ImportError {
        let (what, written) = partial.step();
        source.refuse(
            format!("it reads what is only a step of {what}"),
            &format!("write that operation out as {written}"),
        )
    }

    /// The only node that reads what this one writes.
    pub(crate) fn sole_reader(&self, source: &Source<'a>) -> Option<&'a NodeProto> {
        let written = source.node.output.first()?;
        match self.readers.get(written.as_str())?.as_slice() {
            &[reader] => Some(reader),
            _ => None,
        }
    }

    /// Extents of a node.
    pub(crate) fn dims(&self, value: Value) -> Dims {
        self.builder.dims(value.id)
    }

    /// Extents of a value as the file has them, without the axis of samples.
    pub(crate) fn axes(&self, value: Value) -> Vec<usize> {
        let Dims { channels, height, width } = self.dims(value);
        match value.rank {
            1 => vec![channels],
            2 => vec![channels, width],
            _ => vec![channels, height, width],
        }
    }

    /// Channels of a node.
    pub(crate) fn channels(&self, value: Value) -> usize {
        self.dims(value).channels
    }

    /// Numbers in a node's value.
    pub(crate) fn len(&self, value: Value) -> usize {
        self.dims(value).len()
    }

    /// Remembers what a node writes. Other outputs than the first (a norm's statistics, a dropout's mask) can't be read.
    pub(super) fn define(&mut self, source: &Source<'a>, value: Partial) -> Result<(), ImportError> {
        let name = self.fresh(source)?;
        self.values.insert(name, value);
        Ok(())
    }

    /// The name that a node writes, if nobody has written it yet.
    fn fresh(&self, source: &Source<'a>) -> Result<&'a str, ImportError> {
        let Some((name, others)) = source.node.output.split_first() else {
            return Err(source.refuse("it has 0 outputs".into(), "repair the file"));
        };
        if let Some(read) = others.iter().find(|other| self.readers.contains_key(other.as_str())) {
            return Err(source.refuse(
                format!("another node reads its output {read:?}"),
                "only the first output of a node is read",
            ));
        }
        if self.constants.contains_key(name.as_str()) || self.values.contains_key(name.as_str()) {
            return Err(source.refuse(
                format!("it writes {name:?}, which is already there"),
                "repair the file or export the network again",
            ));
        }
        Ok(name)
    }

    pub(super) fn finish(self, outputs: &[String]) -> Result<(Graph, Vec<f32>), ImportError> {
        let find = |name: &String| match self.values.get(name.as_str()) {
            Some(Partial::Value(value)) => Ok(value.id),
            _ => Err(ImportError::Interface { why: format!("nothing writes its output {name:?}") }),
        };
        let ids = outputs.iter().map(find).collect::<Result<Vec<NodeId>, _>>()?;
        if ids.is_empty() {
            return Err(ImportError::Interface { why: "it has no output".into() });
        }
        Ok((self.builder.finish(&ids), self.parameters))
    }
}

fn within(what: &'static str, got: usize) -> Result<usize, ImportError> {
    if got <= MAX_ACTIVATIONS {
        Ok(got)
    } else {
        Err(ImportError::TooLarge { what, got, max: MAX_ACTIVATIONS })
    }
}
