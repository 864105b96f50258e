//! `Softmax` over classes, and `Log` of probabilities, never below the smallest normal number: `Clip`, then `Log`.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source, Value as Known};
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
    let input = classes(reader, source)?;
    reader.add(source, Op::Softmax, &[input])
}

/// The softmax, then its logarithm.
pub(super) fn import_log_softmax<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let input = classes(reader, source)?;
    let softmax = reader.step(source, "softmax", Op::Softmax, input)?;
    reader.add(source, Op::Log, &[softmax])
}

/// A vector, over whose only axis a softmax runs.
fn classes<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Known, ImportError> {
    let attributes = source.attributes(&["axis"])?;
    if attributes.int("axis", -1)? != -1 {
        attributes.int_is("axis", -1, 1)?;
    }
    let input = reader.value(source, 0)?;
    if input.rank == 1 {
        return Ok(input);
    }
    Err(source.refuse(format!("its input has extents {:?}", reader.axes(input)), "only vectors are read"))
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

pub(super) fn import_log<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    match reader.partial(source, 0)? {
        Partial::Floored(of) => reader.add(source, Op::Log, &[of]),
        _ => {
            Err(source.refuse("its input has no floor".into(), "write Clip(min = 1.17549435e-38) before it"))
        }
    }
}
