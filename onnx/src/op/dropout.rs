//! `Dropout`, as itself or written out: random numbers of a value's extents (`Shape`, `Expand`, `RandomUniformLike`) below the
//! share that is kept (`Less`, `Cast`), divided by it (`Div`), times the value (`Mul`).
use crate::export::{Value, Writer};
use crate::import::{Draw, ImportError, Partial, Reader, Source, Value as Known};
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
    let extents = reader.counts(source, 1)?;
    let axes = match extents.split_first() {
        Some((None, rest)) => rest.iter().map(|e| usize::try_from((*e)?).ok()).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    axes.map(|axes| Partial::Drawn { draw: Draw::Blank, axes })
        .ok_or_else(|| source.refuse("it repeats a value".into(), "only the Expand of a dropout is read"))
}

/// The next step of a dropout.
fn step<'a>(
    reader: &Reader<'a>,
    source: &Source<'a>,
    next: impl FnOnce(Draw) -> Option<Draw>,
) -> Result<Partial, ImportError> {
    let drawn = match reader.partial(source, 0)? {
        Partial::Drawn { draw, axes } => next(draw).map(|draw| Partial::Drawn { draw, axes }),
        _ => None,
    };
    drawn.ok_or_else(|| source.refuse("it is no step of a dropout".into(), "leave it out of the network"))
}

pub(super) fn import_random<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["dtype", "high", "low", "seed"])?;
    attributes.float_is("low", 0.0, 0.0)?;
    attributes.float_is("high", 1.0, 1.0)?;
    step(reader, source, |_| Some(Draw::Random))
}

pub(super) fn import_less<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let kept = reader.scalar(source, 1)?;
    let is_share = kept > 0.0 && kept <= 1.0;
    step(reader, source, |draw| (draw == Draw::Random && is_share).then_some(Draw::Kept(kept)))
}

/// A value times a mask, which must have drawn each of its numbers by itself.
pub(super) fn masked<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    of: Known,
    kept: f32,
    axes: &[usize],
) -> Result<Partial, ImportError> {
    let own = reader.axes(of);
    if own == axes {
        return reader.add(source, Op::Dropout { p: 1.0 - kept }, &[of]);
    }
    let why = format!("it drops {axes:?} at once of {own:?}");
    Err(source.refuse(why, "only a dropout of single numbers trains; export the network in evaluation form"))
}

/// Of constants and of a dropout's mask only; values are `f32` throughout.
pub(super) fn import_cast<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&["to", "saturate"])?.int_is("to", 0, 1)?;
    as_it_is(reader, source)
}

/// To the type of another value, which is `f32`.
pub(super) fn import_cast_like<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&["saturate"])?;
    as_it_is(reader, source)
}

fn as_it_is<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    match reader.partial(source, 0)? {
        partial @ (Partial::Drawn { .. } | Partial::Value(_)) => Ok(partial),
        other => Err(reader.unfinished(source, &other)),
    }
}
