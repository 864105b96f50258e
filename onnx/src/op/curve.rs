//! Functions of one number: `Clip`, `LeakyRelu`, `Sigmoid`, `HardSigmoid`, `HardSwish`; `Max` and `Min` with a number.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::{AttributeProto, TensorProto};
use models::nn::Op;
use models::nn::graph::{Curve, Node};

pub(super) fn export(writer: &mut Writer<'_>, node: &Node, curve: Curve) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let float = AttributeProto::float;
    let (op_type, attributes) = match curve {
        Curve::Clip { low, high } => return export_clip(writer, node, low, high),
        Curve::LeakyRelu { slope } => ("LeakyRelu", vec![float("alpha", slope)]),
        Curve::Sigmoid => ("Sigmoid", vec![]),
        Curve::HardSigmoid { slope, offset } => {
            ("HardSigmoid", vec![float("alpha", slope), float("beta", offset)])
        }
        Curve::HardSwish => ("HardSwish", vec![]),
    };
    Value { name: writer.emit(op_type, &node.name, vec![name], attributes), flat }
}

fn export_clip(writer: &mut Writer<'_>, node: &Node, low: f32, high: f32) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let mut bound = |what: &str, value: f32| match value.is_finite() {
        true => {
            writer.constant(|name| TensorProto::floats(name, &[], &[value]), &format!("{}.{what}", node.name))
        }
        false => String::new(),
    };
    let inputs = vec![name, bound("low", low), bound("high", high)];
    Value { name: writer.emit("Clip", &node.name, inputs, vec![]), flat }
}

fn curve<'a>(reader: &mut Reader<'a>, source: &Source<'a>, curve: Curve) -> Result<Partial, ImportError> {
    let input = reader.value(source, 0)?;
    reader.add(source, Op::Curve(curve), &[input])
}

/// Bounds that are not given are none; the floor under a logarithm is part of that.
pub(super) fn import_clip<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let bound = |which: usize, none: f32| match source.has(which) {
        true => reader.scalar(source, which),
        false => Ok(none),
    };
    let (low, high) = (bound(1, f32::NEG_INFINITY)?, bound(2, f32::INFINITY)?);
    if low == f32::MIN_POSITIVE && high == f32::INFINITY {
        return Ok(Partial::Floored(reader.value(source, 0)?));
    }
    curve(reader, source, Curve::Clip { low, high })
}

/// At least a number: a clip without an upper bound.
pub(super) fn import_largest<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    bounded(reader, source, |low| Curve::Clip { low, high: f32::INFINITY })
}

/// At most a number.
pub(super) fn import_least<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    bounded(reader, source, |high| Curve::Clip { low: f32::NEG_INFINITY, high })
}

fn bounded<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    clip: impl FnOnce(f32) -> Curve,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    if source.arity() != 2 {
        return Err(source.refuse(
            format!("it compares {} values", source.arity()),
            "only a value and a number are compared",
        ));
    }
    let bound = reader.scalar(source, 1)?;
    curve(reader, source, clip(bound))
}

pub(super) fn import_leaky<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let slope = source.attributes(&["alpha"])?.float("alpha", 0.01)?;
    curve(reader, source, Curve::LeakyRelu { slope })
}

pub(super) fn import_sigmoid<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    curve(reader, source, Curve::Sigmoid)
}

pub(super) fn import_hard_sigmoid<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["alpha", "beta"])?;
    let (slope, offset) = (attributes.float("alpha", 0.2)?, attributes.float("beta", 0.5)?);
    curve(reader, source, Curve::HardSigmoid { slope, offset })
}

pub(super) fn import_hard_swish<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    curve(reader, source, Curve::HardSwish)
}
