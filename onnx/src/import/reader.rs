//! The graph being read: what each name of the file has become so far.
use super::constant::{Constant, Elements};
use super::interface::Interface;
use super::partial::{Partial, Value};
use super::{ImportError, Source};
use crate::proto::{GraphProto, NodeProto};
use models::nn::graph::Dims;
use models::nn::{Graph, GraphBuilder, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Most numbers in one sample's activations, all nodes together.
const MAX_ACTIVATIONS: usize = 1 << 26;
/// Most numbers of constants that the graph computes, all together.
const MAX_COMPUTED: usize = 1 << 24;

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
    pub(super) fn new(graph: &'a GraphProto, interface: &Interface<'a>) -> Result<Self, ImportError> {
        let mut constants = BTreeMap::new();
        for tensor in &graph.initializer {
            if constants.insert(tensor.name.as_str(), Constant::read(tensor)?).is_some() {
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
        let (parameters, spent, names) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
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

    /// The constant that input number `which` is.
    pub(crate) fn constant(&self, source: &Source<'a>, which: usize) -> Result<&Constant, ImportError> {
        let name = source.input(which)?;
        self.constants.get(name).ok_or_else(|| match self.values.contains_key(name) {
            true => source.refuse(format!("input {name:?} is computed"), "only a constant is read here"),
            false => source.absent(name),
        })
    }

    /// Which of the first two inputs is a constant, if one is.
    pub(crate) fn constant_side(&self, source: &Source<'a>) -> Option<usize> {
        (0..2).find(|&which| source.input(which).is_ok_and(|name| self.constants.contains_key(name)))
    }

    /// Extents of the constant that input number `which` is.
    pub(crate) fn extents(&self, source: &Source<'a>, which: usize) -> Result<Vec<usize>, ImportError> {
        Ok(self.constant(source, which)?.extents.clone())
    }

    /// The whole numbers that input number `which` is; `None` among them is the number of samples.
    pub(crate) fn counts(&self, source: &Source<'a>, which: usize) -> Result<Vec<Option<i64>>, ImportError> {
        let counts = self.constant(source, which)?.counts();
        counts
            .map(<[_]>::to_vec)
            .ok_or_else(|| source.refuse(format!("input {which} is not i64"), "export the network again"))
    }

    /// The whole numbers that input number `which` is.
    pub(crate) fn wholes(&self, source: &Source<'a>, which: usize) -> Result<Vec<i64>, ImportError> {
        let wholes = self.counts(source, which)?.into_iter().collect();
        let why = || format!("input {which} depends on the number of samples");
        Option::ok_or_else(wholes, || source.refuse(why(), "export it with constant axes and extents"))
    }

    /// The one number that input number `which` is.
    pub(crate) fn scalar(&self, source: &Source<'a>, which: usize) -> Result<f32, ImportError> {
        let constant = self.constant(source, which)?;
        match (constant.floats(), constant.wholes().as_deref()) {
            (Some([value]), _) => Ok(*value),
            (_, Some([value])) => Ok(*value as f32),
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

    /// Whether input number `which` is there and adds anything: exporters write out a bias of zeros where a network has none.
    pub(crate) fn has_bias(&self, source: &Source<'a>, which: usize) -> bool {
        let constant = source.input(which).ok().and_then(|name| self.constants.get(name));
        let nothing =
            |c: &Constant| c.filled && c.floats().is_some_and(|values| values.iter().all(|&v| v == 0.0));
        source.has(which) && !constant.is_some_and(nothing)
    }

    /// Takes input number `which` as the next parameter. Ones among its extents don't count: a group norm's weights are `[channels, 1, 1]`.
    pub(crate) fn parameter(
        &mut self,
        source: &Source<'a>,
        which: usize,
        extents: &[usize],
    ) -> Result<(), ImportError> {
        let values = self.weight(source, source.input(which)?, extents)?;
        self.parameters.extend(values);
        Ok(())
    }

    /// Takes the constant of this name, a matrix `[in, out]`, as the next parameter, `[out, in]`.
    pub(crate) fn transposed(
        &mut self,
        source: &Source<'a>,
        name: &str,
        [out, inputs]: [usize; 2],
    ) -> Result<(), ImportError> {
        let values = self.weight(source, name, &[inputs, out])?;
        self.parameters.extend((0..out).flat_map(|o| values.iter().skip(o).step_by(out)));
        Ok(())
    }

    /// The values of a constant that becomes a parameter. Exporters store equal vectors once, for many nodes; a matrix that
    /// two nodes read is meant to be one.
    fn weight(
        &mut self,
        source: &Source<'a>,
        name: &str,
        extents: &[usize],
    ) -> Result<Vec<f32>, ImportError> {
        let long = |extents: &[usize]| extents.iter().copied().filter(|&e| e != 1).collect::<Vec<_>>();
        let fresh = self.spent.insert(name.into());
        if !fresh && long(extents).len() > 1 {
            return Err(source.refuse(
                format!("constant {name:?} is the weight of another node, too"),
                "give each node its own weights",
            ));
        }
        let constant = self.constants.get(name).ok_or_else(|| {
            source.refuse(format!("weight {name:?} is not a constant"), "export the network again")
        })?;
        match constant.floats() {
            Some(values) if long(&constant.extents) == long(extents) => Ok(values.to_vec()),
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

    /// The only node that reads what this one writes.
    pub(crate) fn sole_reader(&self, source: &Source<'a>) -> Option<&'a NodeProto> {
        let written = source.node.output.first()?;
        match self.readers.get(written.as_str())?.as_slice() {
            &[reader] => Some(reader),
            _ => None,
        }
    }

    /// Whether a name is a constant vector of `len` numbers.
    pub(crate) fn is_vector(&self, name: &str, len: usize) -> bool {
        self.constants.get(name).is_some_and(|c| c.extents == [len] && c.floats().is_some())
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

    /// The constants that a node reads, if all its inputs are.
    pub(super) fn all_constants(&self, source: &Source<'a>) -> Option<Vec<&Constant>> {
        let names = source.node.input.iter().map(String::as_str);
        names.filter(|name| !name.is_empty()).map(|name| self.constants.get(name)).collect()
    }

    /// Remembers a constant that a node computes.
    pub(super) fn define_constant(
        &mut self,
        source: &Source<'a>,
        constant: Constant,
    ) -> Result<(), ImportError> {
        let name = self.fresh(source)?;
        self.computed = self.computed.saturating_add(constant.elements.len());
        if self.computed > MAX_COMPUTED {
            let (what, got) = ("numbers of computed constants", self.computed);
            return Err(ImportError::TooLarge { what, got, max: MAX_COMPUTED });
        }
        let finite = match &constant.elements {
            Elements::Float(values) => values.iter().all(|v| v.is_finite()),
            Elements::Whole(_) => true,
        };
        if !finite {
            return Err(source.refuse("it computes a number that is not finite".into(), "repair the file"));
        }
        self.constants.insert(name, constant);
        Ok(())
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
