//! The nodes that come of it.
use super::{ImportError, Reader, Source, within};
use crate::import::partial::{Partial, Value};
use models::nn::graph::Dims;
use models::nn::{NodeId, Op};

impl<'a> Reader<'a> {
    /// Adds a node; its parameters must have been taken.
    pub(crate) fn add(
        &mut self,
        source: &Source<'a>,
        op: Op,
        inputs: &[Value],
    ) -> Result<Partial, ImportError> {
        self.add_as(&self.layer(source), op, inputs)
    }

    /// The name of the layer that a node is: that of its weight, as PyTorch has it, or its own.
    fn layer(&self, source: &Source<'a>) -> String {
        let mut read = source.node.input.iter().filter_map(|name| self.constants.get(name.as_str()));
        let of_weight = read.find_map(|constant| constant.name.strip_suffix(".weight"));
        of_weight.unwrap_or(source.name()).to_owned()
    }

    /// Adds a node of this name, made unique.
    pub(crate) fn add_as(&mut self, name: &str, op: Op, inputs: &[Value]) -> Result<Partial, ImportError> {
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.names.contains(name));
        let name = free.unwrap_or_else(|| unreachable!("there is always another number"));
        let ids: Vec<NodeId> = inputs.iter().map(|value| value.id).collect();
        let id = self.builder.add(&name, op, &ids)?;
        self.names.insert(name);
        let Dims { channels, height, width } = self.builder.dims(id);
        let size = channels.checked_mul(height).and_then(|n| n.checked_mul(width)).unwrap_or(usize::MAX);
        self.activations = within("numbers computed for one sample", self.activations.saturating_add(size))?;
        let flat = matches!(op, Op::Flatten | Op::Linear { .. });
        let rank = if flat { 1 } else { inputs.iter().map(|value| value.rank).max().unwrap_or(1) };
        Ok(Partial::Value(Value { id, rank }))
    }

    /// Adds a node that another one reads at once.
    pub(crate) fn step(
        &mut self,
        source: &Source<'a>,
        what: &str,
        op: Op,
        input: Value,
    ) -> Result<Value, ImportError> {
        match self.add_as(&format!("{}/{what}", source.name()), op, &[input])? {
            Partial::Value(value) => Ok(value),
            _ => unreachable!("a node is a value"),
        }
    }

    /// Adds a group norm with the constants of these names.
    pub(crate) fn group_norm(
        &mut self,
        source: &Source<'a>,
        of: Value,
        groups: usize,
        epsilon: f32,
        weight: &str,
        bias: &str,
    ) -> Result<Partial, ImportError> {
        let channels = self.channels(of);
        for name in [weight, bias] {
            let values = self.weight(source, name, &[channels])?;
            self.parameters.extend(values);
        }
        let given = self.constants.get(weight).and_then(|constant| constant.name.strip_suffix(".weight"));
        let name = given.unwrap_or(source.name()).to_owned();
        self.add_as(&name, Op::GroupNorm { groups, epsilon }, &[of])
    }
}
