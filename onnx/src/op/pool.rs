//! `MaxPool` and `AveragePool` over rows and columns, without padding.
use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::Op;
use models::nn::graph::{Node, Window};

pub(super) fn export(
    writer: &mut Writer<'_>,
    node: &Node,
    op_type: &str,
    window: &Window,
) -> Result<Value, ExportError> {
    let input = writer.image(node, 0)?;
    let attributes = vec![
        AttributeProto::ints("kernel_shape", window.kernel),
        AttributeProto::ints("strides", window.stride),
    ];
    Ok(Value { name: writer.emit(op_type, &node.name, vec![input], attributes), flat: false })
}

pub(super) fn import_max<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    import(reader, source, Op::MaxPool)
}

pub(super) fn import_average<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    import(reader, source, Op::AvgPool)
}

fn import<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    op: fn(Window) -> Op,
) -> Result<Partial, ImportError> {
    let known = [
        "auto_pad",
        "ceil_mode",
        "count_include_pad",
        "dilations",
        "kernel_shape",
        "pads",
        "storage_order",
        "strides",
    ];
    let attributes = source.attributes(&known)?;
    attributes.text_is("auto_pad", "NOTSET")?;
    attributes.int_is("ceil_mode", 0, 0)?;
    attributes.int_is("storage_order", 0, 0)?;
    attributes.pair_is("dilations", [1, 1])?;
    if attributes.padding()? != [0, 0] {
        return Err(source.refuse("it pads".into(), "pooling is read without padding only"));
    }
    let window = Window {
        kernel: attributes.pair("kernel_shape", [0, 0])?,
        stride: attributes.pair("strides", [1, 1])?,
    };
    let input = reader.value(source, 0)?;
    reader.add(source, op(window), &[input])
}
