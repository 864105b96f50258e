//! Initializers → arrays whose extents and values agree.
use super::ImportError;
use crate::proto::{FLOAT, INT64, TensorProto};

/// Most elements of one array.
const MAX_ELEMENTS: usize = 1 << 27;
/// Most extents of one array.
const MAX_RANK: usize = 8;

/// A constant array of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    /// Name of the initializer.
    pub(crate) name: String,
    /// Extents.
    pub(crate) extents: Vec<usize>,
    /// Elements.
    pub(crate) elements: Elements,
}

/// Elements of one of the types that are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Elements {
    /// Weights.
    Float(Vec<f32>),
    /// Extents and axes.
    Whole(Vec<i64>),
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
            Some(elements) => Ok(Self { name: tensor.name.clone(), extents, elements }),
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

    /// Its values, if they are whole numbers.
    pub(crate) fn wholes(&self) -> Option<&[i64]> {
        match &self.elements {
            Elements::Whole(values) => Some(values),
            Elements::Float(_) => None,
        }
    }
}

impl Elements {
    fn len(&self) -> usize {
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

fn wholes(tensor: &TensorProto) -> Option<Vec<i64>> {
    if tensor.raw_data.is_empty() {
        return Some(tensor.int64_data.clone());
    }
    let (words, rest) = tensor.raw_data.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|&word| i64::from_le_bytes(word)).collect())
}
