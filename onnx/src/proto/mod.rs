//! The part of the ONNX file format (`onnx.proto`, IR version 8) that Spectra reads and writes, as messages derived by
//! hand: no `protoc`, no build script. Unknown fields are skipped, as protocol buffers demand.
mod decode;

pub use decode::{DecodeError, MAX_FILE, MAX_STRUCTURE, decode};

use prost::{Enumeration, Message, Oneof};

/// IR version written.
pub const IR_VERSION: i64 = 8;
/// Version of the default operator set written: every runtime of the last years reads it.
pub const OPSET: i64 = 17;

/// A file: a graph and what it needs.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// Who wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// In which version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operator sets used.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Free text by key.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A key and its text.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// Key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Domain; empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// Nodes in topological order, with their constants.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// Nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Values read.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Values written.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Domain of the operator; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// What kind of value an attribute has.
#[derive(Clone, Copy, Debug, Eq, Enumeration, PartialEq)]
#[repr(i32)]
pub enum AttributeType {
    /// Not stated.
    Undefined = 0,
    /// `f`.
    Float = 1,
    /// `i`.
    Int = 2,
    /// `s`.
    String = 3,
    /// `t`.
    Tensor = 4,
    /// `g`, which is not read.
    Graph = 5,
    /// `floats`.
    Floats = 6,
    /// `ints`.
    Ints = 7,
    /// `strings`, which are not read.
    Strings = 8,
}

/// A named constant of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Bytes.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub s: Option<Vec<u8>>,
    /// An array.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// Numbers.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Whole numbers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which of them holds the value.
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
}

/// `TensorProto.DataType.FLOAT`.
pub const FLOAT: i32 = 1;
/// `TensorProto.DataType.INT32`.
pub const INT32: i32 = 6;
/// `TensorProto.DataType.INT64`.
pub const INT64: i32 = 7;
/// `TensorProto.DataType.BOOL`.
pub const BOOL: i32 = 9;
/// `TensorProto.DataType.DOUBLE`.
pub const DOUBLE: i32 = 11;

/// A constant array.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Extents.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements, if they are `f32` and not raw.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements, if they are `i32` or of a shorter type, and not raw.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements, if they are `i64` and not raw.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements, little endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
    /// Elements, if they are `f64` and not raw.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Where the elements lie if that is another file: `location`, `offset`, `length`.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 if the elements lie in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// Name and type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type; only arrays are known here.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// Array.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Element type and extents of an array.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// Element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Extents.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<ShapeProto>,
}

/// Extents.
#[derive(Clone, PartialEq, Message)]
pub struct ShapeProto {
    /// Outermost first.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One extent.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// A number or a name.
    #[prost(oneof = "Dimension", tags = "1, 2")]
    pub value: Option<Dimension>,
}

/// A number or a name.
#[derive(Clone, PartialEq, Oneof)]
pub enum Dimension {
    /// Known.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// Whatever the run gives, the same wherever the name stands.
    #[prost(string, tag = "2")]
    Param(String),
}

impl TensorProto {
    /// A constant `f32` array.
    pub fn floats(name: impl Into<String>, dims: &[usize], values: &[f32]) -> Self {
        let raw_data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self { dims: signed(dims), data_type: FLOAT, name: name.into(), raw_data, ..Self::default() }
    }

    /// A constant vector of whole numbers: the target of a `Reshape`.
    pub fn whole(name: impl Into<String>, values: &[i64]) -> Self {
        let raw_data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self {
            dims: vec![values.len() as i64],
            data_type: INT64,
            name: name.into(),
            raw_data,
            ..Self::default()
        }
    }
}

impl AttributeProto {
    /// A whole number.
    pub fn int(name: &str, value: i64) -> Self {
        Self { name: name.into(), i: Some(value), r#type: AttributeType::Int as i32, ..Self::default() }
    }

    /// A number.
    pub fn float(name: &str, value: f32) -> Self {
        Self { name: name.into(), f: Some(value), r#type: AttributeType::Float as i32, ..Self::default() }
    }

    /// Whole numbers.
    pub fn ints(name: &str, values: impl IntoIterator<Item = usize>) -> Self {
        let ints = values.into_iter().map(|v| v as i64).collect();
        Self { name: name.into(), ints, r#type: AttributeType::Ints as i32, ..Self::default() }
    }
}

impl ValueInfoProto {
    /// A batch of `f32` arrays: extents `[N, …]` with a free number of samples N.
    pub fn batch_of(name: &str, extents: &[usize]) -> Self {
        let dimension = |value| DimensionProto { value: Some(value) };
        let known = extents.iter().map(|&e| dimension(Dimension::Value(e as i64)));
        let dim = std::iter::once(dimension(Dimension::Param("N".into()))).chain(known).collect();
        let tensor_type = Some(TensorTypeProto { elem_type: FLOAT, shape: Some(ShapeProto { dim }) });
        Self { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
    }
}

fn signed(extents: &[usize]) -> Vec<i64> {
    extents.iter().map(|&e| e as i64).collect()
}

/// Whether a domain is ONNX's own, which has two spellings.
pub(crate) fn is_standard(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}
