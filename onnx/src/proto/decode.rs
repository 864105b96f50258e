//! Bytes → messages, with what they may cost bounded before anything is allocated.
use super::ModelProto;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Largest file.
pub const MAX_FILE: usize = 512 << 20;
/// Most bytes outside of weights and of what is skipped (documentation, notes of exporters, types of inner values). A
/// message of two bytes becomes a struct of some hundred, so this bounds memory too.
pub const MAX_STRUCTURE: usize = 1 << 20;

/// Why bytes are not an ONNX file that will be looked at.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Too many bytes.
    #[error("the file has {got} bytes, at most {max} are read")]
    TooLong {
        /// Its length.
        got: usize,
        /// The most.
        max: usize,
    },
    /// Too much beside weights.
    #[error("nodes, names and attributes take {got} bytes of the file, at most {max} are read")]
    TooManyParts {
        /// What they take.
        got: usize,
        /// The most.
        max: usize,
    },
    /// A part is longer than what holds it.
    #[error("the file is cut short: a part of {need} bytes begins where {left} are left")]
    Truncated {
        /// Length of the part.
        need: u64,
        /// Bytes left.
        left: usize,
    },
    /// Not protocol buffers.
    #[error("the file is damaged or not ONNX: {0}")]
    Malformed(#[from] prost::DecodeError),
}

/// Parses a file.
///
/// # Errors
/// [`DecodeError`].
pub fn decode(bytes: &[u8]) -> Result<ModelProto, DecodeError> {
    if bytes.len() > MAX_FILE {
        return Err(DecodeError::TooLong { got: bytes.len(), max: MAX_FILE });
    }
    let got = structure(Level::Model, bytes)?;
    if got > MAX_STRUCTURE {
        return Err(DecodeError::TooManyParts { got, max: MAX_STRUCTURE });
    }
    Ok(ModelProto::decode(bytes)?)
}

#[derive(Clone, Copy)]
enum Level {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    /// Bytes that are no structure.
    Weights,
}

impl Level {
    fn of_field(self, tag: u32) -> Option<Self> {
        match (self, tag) {
            (Self::Model, 7) => Some(Self::Graph),
            (Self::Graph, 1) => Some(Self::Node),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::Graph | Self::Attribute, 5) => Some(Self::Tensor),
            (Self::Tensor, 4 | 9) => Some(Self::Weights),
            // Never decoded: documentation, notes, quantisation, functions, inner types, graphs in attributes.
            (Self::Model, 6 | 20 | 25) | (Self::Graph, 10 | 13 | 14 | 16) | (Self::Node, 6 | 9) => {
                Some(Self::Weights)
            }
            (Self::Attribute, 6 | 13) | (Self::Tensor, 12 | 16) => Some(Self::Weights),
            _ => None,
        }
    }
}

/// Bytes of a message that are not weights. Allocates nothing.
fn structure(level: Level, mut rest: &[u8]) -> Result<usize, DecodeError> {
    let mut total = 0;
    while !rest.is_empty() {
        let before = rest.len();
        let (tag, wire_type) = decode_key(&mut rest)?;
        match level.of_field(tag) {
            Some(inner) if wire_type == WireType::LengthDelimited => {
                let need = decode_varint(&mut rest)?;
                let body = usize::try_from(need).ok().and_then(|n| rest.get(..n));
                let body = body.ok_or(DecodeError::Truncated { need, left: rest.len() })?;
                rest = &rest[body.len()..];
                total += before - rest.len() - body.len();
                total += if matches!(inner, Level::Weights) { 0 } else { structure(inner, body)? };
            }
            _ => {
                skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
                total += before - rest.len();
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    #[test]
    fn weights_are_not_structure() {
        let initializer = vec![TensorProto::floats("w", &[1000], &[1.0; 1000])];
        let model = ModelProto {
            graph: Some(GraphProto { initializer, ..GraphProto::default() }),
            ..ModelProto::default()
        };
        let bytes = model.encode_to_vec();
        assert!(bytes.len() > 4000);
        assert!(structure(Level::Model, &bytes).unwrap() < 32);
        assert_eq!(decode(&bytes).unwrap(), model);
    }

    #[test]
    fn a_million_empty_nodes_are_refused_unread() {
        let nodes = [0x0a, 0x00].repeat(MAX_STRUCTURE / 2 + 1);
        let mut bytes = vec![0x3a];
        prost::encoding::encode_varint(nodes.len() as u64, &mut bytes);
        bytes.extend(nodes);
        assert!(matches!(decode(&bytes), Err(DecodeError::TooManyParts { .. })));
    }

    #[test]
    fn a_part_longer_than_the_file_is_named() {
        assert_eq!(decode(&[0x3a, 0x7f, 0x00]), Err(DecodeError::Truncated { need: 127, left: 1 }));
    }
}
