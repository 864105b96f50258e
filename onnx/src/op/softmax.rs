//! `Softmax` over classes, and `Log` of probabilities, never below the smallest normal number: `Clip`, then `Log`.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::{AttributeProto, TensorProto};
use models::nn::Op;
use models::nn::graph::Node;

pub(super) fn export(writer: &mut Writer<'_>, node: &Node) -> Value {
    let input = writer.flat(node, 0);
    Value {
        name: writer.emit("Softmax", &node.name, vec![input], vec![AttributeProto::int("axis", 1)]),
        flat: true,
    }
}

pub(super) fn import<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["axis"])?;
    if attributes.int("axis", -1)? != -1 {
        attributes.int_is("axis", -1, 1)?;
    }
    let input = reader.value(source, 0)?;
    reader.add(source, Op::Softmax, &[input])
}

pub(super) fn export_log(writer: &mut Writer<'_>, node: &Node) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let floor = writer.constant(
        |name| TensorProto::floats(name, &[], &[f32::MIN_POSITIVE]),
        &format!("{}/floor", node.name),
    );
    let clipped = writer.emit("Clip", &format!("{}/clip", node.name), vec![name, floor], vec![]);
    Value { name: writer.emit("Log", &node.name, vec![clipped], vec![]), flat }
}

/// Only the floor under a logarithm is read.
pub(super) fn import_clip<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let input = reader.value(source, 0)?;
    if source.has(2) || reader.scalar(source, 1)? != f32::MIN_POSITIVE {
        return Err(source.refuse("it clips".into(), "only the floor under a logarithm is read"));
    }
    Ok(Partial::Floored(input))
}

pub(super) fn import_log<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    match reader.partial(source, 0)? {
        Partial::Floored(of) => reader.add(source, Op::Log, &[of]),
        _ => {
            Err(source.refuse("its input has no floor".into(), "write Clip(min = 1.17549435e-38) before it"))
        }
    }
}
