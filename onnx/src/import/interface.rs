//! Inputs and outputs of a file's graph.
use super::ImportError;
use crate::proto::{Dimension, FLOAT, GraphProto, ValueInfoProto};
use std::collections::BTreeSet;

/// Name of the input for a client's statistics.
pub(crate) const STATISTICS: &str = "statistics";

/// What a graph reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface<'a> {
    /// Name of the input for samples.
    pub(crate) name: &'a str,
    /// Channels, rows, columns.
    pub(crate) input: [usize; 3],
    /// Axes of a sample in the file: 1 a vector, 2 a signal in time, 3 a plane.
    pub(crate) rank: usize,
    /// The number of samples, where the file has a fixed one.
    pub(crate) samples: Option<i64>,
    /// Width of the input for statistics, 0 if there is none.
    pub(crate) statistics: usize,
}

impl<'a> Interface<'a> {
    /// The inputs that are no constants: samples in `f32`, `[N, width]`, `[N, channels, time]` or
    /// `[N, channels, rows, columns]`, and perhaps `statistics` `[N, width]`.
    pub(crate) fn of(graph: &'a GraphProto) -> Result<Self, ImportError> {
        let constants: BTreeSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        let free = || graph.input.iter().filter(|input| !constants.contains(input.name.as_str()));
        let samples: Vec<&ValueInfoProto> = free().filter(|input| input.name != STATISTICS).collect();
        let refuse = |why: String| ImportError::Interface { why };
        let &[input] = samples.as_slice() else {
            let names: Vec<&str> = free().map(|input| input.name.as_str()).collect();
            return Err(refuse(format!(
                "it has the inputs {names:?}; one is needed, and beside it only \"statistics\" can be used"
            )));
        };
        let axes = extents(input).ok_or_else(|| {
            refuse(format!(
                "its input {:?} is not f32 of [N, width], [N, channels, time] or [N, channels, height, width] with known extents",
                input.name
            ))
        })?;
        let statistics = match free().find(|input| input.name == STATISTICS).map(extents) {
            None => 0,
            Some(Some(([width, 1, 1], 1, _))) if width <= 1 << 16 => width,
            Some(_) => {
                return Err(refuse(
                    "its input \"statistics\" is not f32 of [N, width] with a known width".into(),
                ));
            }
        };
        let (dims, rank, samples) = axes;
        Ok(Self { name: &input.name, input: dims, rank, samples, statistics })
    }
}

fn extents(input: &ValueInfoProto) -> Option<([usize; 3], usize, Option<i64>)> {
    let tensor = input.r#type.as_ref()?.tensor_type.as_ref().filter(|tensor| tensor.elem_type == FLOAT)?;
    let [samples, axes @ ..] = tensor.shape.as_ref()?.dim.as_slice() else { return None };
    let known = |value: &Option<Dimension>| match value {
        Some(Dimension::Value(extent)) => Some(*extent),
        _ => None,
    };
    let positive = |extent: i64| usize::try_from(extent).ok().filter(|&e| e > 0);
    let extents = axes.iter().map(|dim| known(&dim.value).and_then(positive)).collect::<Option<Vec<_>>>()?;
    let dims = match extents[..] {
        [width] => [width, 1, 1],
        [channels, time] => [channels, 1, time],
        [channels, height, width] => [channels, height, width],
        _ => return None,
    };
    Some((dims, extents.len(), known(&samples.value)))
}
