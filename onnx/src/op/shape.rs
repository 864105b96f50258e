//! Operators that move numbers and change none: `Flatten`, `Concat` of vectors, `Identity`.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::graph::Node;
use models::nn::{NodeId, Op};

pub(super) fn export_flatten(writer: &mut Writer<'_>, node: &Node) -> Value {
    let Value { name, .. } = writer.input(node, 0);
    Value {
        name: writer.emit("Flatten", &node.name, vec![name], vec![AttributeProto::int("axis", 1)]),
        flat: true,
    }
}

pub(super) fn import_flatten<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&["axis"])?.int_is("axis", 1, 1)?;
    let input = reader.value(source, 0)?;
    reader.add(source, Op::Flatten, &[input])
}

pub(super) fn export_concat(writer: &mut Writer<'_>, node: &Node) -> Value {
    let inputs = (0..node.inputs.len()).map(|which| writer.flat(node, which)).collect();
    Value {
        name: writer.emit("Concat", &node.name, inputs, vec![AttributeProto::int("axis", 1)]),
        flat: true,
    }
}

pub(super) fn import_concat<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&["axis"])?.int_is("axis", 0, 1)?;
    let inputs =
        (0..source.arity()).map(|which| reader.value(source, which)).collect::<Result<Vec<NodeId>, _>>()?;
    reader.add(source, Op::Concat, &inputs)
}

pub(super) fn import_identity<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    reader.partial(source, 0)
}
