//! An update on the wire: who sends it, then the sealed update: header length, header, payload.
//!
//! The sealed part doesn't name the session, so that a board that restarts sends the very same bytes again and the
//! host, which names updates by the hash of these bytes, knows them.
use super::{Codec, Envelope, HEADER_CAP, Reject, Session, codec, from_bytes, to_bytes};
use crate::fed::{Coverage, Extent, Outgoing, Start};
use crate::id::RoundId;
use crate::params::{ModelSpec, Role, UpdateMode};
use serde::{Deserialize, Serialize};

/// What an update says of itself.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct UpdateHeader {
    /// The round it belongs to.
    pub round: RoundId,
    /// The part of the model.
    pub extent: Extent,
    /// How the board trained: of that part, the values of what this mode trains follow, and of nothing else.
    pub mode: UpdateMode,
    /// How it is coded.
    pub codec: Codec,
    /// Training samples behind it.
    pub samples: u32,
    /// Where training started.
    pub start: Start,
    /// Whether the final layer's weights follow the values, as `f32`.
    pub prototype: bool,
}

impl UpdateHeader {
    /// What the values cover.
    pub fn coverage(&self) -> Coverage {
        Coverage { extent: self.extent, mode: self.mode }
    }
}

/// Most samples an update may claim.
const SAMPLES_CAP: u32 = 1 << 20;
/// Most that one trainable value may change in a round: weights are rarely above ten.
const CHANGE_CAP: f32 = 100.0;
/// Most that trainable values may change in the root mean square: fresh weights are some hundredths, and a round changes them by less.
const SPREAD_CAP: f64 = 1.0;
/// Most that a statistic may change: a variance of unscaled bytes is below 2^16.
const STATISTIC_CAP: f32 = 1e6;

/// Bytes of an update: `u32` length of the header, the header in its envelope, the values, the prototype.
///
/// # Errors
/// [`Reject::TooLarge`] if the header doesn't fit, which its type excludes; [`Reject::BadCoverage`] of a mode that sends nothing.
pub fn seal_update(round: RoundId, how: Codec, spec: &ModelSpec, out: &Outgoing) -> Result<Vec<u8>, Reject> {
    let prototype = !out.prototype().is_empty();
    let (of, samples, start) = (out.coverage(), out.samples(), out.start());
    possible(of, spec)?;
    let Coverage { extent, mode } = of;
    let header = UpdateHeader { round, extent, mode, codec: how, samples, start, prototype };
    let header = to_bytes(&Envelope::new(header))?;
    let mut bytes = (header.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&header);
    bytes.extend(codec::encode(how, spec, of, out.values()));
    bytes.extend(super::part_bytes(out.prototype()));
    Ok(bytes)
}

/// The body of [`super::Endpoint::UPDATE`]: the session's epoch and nonce, then the sealed update.
pub fn submit_body(session: Session, sealed: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(8 + sealed.len());
    body.extend_from_slice(&session.epoch.to_le_bytes());
    body.extend_from_slice(&session.nonce.to_le_bytes());
    body.extend_from_slice(sealed);
    body
}

/// Separates the session from the sealed update.
///
/// # Errors
/// [`Reject::Malformed`].
pub fn split_submit(body: &[u8]) -> Result<(Session, &[u8]), Reject> {
    let (epoch, rest) = body.split_first_chunk::<4>().ok_or(Reject::Malformed)?;
    let (nonce, sealed) = rest.split_first_chunk::<4>().ok_or(Reject::Malformed)?;
    Ok((Session { epoch: u32::from_le_bytes(*epoch), nonce: u32::from_le_bytes(*nonce) }, sealed))
}

/// Most bytes that the body of an update of this extent can have.
pub fn submit_cap(how: Codec, spec: &ModelSpec, extent: Extent) -> usize {
    let prototype = 4 * spec.head_weight().map_or(0, |e| e.range.len());
    8 + 4 + HEADER_CAP + codec::encoded_len(how, spec, extent) + prototype
}

/// Separates header and payload without looking at the payload.
///
/// # Errors
/// [`Reject::Malformed`], [`Reject::Version`].
pub fn split_update(bytes: &[u8]) -> Result<(UpdateHeader, &[u8]), Reject> {
    let (len, rest) = bytes.split_first_chunk::<4>().ok_or(Reject::Malformed)?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > HEADER_CAP || len > rest.len() {
        return Err(Reject::Malformed);
    }
    let (header, payload) = rest.split_at(len);
    Ok((from_bytes::<Envelope<UpdateHeader>>(header)?.open()?, payload))
}

/// Reads an update whole, checked against the specification.
///
/// # Errors
/// Any [`Reject`] of a payload: coverage, length, weight, finiteness.
pub fn open_update(bytes: &[u8], spec: &ModelSpec) -> Result<(UpdateHeader, Outgoing), Reject> {
    let (header, payload) = split_update(bytes)?;
    if header.samples == 0 || header.samples > SAMPLES_CAP {
        return Err(Reject::BadWeight { samples: header.samples });
    }
    if header.extent == Extent::Head {
        return Err(Reject::NotAsked);
    }
    let of = header.coverage();
    possible(of, spec)?;
    let head_bytes = if header.prototype { 4 * spec.head_weight().map_or(0, |e| e.range.len()) } else { 0 };
    let expected = codec::encoded_len(header.codec, spec, of) + head_bytes;
    if payload.len() != expected {
        return Err(Reject::WrongLength { expected: expected as u64, got: payload.len() as u64 });
    }
    let (values, prototype) = payload.split_at(expected - head_bytes);
    let values = codec::decode(header.codec, spec, of, values)?;
    believable(&values, spec, of)?;
    let prototype = super::part_values(prototype)?;
    Ok((header, Outgoing::from_wire(of, values, header.samples, header.start, prototype)))
}

/// Refuses a mode that the model can't have been trained in, or that sends nothing of this extent.
fn possible(of: Coverage, spec: &ModelSpec) -> Result<(), Reject> {
    if of.is_possible(spec) { Ok(()) } else { Err(Reject::BadCoverage { mode: of.mode }) }
}

/// Refuses a change that no training makes, before it can spoil the sum that everybody shares. It is no defence against a board that
/// poisons with measure.
fn believable(values: &[f32], spec: &ModelSpec, of: Coverage) -> Result<(), Reject> {
    let (mut rest, mut worst, mut squares, mut trained) = (values, 0.0_f32, 0.0_f64, 0_usize);
    for (entry, covered) in codec::entries(spec, of) {
        let (own, after) = rest.split_at(entry.range.len());
        rest = after;
        if !covered {
            continue;
        }
        let cap = match entry.role {
            Role::Trainable => CHANGE_CAP,
            Role::Statistic => STATISTIC_CAP,
            Role::Opaque => continue,
        };
        worst = own.iter().fold(worst, |w, v| w.max(v.abs() / cap));
        if entry.role == Role::Trainable {
            squares += own.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>();
            trained += own.len();
        }
    }
    let spread = libm::sqrt(squares / trained.max(1) as f64) / SPREAD_CAP;
    let steps = f64::from(worst).max(spread);
    if steps > 1.0 { Err(Reject::Absurd { steps: libm::ceil(steps) as u32 }) } else { Ok(()) }
}
