//! The protocol's messages over a transport.
use super::{Call, CallError, HostClock, Transport};
use models::id::Hash;
use models::params::{ModelCard, ModelSpec};
use models::wire::{
    Answer, Decline, Endpoint, EnrollRequest, Enrolled, Envelope, MESSAGE_CAP, NETWORK_CAP, PartRef, Poll,
    Receipt, from_bytes, to_bytes,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Speaks with the host, hears its clock, counts bytes.
pub struct Link {
    transport: Box<dyn Transport>,
    clock: HostClock,
    sent: u64,
    received: u64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.transport.host())
    }
}

impl Link {
    /// Speaks over `transport`.
    pub fn new(transport: Box<dyn Transport>, clock: HostClock) -> Self {
        Self { transport, clock, sent: 0, received: 0 }
    }

    /// The host's clock, as far as it was heard.
    pub fn clock(&self) -> &HostClock {
        &self.clock
    }

    /// Bytes of bodies sent and received so far.
    pub fn traffic(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Asks to be known.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn enroll(&mut self, request: &EnrollRequest) -> Result<Enrolled, CallError> {
        self.ask(Endpoint::ENROLL, request)
    }

    /// Asks what to do.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn poll(&mut self, poll: &Poll) -> Result<Answer, CallError> {
        self.ask(Endpoint::POLL, poll)
    }

    /// Asks what the network is.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn model(&mut self) -> Result<ModelCard, CallError> {
        let bytes = self.send(Endpoint::MODEL, None, &[], MESSAGE_CAP as u64)?;
        self.open(&bytes)
    }

    /// Fetches a shared part; what comes has the right length and hash.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn blob(&mut self, part: PartRef, spec: &ModelSpec) -> Result<Vec<u8>, CallError> {
        let expected = 4 * part.extent.len(spec);
        let bytes = self.send(Endpoint::BLOB, Some(part.hash), &[], expected.max(MESSAGE_CAP) as u64)?;
        match bytes.len() == expected && Hash::of(&bytes) == part.hash {
            true => Ok(bytes),
            false => Err(self.strange("a shared part with another content than its name says")),
        }
    }

    /// Fetches the file of a network that was brought along; what comes has the right hash.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn network(&mut self, hash: Hash) -> Result<Vec<u8>, CallError> {
        let bytes = self.send(Endpoint::BLOB, Some(hash), &[], NETWORK_CAP as u64)?;
        match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err(self.strange("a network with another content than the model's card says")),
        }
    }

    /// Sends an update as it is.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn submit(&mut self, body: &[u8]) -> Result<Receipt, CallError> {
        let bytes = self.send(Endpoint::UPDATE, None, body, MESSAGE_CAP as u64)?;
        self.open(&bytes)
    }

    /// Tells that a task is refused.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn decline(&mut self, decline: &Decline) -> Result<Receipt, CallError> {
        self.ask(Endpoint::DECLINE, decline)
    }

    fn ask<Q: Serialize, A: DeserializeOwned>(
        &mut self,
        endpoint: Endpoint,
        body: &Q,
    ) -> Result<A, CallError> {
        let bytes = to_bytes(&Envelope::new(body)).map_err(CallError::Refused)?;
        let answer = self.send(endpoint, None, &bytes, MESSAGE_CAP as u64)?;
        self.open(&answer)
    }

    fn send(
        &mut self,
        endpoint: Endpoint,
        hash: Option<Hash>,
        body: &[u8],
        cap: u64,
    ) -> Result<Vec<u8>, CallError> {
        self.sent += body.len() as u64;
        let bytes = self.transport.call(Call { endpoint, hash, body, cap })?;
        self.received += bytes.len() as u64;
        Ok(bytes)
    }

    fn open<A: DeserializeOwned>(&self, bytes: &[u8]) -> Result<A, CallError> {
        let envelope: Envelope<A> =
            from_bytes(bytes).map_err(|_| self.strange("a message that can't be decoded"))?;
        self.clock.heard(envelope.host_time);
        envelope.open().map_err(CallError::Refused)
    }

    fn strange(&self, what: &str) -> CallError {
        CallError::Strange { host: self.transport.host(), what: what.into() }
    }
}
