//! The graph being read: what each name of the file has become so far.
use super::constant::Constant;
use super::{ImportError, Source};
use crate::proto::GraphProto;
use models::nn::graph::Dims;
use models::nn::{Graph, GraphBuilder, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Most numbers in one sample's activations, all nodes together.
const MAX_ACTIVATIONS: usize = 1 << 26;

/// What a value of the file is: a node, or a step on the way to one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Partial {
    /// A node.
    Value(NodeId),
    /// A group norm whose channels are in groups.
    Grouped {
        /// What is normalised.
        of: NodeId,
        /// Groups.
        groups: usize,
    },
    /// … and normalised.
    Normalised {
        /// What is normalised.
        of: NodeId,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// … and channels again.
    Restored {
        /// What is normalised.
        of: NodeId,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// … and weighted.
    Weighted {
        /// What is normalised.
        of: NodeId,
        /// Groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f32,
        /// The constant that holds the weights.
        weight: String,
    },
    /// Probabilities with a floor, for a logarithm.
    Floored(NodeId),
}

/// The graph being read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    builder: GraphBuilder,
    parameters: Vec<f32>,
    values: BTreeMap<&'a str, Partial>,
    constants: BTreeMap<&'a str, Constant>,
    spent: BTreeSet<&'a str>,
    activations: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        graph: &'a GraphProto,
        input: &'a str,
        extents: [usize; 3],
    ) -> Result<Self, ImportError> {
        let mut constants = BTreeMap::new();
        for tensor in &graph.initializer {
            if constants.insert(tensor.name.as_str(), Constant::read(tensor)?).is_some() {
                return Err(ImportError::Constant {
                    name: tensor.name.clone(),
                    why: "there are two of this name".into(),
                });
            }
        }
        let size = extents.iter().try_fold(1_usize, |n, &e| n.checked_mul(e)).unwrap_or(usize::MAX);
        let activations = within("numbers of one sample", size)?;
        let builder = GraphBuilder::new(extents, 0);
        let values = BTreeMap::from([(input, Partial::Value(builder.input()))]);
        Ok(Self { builder, parameters: Vec::new(), values, constants, spent: BTreeSet::new(), activations })
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
    pub(crate) fn value(&self, source: &Source<'a>, which: usize) -> Result<NodeId, ImportError> {
        match self.partial(source, which)? {
            Partial::Value(id) => Ok(id),
            other => Err(self.unfinished(source, &other)),
        }
    }

    /// The refusal of a node that reads a step of a normalisation or of a logarithm.
    pub(crate) fn unfinished(&self, source: &Source<'a>, partial: &Partial) -> ImportError {
        let what =
            if matches!(partial, Partial::Floored(_)) { "a logarithm" } else { "a group normalisation" };
        source.refuse(
            format!("it reads what is only a step of {what}"),
            "write that operation out as Reshape, InstanceNormalization, Reshape, Mul, Add, or as Clip, Log",
        )
    }

    fn constant(&self, source: &Source<'a>, which: usize) -> Result<&Constant, ImportError> {
        let name = source.input(which)?;
        self.constants.get(name).ok_or_else(|| match self.values.contains_key(name) {
            true => source.refuse(format!("input {name:?} is computed"), "only a constant is read here"),
            false => source.absent(name),
        })
    }

    /// Extents of the constant that input number `which` is.
    pub(crate) fn extents(&self, source: &Source<'a>, which: usize) -> Result<Vec<usize>, ImportError> {
        Ok(self.constant(source, which)?.extents.clone())
    }

    /// The whole numbers that input number `which` is.
    pub(crate) fn wholes(&self, source: &Source<'a>, which: usize) -> Result<Vec<i64>, ImportError> {
        let wholes = self.constant(source, which)?.wholes();
        wholes
            .map(<[i64]>::to_vec)
            .ok_or_else(|| source.refuse(format!("input {which} is not i64"), "export the network again"))
    }

    /// The one number that input number `which` is.
    pub(crate) fn scalar(&self, source: &Source<'a>, which: usize) -> Result<f32, ImportError> {
        match self.constant(source, which)?.floats() {
            Some([value]) => Ok(*value),
            _ => Err(source
                .refuse(format!("input {which} is not one f32"), "only a product with one number is read")),
        }
    }

    /// Checks that input number `which` is all `only`.
    pub(crate) fn constant_is(
        &self,
        source: &Source<'a>,
        which: usize,
        extents: &[usize],
        only: f32,
    ) -> Result<(), ImportError> {
        let constant = self.constant(source, which)?;
        let same = constant.floats().is_some_and(|values| values.iter().all(|&v| v == only));
        if same && constant.extents == extents {
            return Ok(());
        }
        Err(source.refuse(
            format!("input {which} is not all {only}"),
            "give each channel its weight and bias after the normalisation",
        ))
    }

    /// Takes input number `which` as the next parameter. Ones among its extents don't count: a group norm's weights are `[channels, 1, 1]`.
    pub(crate) fn parameter(
        &mut self,
        source: &Source<'a>,
        which: usize,
        extents: &[usize],
    ) -> Result<(), ImportError> {
        self.take(source, source.input(which)?, extents)
    }

    fn take(&mut self, source: &Source<'a>, name: &'a str, extents: &[usize]) -> Result<(), ImportError> {
        if !self.spent.insert(name) {
            return Err(source.refuse(
                format!("constant {name:?} is the weight of another node, too"),
                "give each node its own weights",
            ));
        }
        let constant = self.constants.get(name).ok_or_else(|| {
            source.refuse(format!("weight {name:?} is not a constant"), "export the network again")
        })?;
        let long = |extents: &[usize]| extents.iter().copied().filter(|&e| e != 1).collect::<Vec<_>>();
        match constant.floats() {
            Some(values) if long(&constant.extents) == long(extents) => {
                self.parameters.extend_from_slice(values);
                Ok(())
            }
            _ => Err(source.refuse(
                format!("weight {name:?} has extents {:?}, not f32 of {extents:?}", constant.extents),
                "export the network again",
            )),
        }
    }

    /// Adds a node; its parameters must have been taken.
    pub(crate) fn add(
        &mut self,
        source: &Source<'a>,
        op: Op,
        inputs: &[NodeId],
    ) -> Result<Partial, ImportError> {
        let id = self.builder.add(source.name(), op, inputs)?;
        let Dims { channels, height, width } = self.builder.dims(id);
        let size = channels.checked_mul(height).and_then(|n| n.checked_mul(width)).unwrap_or(usize::MAX);
        self.activations = within("numbers computed for one sample", self.activations.saturating_add(size))?;
        Ok(Partial::Value(id))
    }

    /// Adds a group norm with the constants of these names.
    pub(crate) fn group_norm(
        &mut self,
        source: &Source<'a>,
        of: NodeId,
        groups: usize,
        epsilon: f32,
        weight: &str,
        bias: &str,
    ) -> Result<Partial, ImportError> {
        let channels = self.channels(of);
        for name in [weight, bias] {
            let (&name, _) = self.constants.get_key_value(name).ok_or_else(|| {
                source.refuse(format!("{name:?} is not a constant"), "export the network again")
            })?;
            self.take(source, name, &[channels])?;
        }
        self.add(source, Op::GroupNorm { groups, epsilon }, &[of])
    }

    /// Channels of a node.
    pub(crate) fn channels(&self, id: NodeId) -> usize {
        self.builder.dims(id).channels
    }

    /// Numbers in a node's value.
    pub(crate) fn len(&self, id: NodeId) -> usize {
        self.builder.dims(id).len()
    }

    /// Whether `[0, channels, …]` are the extents of a node.
    pub(crate) fn keeps(&self, id: NodeId, target: &[i64]) -> bool {
        let Dims { channels, height, width } = self.builder.dims(id);
        let own = [channels as i64, height as i64, width as i64];
        target == [&[0], &own[..]].concat() || (height * width == 1 && target == [0, own[0]])
    }

    /// Remembers what a node writes.
    pub(super) fn define(&mut self, source: &Source<'a>, value: Partial) -> Result<(), ImportError> {
        let [name] = source.node.output.as_slice() else {
            return Err(source.refuse(
                format!("it has {} outputs", source.node.output.len()),
                "only nodes with one output are read",
            ));
        };
        if self.constants.contains_key(name.as_str()) || self.values.insert(name, value).is_some() {
            return Err(source.refuse(
                format!("it writes {name:?}, which is already there"),
                "repair the file or export the network again",
            ));
        }
        Ok(())
    }

    pub(super) fn finish(self, outputs: &[String]) -> Result<(Graph, Vec<f32>), ImportError> {
        let find = |name: &String| match self.values.get(name.as_str()) {
            Some(Partial::Value(id)) => Ok(*id),
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
