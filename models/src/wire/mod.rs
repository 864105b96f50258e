//! The protocol: one table of endpoints, versioned envelopes, codecs of updates, limits.
//!
//! Every message is an [`Envelope`] in postcard, decoded with nothing left over and every field bounded. Tensors never
//! travel inside a message: shared parts are blobs of raw little-endian `f32`, an update is a header and a payload laid
//! out by the [`crate::params::ModelSpec`], so sizes are known before anything is allocated.
mod codec;
mod endpoint;
mod message;
mod reject;
mod token;
mod update;

pub use codec::{Codec, decode, encode, encoded_len};
pub use endpoint::{ENDPOINTS, Endpoint, Method};
pub use message::{
    Adopt, Answer, Bytes, Decline, Declined, EnrollRequest, Enrolled, Envelope, Health, Name, Outlook,
    PartRef, Parts, Poll, Receipt, Session, Task, Why,
};
pub use reject::{Advice, Reject};
pub use token::{NotAToken, Token};
pub use update::{
    UpdateHeader, open_update, seal_update, split_submit, split_update, submit_body, submit_cap,
};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of everything on the wire.
pub const VERSION: u16 = 2;

/// The name that every leaf certificate of a host carries and every board asks for, whatever the address is.
pub const HOST_NAME: &str = "aggregator.spectra.internal";

/// Longest message that is not a blob or an update.
pub const MESSAGE_CAP: usize = 16 * 1024;

/// Longest file of a network that was brought along.
pub const NETWORK_CAP: usize = 64 << 20;

/// Longest header of an update.
pub const HEADER_CAP: usize = 256;

/// Bytes of a message.
///
/// # Errors
/// [`Reject::TooLarge`] if it doesn't fit [`MESSAGE_CAP`].
pub fn to_bytes<T: Serialize>(message: &T) -> Result<Vec<u8>, Reject> {
    match postcard::to_stdvec(message) {
        Ok(bytes) if bytes.len() <= MESSAGE_CAP => Ok(bytes),
        _ => Err(Reject::TooLarge { limit: MESSAGE_CAP as u64 }),
    }
}

/// A message from bytes, with nothing left over.
///
/// # Errors
/// [`Reject::TooLarge`] before anything is read, [`Reject::Malformed`].
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reject> {
    if bytes.len() > MESSAGE_CAP {
        return Err(Reject::TooLarge { limit: MESSAGE_CAP as u64 });
    }
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Reject::Malformed),
    }
}

/// The raw form of a shared part: little-endian `f32`.
pub fn part_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A shared part from its raw form. The caller has checked the length against the specification.
///
/// # Errors
/// [`Reject::WrongLength`] if it is not a whole number of values, [`Reject::NotFinite`].
pub fn part_values(bytes: &[u8]) -> Result<Vec<f32>, Reject> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Reject::WrongLength { expected: 4 * chunks.len() as u64, got: bytes.len() as u64 });
    }
    let values: Vec<f32> = chunks.iter().map(|c| f32::from_le_bytes(*c)).collect();
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Reject::NotFinite);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
