//! `Conv` over time or over rows and columns, as ONNX and PyTorch lay its weights out: `[out, in / groups, rows, columns]`.
use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::Op;
use models::nn::graph::{Conv2d, Node};

pub(super) fn export(writer: &mut Writer<'_>, node: &Node, conv: &Conv2d) -> Result<Value, ExportError> {
    let input = writer.image(node, 0);
    let parameters = [0, 1].map(|which| writer.parameter(node, which, None));
    let inputs = std::iter::once(input).chain(parameters.into_iter().flatten()).collect();
    let attributes = vec![
        AttributeProto::ints("dilations", conv.dilation),
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
    let (extents, time) = (reader.extents(source, 1)?, input.along_time());
    let ([out, per_group], kernel) = match *extents.as_slice() {
        [out, per_group, rows, columns] if !time => ([out, per_group], [rows, columns]),
        [out, per_group, columns] if time => ([out, per_group], [1, columns]),
        _ => {
            return Err(source.refuse(
                format!("its weight has extents {extents:?}"),
                "only convolutions over time, or over rows and columns, are read",
            ));
        }
    };
    if attributes.given("kernel_shape") && attributes.pair("kernel_shape", time)? != kernel {
        return Err(
            source.refuse("kernel_shape is not that of its weight".into(), "export the network again")
        );
    }
    let groups = attributes.count("group", 1)?;
    let (stride, dilation) = (attributes.pair("strides", time)?, attributes.pair("dilations", time)?);
    if reader.channels(input) != per_group.saturating_mul(groups) || out % groups != 0 {
        return Err(source.refuse(
            format!("{groups} groups of weight {extents:?} do not fit its input"),
            "export the network again",
        ));
    }
    let bias = reader.has_bias(source, 2);
    let conv = Conv2d { out, kernel, stride, padding: [0, 0], dilation, groups, bias };
    let dims = reader.dims(input);
    let reach = conv.reach().unwrap_or([usize::MAX; 2]).map(|reach| reach.min(1 << 20));
    let sides = attributes.padding(time, ([dims.height, dims.width], reach, stride))?;
    let (padding, input) = match sides {
        [top, left, bottom, right] if top == bottom && left == right => ([top, left], input),
        uneven => ([0, 0], reader.step(source, "pad", Op::Pad(uneven), input)?),
    };
    reader.parameter(source, 1, &[out, per_group, kernel[0], kernel[1]])?;
    if bias {
        reader.parameter(source, 2, &[out])?;
    }
    reader.add(source, Op::Conv2d(Conv2d { padding, ..conv }), &[input])
}
