//! `Relu`, `Add`, and `Mul` by a constant. `Add` and `Mul` by one constant per channel are the last steps of a group norm.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::TensorProto;
use models::nn::Op;
use models::nn::graph::Node;

pub(super) fn export_relu(writer: &mut Writer<'_>, node: &Node) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    Value { name: writer.emit("Relu", &node.name, vec![name], vec![]), flat }
}

pub(super) fn import_relu<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let input = reader.value(source, 0)?;
    reader.add(source, Op::Relu, &[input])
}

pub(super) fn export_add(writer: &mut Writer<'_>, node: &Node) -> Value {
    let inputs: Vec<Value> = (0..node.inputs.len()).map(|which| writer.input(node, which)).collect();
    let flat = inputs.iter().any(|value| value.flat);
    let plain = |value: Value| value.name;
    let names = if flat {
        (0..inputs.len()).map(|which| writer.flat(node, which)).collect()
    } else {
        inputs.into_iter().map(plain).collect()
    };
    Value { name: writer.emit("Add", &node.name, names, vec![]), flat }
}

pub(super) fn import_add<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    if let Partial::Weighted { of, groups, epsilon, weight } = reader.partial(source, 0)? {
        return reader.group_norm(source, of, groups, epsilon, &weight, source.input(1)?);
    }
    let inputs = [reader.value(source, 0)?, reader.value(source, 1)?];
    reader.add(source, Op::Add, &inputs)
}

pub(super) fn export_scale(writer: &mut Writer<'_>, node: &Node, factor: f32) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let factor =
        writer.constant(|name| TensorProto::floats(name, &[], &[factor]), &format!("{}.factor", node.name));
    Value { name: writer.emit("Mul", &node.name, vec![name, factor], vec![]), flat }
}

pub(super) fn import_mul<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    if let Partial::Restored { of, groups, epsilon } = reader.partial(source, 0)? {
        return Ok(Partial::Weighted { of, groups, epsilon, weight: source.input(1)?.into() });
    }
    let input = reader.value(source, 0)?;
    let factor = reader.scalar(source, 1)?;
    reader.add(source, Op::Scale(factor), &[input])
}
