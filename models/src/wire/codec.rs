//! Codecs of an update's values. Lengths follow from the specification, never from the message.
use super::Reject;
use crate::fed::Coverage;
use crate::params::{Entry, ModelSpec, Role};
use serde::{Deserialize, Serialize};

/// How values are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// Four bytes each, exact.
    F32,
    /// Two bytes each: the upper half of the `f32`, rounded to even.
    Bf16,
    /// One byte each and one scale per output row; biases, norms, statistics and entries under 256 values stay `f32`.
    #[default]
    Int8Row,
}

/// Smallest entry that [`Codec::Int8Row`] quantises.
const QUANTISED_FROM: usize = 256;

/// The entries of the extent, in order, each with whether it is covered.
pub(super) fn entries(spec: &ModelSpec, of: Coverage) -> impl Iterator<Item = (&Entry, bool)> {
    let mask = of.mask(spec);
    let all = spec.entries().iter().enumerate().filter(move |(_, e)| of.extent.has(e));
    all.map(move |(index, entry)| (entry, mask.has(index)))
}

/// The row length under which an entry is quantised, or none if it stays `f32`.
fn row(entry: &Entry) -> Option<usize> {
    let quantised =
        entry.role == Role::Trainable && entry.shape.rank() >= 2 && entry.range.len() >= QUANTISED_FROM;
    quantised.then(|| entry.range.len() / entry.shape.extents()[0])
}

fn entry_len(codec: Codec, entry: &Entry) -> usize {
    let n = entry.range.len();
    match (codec, row(entry)) {
        (_, _) if entry.role == Role::Opaque => 4 * n,
        (Codec::F32, _) | (Codec::Int8Row, None) => 4 * n,
        (Codec::Bf16, _) => 2 * n,
        (Codec::Int8Row, Some(width)) => n + 4 * (n / width),
    }
}

/// Bytes of the values of `of`.
pub fn encoded_len(codec: Codec, spec: &ModelSpec, of: impl Into<Coverage>) -> usize {
    entries(spec, of.into()).filter(|(_, covered)| *covered).map(|(e, _)| entry_len(codec, e)).sum()
}

/// Writes what is covered of `values`, which are those of the whole extent.
///
/// # Panics
/// If `values` doesn't have the extent's length: [`crate::params::Delta`] guarantees it.
pub fn encode(codec: Codec, spec: &ModelSpec, of: impl Into<Coverage>, values: &[f32]) -> Vec<u8> {
    let of = of.into();
    assert_eq!(values.len(), of.extent.len(spec), "values of another extent");
    let mut out = Vec::with_capacity(encoded_len(codec, spec, of));
    let mut rest = values;
    for (entry, covered) in entries(spec, of) {
        let (own, after) = rest.split_at(entry.range.len());
        rest = after;
        if covered {
            encode_entry(codec, entry, own, &mut out);
        }
    }
    out
}

fn encode_entry(codec: Codec, entry: &Entry, values: &[f32], out: &mut Vec<u8>) {
    match (codec, row(entry)) {
        (Codec::Bf16, _) if entry.role != Role::Opaque => {
            values.iter().for_each(|&v| out.extend_from_slice(&bf16(v).to_le_bytes()));
        }
        (Codec::Int8Row, Some(width)) => values.chunks_exact(width).for_each(|row| encode_row(row, out)),
        _ => values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
    }
}

/// One row: `scale = max|v| / 127`, then `round(v / scale)` in a byte each.
fn encode_row(values: &[f32], out: &mut Vec<u8>) {
    let peak = values.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let scale = peak / 127.0;
    out.extend_from_slice(&scale.to_le_bytes());
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    out.extend(values.iter().map(|v| (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8 as u8));
}

fn bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let even = (bits >> 16) & 1;
    ((bits + 0x7fff + even) >> 16) as u16
}

/// Reads the values of the whole extent back: what is not covered has not changed, and is zero.
///
/// # Errors
/// [`Reject::WrongLength`] before anything is allocated, [`Reject::NotFinite`].
pub fn decode(
    codec: Codec,
    spec: &ModelSpec,
    of: impl Into<Coverage>,
    bytes: &[u8],
) -> Result<Vec<f32>, Reject> {
    let of = of.into();
    let expected = encoded_len(codec, spec, of);
    if bytes.len() != expected {
        return Err(Reject::WrongLength { expected: expected as u64, got: bytes.len() as u64 });
    }
    let mut out = Vec::with_capacity(of.extent.len(spec));
    let mut rest = bytes;
    for (entry, covered) in entries(spec, of) {
        if !covered {
            out.resize(out.len() + entry.range.len(), 0.0);
            continue;
        }
        let (own, after) = rest.split_at(entry_len(codec, entry));
        rest = after;
        decode_entry(codec, entry, own, &mut out);
    }
    if out.iter().any(|v| !v.is_finite()) {
        return Err(Reject::NotFinite);
    }
    Ok(out)
}

fn decode_entry(codec: Codec, entry: &Entry, bytes: &[u8], out: &mut Vec<f32>) {
    match (codec, row(entry)) {
        (Codec::Bf16, _) if entry.role != Role::Opaque => {
            out.extend(
                bytes.as_chunks().0.iter().map(|c| f32::from_bits(u32::from(u16::from_le_bytes(*c)) << 16)),
            );
        }
        (Codec::Int8Row, Some(width)) => bytes.chunks_exact(4 + width).for_each(|row| decode_row(row, out)),
        _ => out.extend(bytes.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c))),
    }
}

fn decode_row(row: &[u8], out: &mut Vec<f32>) {
    let (scale, values) = row.split_at(4);
    let scale = scale.try_into().map_or(f32::NAN, f32::from_le_bytes);
    out.extend(values.iter().map(|&b| f32::from(b as i8) * scale));
}
