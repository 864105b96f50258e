//! Operators that move numbers and change none: `Flatten`, `Reshape`, `Squeeze`, `Unsqueeze`, `Pad`, `Concat`, `Identity`.
use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source, Value as Known};
use crate::proto::{AttributeProto, TensorProto};
use models::nn::Op;
use models::nn::graph::{Dims, Node};

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

/// Extents without the axis of samples that a reshape's target stands for, for values of `len` numbers a sample. `rank`
/// is the target's, with samples. A zero is read as the number of samples, in the first place only.
pub(super) fn resolve(
    target: &[Option<i64>],
    rank: usize,
    len: usize,
    samples: Option<i64>,
) -> Option<Vec<usize>> {
    let (first, rest) = target.split_first()?;
    let open = rest.iter().filter(|&&e| e == Some(-1)).count();
    let of_samples = match *first {
        None | Some(0) => open < 2,
        Some(-1) => open == 0,
        fixed => fixed == samples && open < 2,
    };
    (of_samples && target.len() == rank).then_some(())?;
    let extent = |e: &Option<i64>| usize::try_from((*e)?).ok().filter(|&e| e > 0);
    let known = rest.iter().filter(|&&e| e != Some(-1));
    let known = known.map(extent).try_fold(1_usize, |n, e| n.checked_mul(e?))?;
    let missing = len.checked_div(known)?;
    let axes: Vec<usize> =
        rest.iter().map(|e| if *e == Some(-1) { Some(missing) } else { extent(e) }).collect::<Option<_>>()?;
    (axes.iter().try_fold(1_usize, |n, &e| n.checked_mul(e))? == len).then_some(axes)
}

/// To a vector, to the same extents with or without ones, or a step of a group norm.
pub(super) fn import_reshape<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let literal = source.attributes(&["allowzero"])?.switch("allowzero", false)?;
    let mut target = reader.counts(source, 1)?;
    let partial = reader.partial(source, 0)?;
    // Where each channel is a group of its own, only what follows tells a group norm from a change of extents.
    let groups = reader.sole_reader(source).is_some_and(|next| next.op_type == "InstanceNormalization");
    if groups && let Some(grouped) = super::norm::regroup(reader, &partial, &target) {
        return Ok(grouped);
    }
    if let Partial::Value(of) = partial {
        let own: Vec<Option<i64>> =
            std::iter::once(None).chain(reader.axes(of).into_iter().map(|e| Some(e as i64))).collect();
        let kept = target.iter_mut().zip(own).filter(|(e, _)| **e == Some(0) && !literal);
        kept.for_each(|(e, own)| *e = own);
        let axes = resolve(&target, target.len(), reader.len(of), reader.samples());
        if let Some(value) = axes.and_then(|axes| reader_axes(reader, source, of, &axes).transpose()) {
            return value;
        }
    }
    super::norm::regroup(reader, &partial, &target).ok_or_else(|| {
        source.refuse(
            format!("it reshapes to {}", spelled(&target)),
            "only vectors, extents of 1 and the two steps around a group normalisation are read",
        )
    })
}

fn spelled(target: &[Option<i64>]) -> String {
    let each: Vec<String> = target.iter().map(|e| e.map_or("N".into(), |e| e.to_string())).collect();
    format!("[{}]", each.join(", "))
}

/// A value in other extents, if that moves nothing: a vector of all its numbers, or ones that come and go.
fn reader_axes<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    of: Known,
    axes: &[usize],
) -> Result<Option<Partial>, ImportError> {
    let own = reader.axes(of);
    if axes == own {
        return Ok(Some(Partial::Value(of)));
    }
    let dims = match *axes {
        [len] if len == reader.len(of) => return reader.add(source, Op::Flatten, &[of]).map(Some),
        [channels, width] => Dims { channels, height: 1, width },
        [channels, height, width] => Dims { channels, height, width },
        _ => return Ok(None),
    };
    Ok((dims == reader.dims(of)).then_some(Partial::Value(Known { id: of.id, rank: axes.len() })))
}

fn given_axes<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Vec<i64>, ImportError> {
    source.attributes(&[])?;
    if source.has(1) { reader.wholes(source, 1) } else { Ok(vec![]) }
}

/// Places of axes among `rank`, the axis of samples first.
fn places(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let at = |axis: i64| if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    axes.iter().map(|&a| usize::try_from(at(a)?).ok().filter(|&a| a > 0 && a < rank)).collect()
}

