//! `Gemm` with a constant matrix, or `MatMul` and an `Add` after it: a linear layer.
use crate::export::{Value, Writer};
use crate::import::{ImportError, Partial, Reader, Source, Value as Known};
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
    let turned = attributes.switch("transB", false)?;
    let input = vector(reader, source)?;
    let (extents, inputs) = (reader.extents(source, 1)?, reader.len(input));
    if turned {
        let out = extents.first().copied().unwrap_or(0);
        reader.parameter(source, 1, &[out, inputs])?;
        finish(reader, source, input, out, reader.has_bias(source, 2).then_some(2))
    } else {
        let out = extents.get(1).copied().unwrap_or(0);
        reader.transposed(source, source.input(1)?, [out, inputs])?;
        finish(reader, source, input, out, reader.has_bias(source, 2).then_some(2))
    }
}

fn vector<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Known, ImportError> {
    let input = reader.value(source, 0)?;
    if input.rank == 1 {
        return Ok(input);
    }
    let why = format!("its input has extents {:?}", reader.axes(input));
    Err(source.refuse(why, "only vectors are multiplied by matrices; flatten before it"))
}

/// Takes the bias and adds the layer.
fn finish<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    input: Known,
    out: usize,
    bias: Option<usize>,
) -> Result<Partial, ImportError> {
    if let Some(which) = bias {
        reader.parameter(source, which, &[out])?;
    }
    reader.add(source, Op::Linear { out, bias: bias.is_some() }, &[input])
}

/// A bias is waited for if all that follows is the sum with a vector.
pub(super) fn import_product<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
) -> Result<Partial, ImportError> {
    source.attributes(&[])?;
    let of = vector(reader, source)?;
    let &[_, out] = reader.extents(source, 1)?.as_slice() else {
        return Err(source.refuse("its weight is no matrix".into(), "export the network again"));
    };
    let next = reader.sole_reader(source).filter(|node| node.op_type == "Add");
    if next.is_some_and(|add| add.input.iter().any(|name| reader.is_vector(name, out))) {
        return Ok(Partial::Product { of, weight: source.input(1)?.into() });
    }
    reader.transposed(source, source.input(1)?, [out, reader.len(of)])?;
    finish(reader, source, of, out, None)
}

/// `MatMul`, then this `Add`.
pub(super) fn add_bias<'a>(
    reader: &mut Reader<'a>,
    source: &Source<'a>,
    of: Known,
    weight: &str,
    bias: usize,
) -> Result<Partial, ImportError> {
    let out = reader.extents(source, bias)?.first().copied().unwrap_or(0);
    reader.transposed(source, weight, [out, reader.len(of)])?;
    reader.parameter(source, bias, &[out])?;
    let name = weight.strip_suffix(".weight").unwrap_or(source.name());
    reader.add_as(name, Op::Linear { out, bias: true }, &[of])
}
