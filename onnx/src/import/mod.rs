//! An ONNX file as a graph of [`models::nn`] with its parameters. Files are taken as hostile: sizes are checked before
//! anything is allocated, and a refusal names the node, its operator and what could be done.
mod attributes;
mod constant;
mod error;
mod fold;
mod interface;
mod partial;
mod reader;
mod source;

pub use error::ImportError;
pub(crate) use interface::{Interface, STATISTICS};
pub(crate) use partial::{Draw, Partial, Value};
pub(crate) use reader::Reader;
pub(crate) use source::{Source, node_name};

use crate::metadata::Metadata;
use crate::network::Network;
use crate::op::IMPORTERS;
use crate::proto::{self, ModelProto};

/// Operator sets that are read: in these, the operators known here mean the same.
const OPSETS: std::ops::RangeInclusive<i64> = 13..=21;

/// Most nodes of a file.
pub(crate) const MAX_NODES: usize = 1 << 13;

/// Reads a file.
///
/// # Errors
/// [`ImportError`].
pub fn import(bytes: &[u8]) -> Result<Network, ImportError> {
    import_model(proto::decode(bytes)?)
}

/// The same of a file that is taken apart already.
pub(crate) fn import_model(model: ModelProto) -> Result<Network, ImportError> {
    let opset = opset(&model)?;
    let metadata = Metadata::of_props(&model.metadata_props)?;
    let mut graph = model.graph.ok_or_else(|| ImportError::Interface { why: "it has no graph".into() })?;
    if graph.node.len() > MAX_NODES {
        let (what, got, max) = ("the number of nodes", graph.node.len(), MAX_NODES);
        return Err(ImportError::TooLarge { what, got, max });
    }
    let constants = constant::take(&mut graph)?;
    let mut reader = Reader::new(&graph, constants, &Interface::of(&graph)?)?;
    for source in (0..graph.node.len()).map(|index| Source::new(&graph, index, opset)) {
        if let Some(constant) = fold::fold(&reader, &source)? {
            reader.define_constant(&source, constant)?;
            continue;
        }
        let importer = IMPORTERS.iter().find(|(op, _)| *op == source.op() && source.standard());
        let (_, import) = importer.ok_or_else(|| source.unknown())?;
        let value = import(&mut reader, &source)?;
        reader.define(&source, value)?;
    }
    let outputs: Vec<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let (graph, values) = reader.finish(&outputs)?;
    Ok(Network { graph, values, outputs, metadata })
}

fn opset(model: &ModelProto) -> Result<i64, ImportError> {
    let standard = model.opset_import.iter().find(|set| proto::is_standard(&set.domain));
    match standard.map(|set| set.version) {
        Some(version) if OPSETS.contains(&version) => Ok(version),
        version => {
            Err(ImportError::Opset { got: version.unwrap_or(0), first: *OPSETS.start(), last: *OPSETS.end() })
        }
    }
}
