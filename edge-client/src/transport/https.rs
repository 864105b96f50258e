//! HTTPS with our own TLS configuration: TLS 1.3, the host's authority as the only root, the board's certificate.
mod tls;

use super::{Call, CallError, HostClock, Transport};
use crate::secret::Secret;
use models::id::Hash;
use models::wire::{Envelope, Method, Reject, from_bytes};
use rustls::ClientConfig;
use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;
use ureq::http::{Request, Response};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body};

/// `https://host:port`, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address(String);

/// The text is no address of a host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is no host: write https://NAME:PORT, as `aggregator serve` prints it")]
pub struct NotAnAddress {
    /// What was written.
    text: String,
}

impl std::str::FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress { text: text.into() };
        let trimmed = text.trim().trim_end_matches('/');
        let uri: ureq::http::Uri = trimmed.parse().map_err(|_| wrong())?;
        let named = uri.authority().is_some_and(|a| !a.as_str().contains('@'));
        let plain = named && uri.path().trim_matches('/').is_empty() && uri.query().is_none();
        match uri.scheme_str() == Some("https") && plain && uri.host().is_some_and(|h| !h.is_empty()) {
            true => Ok(Self(trimmed.into())),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whom the board trusts, and as whom it speaks.
#[derive(Clone, Debug)]
pub enum Trust {
    /// First contact: the token's pin, no certificate yet.
    Pin(Hash),
    /// An enrolled board.
    Member {
        /// The host's authority, DER.
        authority: Vec<u8>,
        /// The board's certificate, DER.
        certificate: Vec<u8>,
        /// The board's key, PKCS#8 DER.
        key: Secret,
    },
}

/// The host over HTTPS.
#[derive(Debug)]
pub struct Https {
    agent: Agent,
    address: Address,
}

/// However slow the link, one exchange ends after this long.
const LONGEST: Duration = Duration::from_secs(3600);
const HEADERS: usize = 8 * 1024;

impl Https {
    /// A connection to `address`; nothing is sent yet. `patience` is the longest silence.
    ///
    /// # Errors
    /// [`CallError::Untrusted`] if the stored certificates or key can't be read.
    pub fn new(
        address: Address,
        trust: &Trust,
        clock: &HostClock,
        patience: Duration,
    ) -> Result<Self, CallError> {
        let untrusted =
            |e: rustls::Error| CallError::Untrusted { host: address.to_string(), why: e.to_string() };
        let tls: ClientConfig = tls::config(trust, clock).map_err(untrusted)?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("spectra-edge-client/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("")
            .max_response_header_size(HEADERS)
            .timeout_global(Some(LONGEST))
            .timeout_connect(Some(patience))
            .timeout_per_read(Some(patience))
            .timeout_per_write(Some(patience))
            .timeout_recv_response(Some(patience))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(tls::Tls::new(tls));
        Ok(Self { agent: Agent::with_parts(config, connector, DefaultResolver::default()), address })
    }

    fn send(&self, call: Call<'_>) -> Result<Response<Body>, ureq::Error> {
        let method = match call.endpoint.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
        };
        let request = Request::builder().method(method).uri(format!("{}{}", self.address, call.path()));
        match call.endpoint.method {
            Method::Get => self.agent.run(request.body(())?),
            Method::Post | Method::Put => {
                let typed = request.header("content-type", "application/octet-stream");
                self.agent.run(typed.body(call.body)?)
            }
        }
    }

    fn failed(&self, error: &ureq::Error) -> CallError {
        let (host, why) = (self.address.to_string(), said(error));
        match tls::distrust(error) {
            Some(why) => CallError::Untrusted { host, why },
            None => CallError::Unreachable { host, why },
        }
    }

    fn refused(&self, status: u16, bytes: &[u8]) -> CallError {
        match from_bytes::<Envelope<Reject>>(bytes) {
            Ok(envelope) => CallError::Refused(envelope.body),
            Err(_) => CallError::Strange { host: self.address.to_string(), what: format!("status {status}") },
        }
    }
}

impl Transport for Https {
    fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, CallError> {
        let response = self.send(call).map_err(|e| self.failed(&e))?;
        let status = response.status().as_u16();
        let body = response.into_body().into_with_config().limit(call.cap).read_to_vec();
        let bytes = body.map_err(|e| self.failed(&e))?;
        if status == 200 { Ok(bytes) } else { Err(self.refused(status, &bytes)) }
    }

    fn host(&self) -> String {
        self.address.to_string()
    }
}

/// What to tell the owner.
fn said(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "no such name; check the address and the network".into(),
        ureq::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused => {
            "nothing listens there; is `aggregator serve` running?".into()
        }
        ureq::Error::Io(io) => io.to_string(),
        ureq::Error::Timeout(what) => format!("no answer in time ({what}); is the network up?"),
        ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than {limit} bytes"),
        other => other.to_string(),
    }
}
