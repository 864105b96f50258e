//! `Dropout`, as itself or written out: random numbers of a value's extents (`Shape`, `Expand`, `RandomUniformLike`) below the
//! share that is kept (`Less`, `Cast`), divided by it (`Div`), times the value (`Mul`).
use crate::export::{Value, Writer};
use crate::import::{Draw, ImportError, Partial, Reader, Source};
use crate::proto::TensorProto;
use models::nn::Op;
use models::nn::graph::Node;

/// In evaluation, as whoever runs a file wants it, it does nothing.
pub(super) fn export(writer: &mut Writer<'_>, node: &Node, p: f32) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let ratio = writer.constant(|name| TensorProto::floats(name, &[], &[p]), &format!("{}.ratio", node.name));
    Value { name: writer.emit("Dropout", &node.name, vec![name, ratio], vec![]), flat }
}

pub(super) fn import<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&["seed"])?;
    let input = reader.value(source, 0)?;
    let p = if source.has(1) { reader.scalar(source, 1)? } else { 0.5 };
    if !(0.0..1.0).contains(&p) {
        return Err(source.refuse(format!("its ratio is {p}"), "choose one from 0 to below 1"));
    }
    reader.add(source, Op::Dropout { p }, &[input])
}

/// An array of a value's extents.
pub(super) fn import_blank<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    reader.scalar(source, 0)?;
    match reader.counts(source, 1)?.as_slice() {
        [None, ..] => Ok(Partial::Drawn(Draw::Blank)),
        _ => Err(source.refuse("it repeats a value".into(), "only the Expand of a dropout is read")),
    }
}

fn drawn<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Draw, ImportError> {
    match reader.partial(source, 0)? {
        Partial::Drawn(draw) => Ok(draw),
        _ => Err(source.refuse("it is no step of a dropout".into(), "leave it out of the network")),
    }
}

pub(super) fn import_random<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["dtype", "high", "low", "seed"])?;
    attributes.float_is("low", 0.0, 0.0)?;
    attributes.float_is("high", 1.0, 1.0)?;
    let _: Draw = drawn(reader, source)?;
    Ok(Partial::Drawn(Draw::Random))
}

pub(super) fn import_less<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let kept = reader.scalar(source, 1)?;
    match drawn(reader, source)? {
        Draw::Random if kept > 0.0 && kept <= 1.0 => Ok(Partial::Drawn(Draw::Kept(kept))),
        _ => Err(source.refuse("it is no step of a dropout".into(), "leave it out of the network")),
    }
}

/// Of constants and of a dropout's mask only; values are `f32` throughout.
pub(super) fn import_cast<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&["to", "saturate"])?.int_is("to", 0, 1)?;
    match reader.partial(source, 0)? {
        partial @ (Partial::Drawn(_) | Partial::Value(_)) => Ok(partial),
        other => Err(reader.unfinished(source, &other)),
    }
}