pub(super) fn import_squeeze<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let (axes, of) = (given_axes(reader, source)?, reader.value(source, 0)?);
    let own = reader.axes(of);
    let gone = places(&axes, own.len() + 1).filter(|gone| gone.iter().all(|&a| own[a - 1] == 1));
    let left = gone.map(|gone| {
        own.iter().enumerate().filter(|(i, _)| !gone.contains(&(i + 1))).map(|(_, &e)| e).collect::<Vec<_>>()
    });
    let moved = match left {
        Some(left) if !axes.is_empty() => reader_axes(reader, source, of, &left)?,
        _ => None,
    };
    moved.ok_or_else(|| {
        source.refuse(format!("it takes the axes {axes:?} off {own:?}"), "flatten to a vector with Flatten")
    })
}

pub(super) fn import_unsqueeze<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let (axes, of) = (given_axes(reader, source)?, reader.value(source, 0)?);
    let own = reader.axes(of);
    let rank = own.len() + axes.len();
    let wider = places(&axes, rank + 1).and_then(|new| {
        let mut old = own.iter().copied();
        (1..=rank).map(|a| if new.contains(&a) { Some(1) } else { old.next() }).collect::<Option<Vec<_>>>()
    });
    let moved = match wider {
        Some(wider) => reader_axes(reader, source, of, &wider)?,
        None => None,
    };
    moved.ok_or_else(|| {
        let why = format!("it adds the axes {axes:?} to {own:?}");
        source.refuse(why, "only rows and columns of one pixel are added to a vector")
    })
}

pub(super) fn export_pad(
    writer: &mut Writer<'_>,
    node: &Node,
    [top, left, bottom, right]: [usize; 4],
) -> Result<Value, ExportError> {
    let input = writer.image(node, 0);
    let sides = [0, 0, top, left, 0, 0, bottom, right].map(|side| side as i64);
    let sides = writer.constant(|name| TensorProto::whole(name, &sides), &format!("{}.sides", node.name));
    Ok(Value { name: writer.emit("Pad", &node.name, vec![input, sides], vec![]), flat: false })
}

/// Zeros around rows and columns.
pub(super) fn import_pad<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    source.attributes(&["mode"])?.text_is("mode", "constant")?;
    if source.has(2) && reader.scalar(source, 2)? != 0.0 || source.has(3) {
        return Err(source.refuse("it pads with something".into(), "only zeros around all axes are read"));
    }
    let (input, sides) = (reader.value(source, 0)?, reader.wholes(source, 1)?);
    let sides: Vec<usize> = sides.iter().map(|&s| usize::try_from(s).unwrap_or(usize::MAX)).collect();
    let around = match *sides.as_slice() {
        [0, 0, left, 0, 0, right] if input.rank == 2 => [0, left, 0, right],
        [0, 0, top, left, 0, 0, bottom, right] if input.rank == 3 => [top, left, bottom, right],
        _ => {
            let why = format!("it pads {:?} by {sides:?}", reader.axes(input));
            return Err(source.refuse(why, "only rows and columns are padded"));
        }
    };
    reader.add(source, Op::Pad(around), &[input])
}

pub(super) fn export_concat(writer: &mut Writer<'_>, node: &Node) -> Value {
    let all = 0..node.inputs.len();
    let flat = all.clone().any(|which| writer.input(node, which).flat);
    let inputs = all.map(|which| match flat {
        true => writer.flat(node, which),
        false => writer.input(node, which).name,
    });
    let inputs = inputs.collect();
    Value { name: writer.emit("Concat", &node.name, inputs, vec![AttributeProto::int("axis", 1)]), flat }
}

/// Along channels.
pub(super) fn import_concat<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let axis = source.attributes(&["axis"])?.int("axis", 0)?;
    let inputs =
        (0..source.arity()).map(|which| reader.value(source, which)).collect::<Result<Vec<Known>, _>>()?;
    let rank = inputs.first().map_or(0, |value| value.rank);
    let channels = axis == 1 || axis.checked_add(rank as i64) == Some(0);
    if !channels || inputs.iter().any(|value| value.rank != rank) {
        let why = format!("it joins {} values along axis {axis}", inputs.len());
        return Err(source.refuse(why, "only channels of values with the same number of axes are joined"));
    }
    reader.add(source, Op::Concat, &inputs)
}

pub(super) fn import_identity<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    reader.partial(source, 0)
}
