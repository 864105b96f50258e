//! `MaxPool`, `AveragePool`, `GlobalAveragePool`, and `ReduceMean` over rows and columns.
use crate::export::{ExportError, Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::Op;
use models::nn::graph::{Dims, Node, Window};

pub(super) fn export(
    writer: &mut Writer<'_>,
    node: &Node,
    op_type: &str,
    window: &Window,
) -> Result<Value, ExportError> {
    let input = writer.image(node, 0);
    let mut attributes = vec![AttributeProto::ints("kernel_shape", window.kernel)];
    if window.padding != [0; 4] {
        attributes.push(AttributeProto::ints("pads", window.padding));
    }
    if window.counted {
        attributes.push(AttributeProto::int("count_include_pad", 1));
    }
    attributes.push(AttributeProto::ints("strides", window.stride));
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
    attributes.int_is("storage_order", 0, 0)?;
    let input = reader.value(source, 0)?;
    let (time, dims) = (input.along_time(), reader.dims(input));
    if attributes.pair("dilations", time)? != [1, 1] {
        return Err(source.refuse("its windows are dilated".into(), "only dense windows are pooled"));
    }
    let (kernel, stride) = (attributes.pair("kernel_shape", time)?, attributes.pair("strides", time)?);
    let padding = attributes.padding(time, ([dims.height, dims.width], kernel, stride))?;
    let counted = padding != [0; 4] && attributes.switch("count_include_pad", false)?;
    let mut window = Window { kernel, stride, padding, counted };
    if attributes.switch("ceil_mode", false)? {
        let up = rounded_up(window, dims);
        if counted && up.padding != padding {
            let why = "it rounds up and counts its padding".into();
            return Err(source.refuse(why, "choose one of ceil_mode and count_include_pad"));
        }
        window = up;
    }
    reader.add(source, op(window), &[input])
}

/// As much more padding below and to the right as lets the last window, which must start inside, fill.
fn rounded_up(mut window: Window, dims: Dims) -> Window {
    for (i, extent) in [dims.height, dims.width].into_iter().enumerate() {
        let (kernel, stride) = (window.kernel[i], window.stride[i]);
        let room = extent + window.padding[i] + window.padding[i + 2];
        let mut steps = room.saturating_sub(kernel).div_ceil(stride);
        if steps * stride >= extent + window.padding[i] {
            steps = steps.saturating_sub(1);
        }
        window.padding[i + 2] += (steps * stride + kernel).saturating_sub(room);
    }
    window
}

pub(super) fn import_global<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let input = reader.value(source, 0)?;
    reader.add(source, Op::AvgPool(Window::whole(reader.dims(input))), &[input])
}

/// Over rows, columns or both; if the axes go, nothing but a vector may be left.
pub(super) fn import_mean<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["axes", "keepdims", "noop_with_empty_axes"])?;
    attributes.int_is("noop_with_empty_axes", 0, 0)?;
    let keep = attributes.switch("keepdims", true)?;
    let axes = match source.has(1) {
        true => reader.wholes(source, 1)?,
        false => attributes.wholes("axes").unwrap_or_default().to_vec(),
    };
    let input = reader.value(source, 0)?;
    let rank = input.rank as i64 + 1;
    let axes: Vec<i64> = axes.iter().map(|&a| if a < 0 { a.saturating_add(rank) } else { a }).collect();
    let space = axes.iter().all(|&a| a >= 2 && a < rank) && !axes.is_empty();
    let dims = reader.dims(input);
    let (row, column) = if input.along_time() { (None, Some(2)) } else { (Some(2), Some(3)) };
    let over =
        |axis: Option<i64>, extent: usize| if axis.is_some_and(|a| axes.contains(&a)) { extent } else { 1 };
    let kernel = [over(row, dims.height), over(column, dims.width)];
    let all = kernel == [dims.height, dims.width];
    if !space || !(keep || all) {
        let why = format!("it takes the mean over the axes {axes:?}");
        return Err(
            source.refuse(why, "only means over rows and columns, with keepdims or over both, are read")
        );
    }
    let pool = Op::AvgPool(Window::tiles(kernel));
    if keep {
        return reader.add(source, pool, &[input]);
    }
    let mean = reader.step(source, "mean", pool, input)?;
    reader.add(source, Op::Flatten, &[mean])
}
