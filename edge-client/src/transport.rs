//! Calls to the host: the protocol's endpoints over whatever carries bytes.
mod https;
mod link;
mod memory;
mod time;
mod verify;

pub use https::{Address, Https, Trust};
pub use link::Link;
pub use memory::Memory;
pub use time::HostClock;
pub(crate) use verify::fingerprint;

use models::id::Hash;
use models::wire::{Endpoint, Reject};

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Which row of the protocol.
    pub endpoint: Endpoint,
    /// What `{hash}` in its path stands for.
    pub hash: Option<Hash>,
    /// The body; empty where the endpoint takes none.
    pub body: &'a [u8],
    /// Most bytes that are read of the answer.
    pub cap: u64,
}

impl Call<'_> {
    /// The path, with the hash in its place.
    pub fn path(&self) -> String {
        match self.hash {
            Some(hash) => self.endpoint.path.replace("{hash}", &hash.to_string()),
            None => self.endpoint.path.into(),
        }
    }
}

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The host refuses, by name.
    #[error("the host refuses: {0}")]
    Refused(Reject),
    /// No connection, or it broke.
    #[error("can't reach the host at {host}: {why}")]
    Unreachable {
        /// Where it should be.
        host: String,
        /// Why.
        why: String,
    },
    /// Somebody answered who isn't the host, or the host doesn't trust this board.
    #[error("no trusted connection to {host}: {why}")]
    Untrusted {
        /// Where it should be.
        host: String,
        /// Why.
        why: String,
    },
    /// The answer is no answer of this protocol.
    #[error(
        "{host} answered what this program doesn't understand ({what}): is it a Spectra host of the same version?"
    )]
    Strange {
        /// Who.
        host: String,
        /// What came.
        what: String,
    },
}

/// Carries a request to the host and its answer back. Blocking, with a deadline of its own.
pub trait Transport {
    /// Status 200's body, or why there is none.
    ///
    /// # Errors
    /// [`CallError`].
    fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, CallError>;

    /// Where the host is, for messages.
    fn host(&self) -> String;
}
