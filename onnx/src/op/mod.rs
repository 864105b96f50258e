//! Each operator once, with both its directions: a node of [`models::nn::Graph`] → nodes of a file, and back.
mod arithmetic;
mod conv;
mod linear;
mod norm;
mod pool;
mod shape;
mod softmax;

use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use models::nn::Op;
use models::nn::graph::Node;

/// Writes one node.
pub(crate) fn export(writer: &mut Writer<'_>, node: &Node) -> Result<Value, ExportError> {
    match &node.op {
        Op::Input | Op::Dropout { .. } => Ok(writer.input(node, 0)),
        Op::Conditioning => Err(ExportError::Conditioning { node: node.name.clone() }),
        Op::Conv2d(conv) => conv::export(writer, node, conv),
        Op::Linear { .. } => Ok(linear::export(writer, node)),
        Op::BatchNorm { epsilon } => Ok(norm::export_batch(writer, node, *epsilon)),
        Op::GroupNorm { groups, epsilon } => Ok(norm::export_group(writer, node, *groups, *epsilon)),
        Op::Relu => Ok(arithmetic::export_relu(writer, node)),
        Op::Add => Ok(arithmetic::export_add(writer, node)),
        Op::Scale(factor) => Ok(arithmetic::export_scale(writer, node, *factor)),
        Op::MaxPool(window) => pool::export(writer, node, "MaxPool", window),
        Op::AvgPool(window) => pool::export(writer, node, "AveragePool", window),
        Op::Flatten => Ok(shape::export_flatten(writer, node)),
        Op::Concat => Ok(shape::export_concat(writer, node)),
        Op::Softmax => Ok(softmax::export(writer, node)),
        Op::Log => Ok(softmax::export_log(writer, node)),
    }
}

/// Reads one node of a file.
pub(crate) type Importer = for<'a> fn(&mut Reader<'a>, &Source<'a>) -> Result<Partial, ImportError>;

/// Every operator that is read, by its name in the file.
pub(crate) const IMPORTERS: [(&str, Importer); 16] = [
    ("Add", arithmetic::import_add),
    ("AveragePool", pool::import_average),
    ("BatchNormalization", norm::import_batch),
    ("Clip", softmax::import_clip),
    ("Concat", shape::import_concat),
    ("Conv", conv::import),
    ("Flatten", shape::import_flatten),
    ("Gemm", linear::import),
    ("Identity", shape::import_identity),
    ("InstanceNormalization", norm::import_instance),
    ("Log", softmax::import_log),
    ("MaxPool", pool::import_max),
    ("Mul", arithmetic::import_mul),
    ("Relu", arithmetic::import_relu),
    ("Reshape", norm::import_reshape),
    ("Softmax", softmax::import),
];
