//! An ONNX file as a graph of [`models::nn`] with its parameters. Files are taken as hostile: sizes are checked before
//! anything is allocated, and a refusal names the node, its operator and what could be done.
mod attributes;
mod constant;
mod error;
mod reader;
mod source;

pub use error::ImportError;
pub(crate) use reader::{Partial, Reader};
pub(crate) use source::Source;

use crate::metadata::Metadata;
use crate::network::Network;
use crate::op::IMPORTERS;
use crate::proto::{self, Dimension, FLOAT, GraphProto, ModelProto, ValueInfoProto};
use std::collections::BTreeSet;

/// Operator sets that are read: in these, the operators known here mean the same.
const OPSETS: std::ops::RangeInclusive<i64> = 13..=21;

/// Reads a file.
///
/// # Errors
/// [`ImportError`].
pub fn import(bytes: &[u8]) -> Result<Network, ImportError> {
    let model = proto::decode(bytes)?;
    check_opset(&model)?;
    let metadata = Metadata::of_props(&model.metadata_props)?;
    let graph = model.graph.ok_or_else(|| ImportError::Interface { why: "it has no graph".into() })?;
    let (name, extents) = input(&graph)?;
    let mut reader = Reader::new(&graph, name, extents)?;
    for source in (0..graph.node.len()).map(|index| Source::new(&graph, index)) {
        let importer = IMPORTERS.iter().find(|(op, _)| *op == source.op() && source.standard());
        let (_, import) = importer.ok_or_else(|| source.unknown())?;
        let value = import(&mut reader, &source)?;
        reader.define(&source, value)?;
    }
    let outputs: Vec<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let (graph, values) = reader.finish(&outputs)?;
    Ok(Network { graph, values, outputs, metadata })
}

fn check_opset(model: &ModelProto) -> Result<(), ImportError> {
    let standard = model.opset_import.iter().find(|set| proto::is_standard(&set.domain));
    match standard.map(|set| set.version) {
        Some(version) if OPSETS.contains(&version) => Ok(()),
        version => {
            Err(ImportError::Opset { got: version.unwrap_or(0), first: *OPSETS.start(), last: *OPSETS.end() })
        }
    }
}

/// The only input that is not a constant, `[N, channels, height, width]` in `f32`.
fn input(graph: &GraphProto) -> Result<(&str, [usize; 3]), ImportError> {
    let constants: BTreeSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    let free: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|input| !constants.contains(input.name.as_str())).collect();
    let refuse = |why: String| Err(ImportError::Interface { why });
    let [input] = free.as_slice() else {
        let names: Vec<&str> = free.iter().map(|input| input.name.as_str()).collect();
        return refuse(format!("it has the inputs {names:?}; one is needed"));
    };
    match extents(input) {
        Some(extents) => Ok((&input.name, extents)),
        None => refuse(format!(
            "its input {:?} is not f32 of [N, channels, height, width] with known extents",
            input.name
        )),
    }
}

fn extents(input: &ValueInfoProto) -> Option<[usize; 3]> {
    let tensor = input.r#type.as_ref()?.tensor_type.as_ref().filter(|tensor| tensor.elem_type == FLOAT)?;
    let [_, channels, height, width] = tensor.shape.as_ref()?.dim.as_slice() else { return None };
    let known = [channels, height, width].map(|dim| match dim.value {
        Some(Dimension::Value(extent)) => usize::try_from(extent).ok().filter(|&e| e > 0),
        _ => None,
    });
    let [Some(channels), Some(height), Some(width)] = known else { return None };
    Some([channels, height, width])
}
