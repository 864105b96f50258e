//! `Gemm` with a constant `[out, in]` matrix: a linear layer.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source};
use crate::proto::AttributeProto;
use models::nn::Op;
use models::nn::graph::Node;

pub(super) fn export(writer: &mut Writer<'_>, node: &Node) -> Value {
    let input = writer.flat(node, 0);
    let parameters = [0, 1].map(|which| writer.parameter(node, which, None));
    let inputs = std::iter::once(input).chain(parameters.into_iter().flatten()).collect();
    Value {
        name: writer.emit("Gemm", &node.name, inputs, vec![AttributeProto::int("transB", 1)]),
        flat: true,
    }
}

pub(super) fn import<'a>(reader: &mut Reader<'a>, source: &Source<'a>) -> Result<Partial, ImportError> {
    let attributes = source.attributes(&["alpha", "beta", "transA", "transB"])?;
    attributes.float_is("alpha", 1.0, 1.0)?;
    attributes.float_is("beta", 1.0, 1.0)?;
    attributes.int_is("transA", 0, 0)?;
    attributes.int_is("transB", 0, 1)?;
    let input = reader.value(source, 0)?;
    let extents = reader.extents(source, 1)?;
    let out = extents.first().copied().unwrap_or(0);
    reader.parameter(source, 1, &[out, reader.len(input)])?;
    let bias = source.has(2);
    if bias {
        reader.parameter(source, 2, &[out])?;
    }
    reader.add(source, Op::Linear { out, bias }, &[input])
}
