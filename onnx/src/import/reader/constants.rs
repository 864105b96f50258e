//! The file's constants: bounds, axes, extents, and the weights that become parameters.
use super::{ImportError, Reader, Source};
use crate::import::constant::{Constant, Elements};

/// Most numbers of constants that the graph computes, all together.
const MAX_COMPUTED: usize = 1 << 24;

impl<'a> Reader<'a> {
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

    /// Whether a name is a constant vector of `len` numbers.
    pub(crate) fn is_vector(&self, name: &str, len: usize) -> bool {
        self.constants.get(name).is_some_and(|c| c.extents == [len] && c.floats().is_some())
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
    pub(super) fn weight(
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
        let constant = self.constants.get_mut(name).ok_or_else(|| {
            source.refuse(format!("weight {name:?} is not a constant"), "export the network again")
        })?;
        let last = self.readers.get(name).is_none_or(|readers| readers.len() == 1);
        match &mut constant.elements {
            Elements::Float(values) if long(&constant.extents) == long(extents) => {
                // A matrix that no one else reads is not kept beside the parameters.
                Ok(if last && long(extents).len() > 1 { std::mem::take(values) } else { values.clone() })
            }
            _ => Err(source.refuse(
                format!("weight {name:?} has extents {:?}, not f32 of {extents:?}", constant.extents),
                "export the network again",
            )),
        }
    }

    /// The constants that a node reads, if all its inputs are.
    pub(in crate::import) fn all_constants(&self, source: &Source<'a>) -> Option<Vec<&Constant>> {
        let names = source.node.input.iter().map(String::as_str);
        names.filter(|name| !name.is_empty()).map(|name| self.constants.get(name)).collect()
    }

    /// Remembers a constant that a node computes.
    pub(in crate::import) fn define_constant(
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
}
