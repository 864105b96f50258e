//! `BatchNormalization` in evaluation form, and group norm, which operator set 17 does not have: the groups become channels
//! (`Reshape`), are normalised (`InstanceNormalization`), become channels again, and get each channel's weight and bias.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::{AttributeProto, TensorProto};
use models::nn::Op;
use models::nn::graph::Node;

pub(super) fn export_batch(writer: &mut Writer<'_>, node: &Node, epsilon: f32, momentum: f64) -> Value {
    let Value { name, flat } = writer.input(node, 0);
    let parameters = (0..4).filter_map(|which| writer.parameter(node, which, None));
    let inputs = std::iter::once(name).chain(parameters.collect::<Vec<_>>()).collect();
    // Files say what stays of the old statistics.
    let attributes = vec![
        AttributeProto::float("epsilon", epsilon),
        AttributeProto::float("momentum", (1.0 - momentum) as f32),
    ];
    Value { name: writer.emit("BatchNormalization", &node.name, inputs, attributes), flat }
}

pub(super) fn import_batch<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["epsilon", "momentum", "training_mode"])?;
    let _: bool = attributes.switch("training_mode", false)?;
    let (epsilon, momentum) = (attributes.epsilon()?, attributes.momentum()?);
    let input = reader.value(source, 0)?;
    let channels = reader.channels(input);
    for which in 1..5 {
        reader.parameter(source, which, &[channels])?;
    }
    reader.add(source, Op::BatchNorm { epsilon, momentum }, &[input])
}

pub(super) fn export_group(writer: &mut Writer<'_>, node: &Node, groups: usize, epsilon: f32) -> Value {
    let Value { name: input, flat } = writer.input(node, 0);
    let dims = writer.dims(node, 0);
    let (channels, pixels) = (dims.channels, if flat { vec![] } else { vec![dims.height, dims.width] });
    let step = |what: &str| format!("{}/{what}", node.name);

    let apart = writer.constant(|name| TensorProto::whole(name, &[0, groups as i64, -1]), &step("groups"));
    let grouped = writer.emit("Reshape", &step("split"), vec![input, apart], vec![]);
    let ones =
        writer.constant(|name| TensorProto::floats(name, &[groups], &vec![1.0; groups]), &step("ones"));
    let zeros =
        writer.constant(|name| TensorProto::floats(name, &[groups], &vec![0.0; groups]), &step("zeros"));
    let attributes = vec![AttributeProto::float("epsilon", epsilon)];
    let normal =
        writer.emit("InstanceNormalization", &step("normalise"), vec![grouped, ones, zeros], attributes);
    let extents: Vec<i64> = [0, channels].iter().chain(&pixels).map(|&e| e as i64).collect();
    let together = writer.constant(|name| TensorProto::whole(name, &extents), &step("channels"));
    let restored = writer.emit("Reshape", &step("join"), vec![normal, together], vec![]);

    let per_channel: Vec<usize> = std::iter::once(channels).chain(pixels.iter().map(|_| 1)).collect();
    let [weight, bias] = [0, 1].map(|which| writer.parameter(node, which, Some(&per_channel)));
    let scaled = writer.emit("Mul", &step("weigh"), [restored].into_iter().chain(weight).collect(), vec![]);
    Value { name: writer.emit("Add", &node.name, [scaled].into_iter().chain(bias).collect(), vec![]), flat }
}

/// A reshape's target, if it puts channels into groups, `[0, groups, -1]`, or is the way back.
pub(super) fn regroup<'a>(reader: &Reader<'a>, partial: &Partial, target: &[Option<i64>]) -> Option<Partial> {
    match *partial {
        Partial::Normalised { of, groups, epsilon } => {
            let axes =
                super::shape::resolve(target, 1 + reader.axes(of).len(), reader.len(of), reader.samples());
            // A zero stands for the extent that groups have there, which is none of the original's.
            (axes? == reader.axes(of)).then_some(Partial::Restored { of, groups, epsilon })
        }
        Partial::Value(of) => {
            let axes = super::shape::resolve(target, 3, reader.len(of), reader.samples())?;
            let &[groups, _] = axes.as_slice() else { return None };
            let fits = groups > 0 && reader.channels(of).is_multiple_of(groups);
            fits.then_some(Partial::Grouped { of, groups })
        }
        _ => None,
    }
}

/// With one weight and bias per channel, as operator set 21 has it.
pub(super) fn import_group<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["epsilon", "num_groups", "stash_type"])?;
    let (epsilon, groups) = (attributes.epsilon()?, attributes.count("num_groups", 0)?);
    if source.opset() < 21 {
        let why = "before operator set 21 it has one weight per group".into();
        return Err(source.refuse(why, "export it with opset_version=21 or at most 17"));
    }
    let (of, weight, bias) = (reader.value(source, 0)?, source.input(1)?, source.input(2)?);
    reader.group_norm(source, of, groups, epsilon, weight, bias)
}

/// The middle of a group norm.
pub(super) fn import_instance<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    let epsilon = source.attributes(&["epsilon"])?.epsilon()?;
    match reader.partial(source, 0)? {
        Partial::Grouped { of, groups } => {
            reader.constant_is(source, 1, &[groups], 1.0)?;
            reader.constant_is(source, 2, &[groups], 0.0)?;
            Ok(Partial::Normalised { of, groups, epsilon })
        }
        Partial::Value(of) => {
            let (groups, weight, bias) = (reader.channels(of), source.input(1)?, source.input(2)?);
            reader.group_norm(source, of, groups, epsilon, weight, bias)
        }
        other => Err(reader.unfinished(source, &other)),
    }
}
