//! Each operator once, with both its directions: a node of [`models::nn::Graph`] → nodes of a file, and back.
mod arithmetic;
mod conv;
mod curve;
mod dropout;
mod linear;
mod norm;
mod pool;
mod shape;
mod softmax;

use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, STATISTICS, Source};
use models::nn::Op;
use models::nn::graph::Node;

/// Writes one node.
pub(crate) fn export(writer: &mut Writer<'_>, node: &Node) -> Result<Value, ExportError> {
    match &node.op {
        Op::Input => Ok(writer.input(node, 0)),
        Op::Dropout { p } => Ok(dropout::export(writer, node, *p)),
        Op::Conditioning => Ok(Value { name: STATISTICS.into(), flat: true }),
        Op::Conv2d(conv) => conv::export(writer, node, conv),
        Op::Linear { .. } => Ok(linear::export(writer, node)),
        Op::BatchNorm { epsilon, momentum } => Ok(norm::export_batch(writer, node, *epsilon, *momentum)),
        Op::GroupNorm { groups, epsilon } => Ok(norm::export_group(writer, node, *groups, *epsilon)),
        Op::Relu => Ok(arithmetic::export_relu(writer, node)),
        Op::Curve(curve) => Ok(curve::export(writer, node, *curve)),
        Op::Pad(sides) => shape::export_pad(writer, node, *sides),
        Op::Add => Ok(arithmetic::export_add(writer, node)),
        Op::Mul => Ok(arithmetic::export_mul(writer, node)),
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

/// Every operator that is read, by its name in the file; beside them, what computes constants.
pub(crate) const IMPORTERS: [(&str, Importer); 37] = [
    ("Add", arithmetic::import_add),
    ("AveragePool", pool::import_average),
    ("BatchNormalization", norm::import_batch),
    ("Cast", dropout::import_cast),
    ("CastLike", dropout::import_cast_like),
    ("Clip", curve::import_clip),
    ("Concat", shape::import_concat),
    ("Conv", conv::import),
    ("Div", arithmetic::import_div),
    ("Dropout", dropout::import),
    ("Expand", dropout::import_blank),
    ("Flatten", shape::import_flatten),
    ("Gemm", linear::import),
    ("GlobalAveragePool", pool::import_global),
    ("GroupNormalization", norm::import_group),
    ("HardSigmoid", curve::import_hard_sigmoid),
    ("HardSwish", curve::import_hard_swish),
    ("Identity", shape::import_identity),
    ("InstanceNormalization", norm::import_instance),
    ("LeakyRelu", curve::import_leaky),
    ("Less", dropout::import_less),
    ("Log", softmax::import_log),
    ("LogSoftmax", softmax::import_log_softmax),
    ("MatMul", linear::import_product),
    ("Max", curve::import_largest),
    ("MaxPool", pool::import_max),
    ("Min", curve::import_least),
    ("Mul", arithmetic::import_mul),
    ("Pad", shape::import_pad),
    ("RandomUniformLike", dropout::import_random),
    ("ReduceMean", pool::import_mean),
    ("Relu", arithmetic::import_relu),
    ("Reshape", shape::import_reshape),
    ("Sigmoid", curve::import_sigmoid),
    ("Softmax", softmax::import),
    ("Squeeze", shape::import_squeeze),
    ("Unsqueeze", shape::import_unsqueeze),
];
