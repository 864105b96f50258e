//! `Relu`, `Add`, `Mul` of two values or by a constant. `Add` and `Mul` by one constant per channel are the last steps of a
//! group norm, `Add` of a constant after `MatMul` is a bias, and `Mul` by a random mask is a dropout.
use crate::export::{Value, Writer};
use crate::import::{Draw, ImportError, Partial, Reader, Source, Value as Known};
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
    let Some(constant) = reader.constant_side(source) else {
        let inputs = alike(reader, source)?;
        return reader.add(source, Op::Add, &inputs);
    };
    match reader.partial(source, 1 - constant)? {
        Partial::Weighted { of, groups, epsilon, weight } => {
            reader.group_norm(source, of, groups, epsilon, &weight, source.input(constant)?)
        }
        Partial::Product { of, weight } => super::linear::add_bias(reader, source, of, &weight, constant),
        Partial::Value(_) => Err(source.refuse(
            "it adds a constant to a value".into(),
            "only biases after MatMul and group norms are read; leave it out or add it in a layer's bias",
        )),
        other => Err(reader.unfinished(source, &other)),
    }
}

/// Two values of the same extents.
fn alike<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<[Known; 2], ImportError> {
    let both = [reader.value(source, 0)?, reader.value(source, 1)?];
    let [a, b] = both.map(|value| reader.axes(value));
    if a == b {
        return Ok(both);
    }
    Err(source.refuse(format!("its inputs have extents {a:?} and {b:?}"), "give both the same extents"))
}

pub(super) fn export_mul(writer: &mut Writer<'_>, node: &Node) -> Value {
    let flats = [0, 1].map(|which| writer.input(node, which).flat);
    let flat = flats == [true; 2];
    let names = [0, 1].map(|which| match flat {
        true => writer.input(node, which).name,
        false => writer.image(node, which),
    });
    Value { name: writer.emit("Mul", &node.name, names.to_vec(), vec![]), flat }
}

pub(super) fn export_scale(writer: &mut Writer<'_>, node: &Node, factor: f32) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let factor =
        writer.constant(|name| TensorProto::floats(name, &[], &[factor]), &format!("{}.factor", node.name));
    Value { name: writer.emit("Mul", &node.name, vec![name, factor], vec![]), flat }
}

pub(super) fn import_mul<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let Some(constant) = reader.constant_side(source) else { return product(reader, source) };
    match reader.partial(source, 1 - constant)? {
        Partial::Restored { of, groups, epsilon } => {
            Ok(Partial::Weighted { of, groups, epsilon, weight: source.input(constant)?.into() })
        }
        Partial::Value(input) => {
            let factor = reader.scalar(source, constant)?;
            reader.add(source, Op::Scale(factor), &[input])
        }
        other => Err(reader.unfinished(source, &other)),
    }
}

/// Two values of the same extents, a value and a gate `[channels, 1, 1]`, or a value and a dropout's mask.
fn product<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    match (reader.partial(source, 0)?, reader.partial(source, 1)?) {
        (Partial::Value(of), Partial::Drawn { draw: Draw::Mask(kept), axes })
        | (Partial::Drawn { draw: Draw::Mask(kept), axes }, Partial::Value(of)) => {
            super::dropout::masked(reader, source, of, kept, &axes)
        }
        (Partial::Value(a), Partial::Value(b)) if a.rank == b.rank => reader.add(source, Op::Mul, &[a, b]),
        (Partial::Value(a), Partial::Value(b)) => {
            let [a, b] = [a, b].map(|value| reader.axes(value));
            let why = format!("its inputs have extents {a:?} and {b:?}");
            Err(source.refuse(why, "give both the same extents, or the gate [channels, 1, 1]"))
        }
        (Partial::Value(_), other) | (other, _) => Err(reader.unfinished(source, &other)),
    }
}

/// By one number; or the last step of a dropout's mask.
pub(super) fn import_div<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let by = reader.scalar(source, 1)?;
    match reader.partial(source, 0)? {
        Partial::Drawn { draw: Draw::Kept(kept), axes } if by == kept => {
            Ok(Partial::Drawn { draw: Draw::Mask(kept), axes })
        }
        Partial::Value(input) if by != 0.0 && (1.0 / by).is_finite() => {
            reader.add(source, Op::Scale(1.0 / by), &[input])
        }
        Partial::Value(_) => Err(source.refuse(format!("it divides by {by}"), "repair the file")),
        other => Err(reader.unfinished(source, &other)),
    }
}
