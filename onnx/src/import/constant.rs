//! Initializers → arrays whose extents and values agree.
use super::ImportError;
use crate::proto::{BOOL, DOUBLE, FLOAT, GraphProto, INT32, INT64, TensorProto};

/// Most elements of one array.
const MAX_ELEMENTS: usize = 1 << 27;
/// Most extents of one array.
const MAX_RANK: usize = 8;

/// Most elements of an array of a type that only bounds and switches have.
const MAX_SMALL: usize = 16;

/// A constant array of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    /// Name of the initializer.
    pub(crate) name: String,
    /// Extents.
    pub(crate) extents: Vec<usize>,
    /// Elements.
    pub(crate) elements: Elements,
    /// Whether it is one number again and again, made by the graph: nothing that a network has learned.
    pub(crate) filled: bool,
}

/// Elements of one of the types that are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Elements {
    /// Weights.
    Float(Vec<f32>),
    /// Extents and axes; `None` is the number of samples.
    Whole(Vec<Option<i64>>),
}

impl Constant {
    /// Checks an initializer. Its values are finite and as many as its extents say.
    pub(crate) fn read(tensor: &TensorProto) -> Result<Self, ImportError> {
        let refuse = |why: String| ImportError::Constant { name: tensor.name.clone(), why };
        if tensor.data_location != 0 {
            return Err(refuse("its values lie in another file; export the network into one file".into()));
        }
        let (extents, count) = extents(&tensor.dims)
            .ok_or_else(|| refuse(format!("extents {:?} can't be meant", tensor.dims)))?;
        let elements = match tensor.data_type {
            FLOAT => floats(tensor).map(Elements::Float),
            INT64 => wholes(tensor).map(Elements::Whole),
            INT32 | BOOL | DOUBLE if count <= MAX_SMALL => small(tensor),
            other => {
                return Err(refuse(format!(
                    "element type {other} is not f32 (1) or i64 (7); export the network in f32"
                )));
            }
        };
        match elements {
            Some(elements) if elements.len() != count => {
                Err(refuse(format!("{} values for extents {extents:?}", elements.len())))
            }
            Some(elements) if !elements.finite() => Err(refuse("a value is not finite".into())),
            Some(elements) => Ok(Self { name: tensor.name.clone(), extents, elements, filled: false }),
            None => Err(refuse("its raw bytes are no whole number of elements".into())),
        }
    }

    /// Its values, if they are `f32`.
    pub(crate) fn floats(&self) -> Option<&[f32]> {
        match &self.elements {
            Elements::Float(values) => Some(values),
            Elements::Whole(_) => None,
        }
    }

    /// Its values, if they are whole numbers, none of which depends on the number of samples.
    pub(crate) fn wholes(&self) -> Option<Vec<i64>> {
        self.counts()?.iter().copied().collect()
    }

    /// Its values, if they are whole numbers; `None` is the number of samples.
    pub(crate) fn counts(&self) -> Option<&[Option<i64>]> {
        match &self.elements {
            Elements::Whole(values) => Some(values),
            Elements::Float(_) => None,
        }
    }

    /// A vector, or a single number, of whole numbers.
    pub(crate) fn of_counts(values: Vec<Option<i64>>, scalar: bool) -> Self {
        let extents = if scalar { vec![] } else { vec![values.len()] };
        Self { name: String::new(), extents, elements: Elements::Whole(values), filled: false }
    }

    /// The same elements in other extents, of the same number.
    pub(crate) fn reshaped(&self, extents: Vec<usize>) -> Option<Self> {
        let count = extents.iter().try_fold(1_usize, |n, &e| n.checked_mul(e))?;
        (count == self.elements.len()).then(|| Self { extents, ..self.clone() })
    }
}

impl Elements {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Whole(values) => values.len(),
        }
    }

    fn finite(&self) -> bool {
        match self {
            Self::Float(values) => values.iter().all(|v| v.is_finite()),
            Self::Whole(_) => true,
        }
    }
}

/// Reads all initializers. Their bytes are dropped one by one: no board has memory for a network's numbers twice over.
pub(super) fn take(graph: &mut GraphProto) -> Result<Vec<Constant>, ImportError> {
    let mut take = |tensor: &mut TensorProto| {
        let constant = Constant::read(tensor)?;
        (tensor.raw_data, tensor.float_data) = (vec![], vec![]);
        Ok(constant)
    };
    graph.initializer.iter_mut().map(&mut take).collect()
}

fn extents(dims: &[i64]) -> Option<(Vec<usize>, usize)> {
    let extents = dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>()?;
    let count = extents.iter().try_fold(1_usize, |n, &e| n.checked_mul(e)).filter(|&n| n <= MAX_ELEMENTS)?;
    (extents.len() <= MAX_RANK).then_some((extents, count))
}

fn floats(tensor: &TensorProto) -> Option<Vec<f32>> {
    if tensor.raw_data.is_empty() {
        return Some(tensor.float_data.clone());
    }
    let (words, rest) = tensor.raw_data.as_chunks::<4>();
    rest.is_empty().then(|| words.iter().map(|&word| f32::from_le_bytes(word)).collect())
}

fn wholes(tensor: &TensorProto) -> Option<Vec<Option<i64>>> {
    if tensor.raw_data.is_empty() {
        return Some(tensor.int64_data.iter().copied().map(Some).collect());
    }
    let (words, rest) = tensor.raw_data.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|&word| Some(i64::from_le_bytes(word))).collect())
}

/// Bounds in `f64`, axes in `i32`, switches.
fn small(tensor: &TensorProto) -> Option<Elements> {
    let raw = &tensor.raw_data;
    let whole = |values: Vec<i64>| Elements::Whole(values.into_iter().map(Some).collect());
    Some(match tensor.data_type {
        DOUBLE if raw.is_empty() => Elements::Float(tensor.double_data.iter().map(|&v| v as f32).collect()),
        DOUBLE => {
            let (words, rest) = raw.as_chunks::<8>();
            rest.is_empty().then_some(())?;
            Elements::Float(words.iter().map(|&word| f64::from_le_bytes(word) as f32).collect())
        }
        _ if raw.is_empty() => whole(tensor.int32_data.iter().map(|&v| v.into()).collect()),
        BOOL => whole(raw.iter().map(|&b| b.into()).collect()),
        _ => {
            let (words, rest) = raw.as_chunks::<4>();
            rest.is_empty().then_some(())?;
            whole(words.iter().map(|&word| i32::from_le_bytes(word).into()).collect())
        }
    })
}
