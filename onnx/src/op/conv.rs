//! `Conv` over rows and columns, as ONNX and PyTorch lay its weights out: `[out, in / groups, rows, columns]`.
use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::Op;
use models::nn::graph::{Conv2d, Node};

pub(super) fn export(writer: &mut Writer<'_>, node: &Node, conv: &Conv2d) -> Result<Value, ExportError> {
    let input = writer.image(node, 0)?;
    let parameters = [0, 1].map(|which| writer.parameter(node, which, None));
    let inputs = std::iter::once(input).chain(parameters.into_iter().flatten()).collect();
    let attributes = vec![
        AttributeProto::int("group", conv.groups as i64),
        AttributeProto::ints("kernel_shape", conv.kernel),
        AttributeProto::ints("pads", [conv.padding, conv.padding].concat()),
        AttributeProto::ints("strides", conv.stride),
    ];
    Ok(Value { name: writer.emit("Conv", &node.name, inputs, attributes), flat: false })
}

pub(super) fn import<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes =
        source.attributes(&["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"])?;
    let input = reader.value(source, 0)?;
    let extents = reader.extents(source, 1)?;
    let &[out, per_group, rows, columns] = extents.as_slice() else {
        return Err(source.refuse(
            format!("its weight has extents {extents:?}"),
            "only convolutions over rows and columns are read",
        ));
    };
    attributes.text_is("auto_pad", "NOTSET")?;
    attributes.pair_is("dilations", [1, 1])?;
    attributes.pair_is("kernel_shape", [rows, columns])?;
    let groups = attributes.count("group", 1)?;
    let (padding, stride) = (attributes.padding()?, attributes.pair("strides", [1, 1])?);
    if reader.channels(input) != per_group.saturating_mul(groups) || out % groups != 0 {
        return Err(source.refuse(
            format!("{groups} groups of weight {extents:?} do not fit its input"),
            "export the network again",
        ));
    }
    let conv = Conv2d { out, kernel: [rows, columns], stride, padding, groups, bias: source.has(2) };
    reader.parameter(source, 1, &extents)?;
    if conv.bias {
        reader.parameter(source, 2, &[out])?;
    }
    reader.add(source, Op::Conv2d(conv), &[input])
}
