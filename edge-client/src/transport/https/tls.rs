//! rustls under ureq.
use super::Trust;
use crate::transport::HostClock;
use crate::transport::verify::PinnedAuthority;
use models::wire::HOST_NAME;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{AlertDescription, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// The TLS configuration for this trust: TLS 1.3 only, the host's clock, no other root than the host's authority.
pub(super) fn config(trust: &Trust, clock: &HostClock) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(Arc::clone(&provider), Arc::new(clock.clone()));
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    match trust {
        Trust::Pin(pin) => {
            let verifier = Arc::new(PinnedAuthority::new(*pin, provider));
            Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
        }
        Trust::Member { authority, certificate, key } => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(authority.clone()))?;
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose().to_vec()));
            let chain = vec![CertificateDer::from(certificate.clone())];
            builder.with_root_certificates(roots).with_client_auth_cert(chain, key)
        }
    }
}

/// Why the two sides don't trust each other, if that is what went wrong.
pub(super) fn distrust(error: &ureq::Error) -> Option<String> {
    let ureq::Error::Io(io) = error else { return None };
    match io.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => {
            Some(format!("its certificate is not signed by the authority this board trusts ({why:?})"))
        }
        rustls::Error::AlertReceived(alert) => Some(objection(*alert)),
        other => Some(other.to_string()),
    }
}

fn objection(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::UnknownCA
        | AlertDescription::BadCertificate => {
            "the host doesn't accept this board's certificate; was the host set up anew? Then enrol again"
                .into()
        }
        other => format!("the host ended the handshake ({other:?})"),
    }
}

/// Wraps a connection in TLS. Whatever the address, the host must prove the one name that its authority gives it.
#[derive(Debug)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self(Arc::new(config))
    }
}

impl<In: Transport> Connector<In> for Tls {
    type Out = TlsTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<TlsTransport>, ureq::Error> {
        let Some(tcp) = chained else { return Ok(None) };
        let name = ServerName::try_from(HOST_NAME)
            .map_err(|_| ureq::Error::Tls("the host's name is not a DNS name"))?;
        let tls_error =
            |e: rustls::Error| ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::InvalidData, e));
        let mut conn = ClientConnection::new(Arc::clone(&self.0), name).map_err(tls_error)?;
        let mut sock =
            TransportAdapter::new(Box::new(tcp) as Box<dyn Transport>, details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(TlsTransport { buffers, stream: StreamOwned { conn, sock } }))
    }
}

/// An encrypted connection.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl std::fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsTransport")
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
