//! First contact: the host's chain must end in the authority whose public key the token names.
use models::id::Hash;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// SHA-256 of the public key in a certificate, or nothing if it can't be read.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> Option<Hash> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    Some(Hash::of(&parsed.subject_public_key_info()))
}

/// Trusts whatever the pinned authority signed, and nothing else.
#[derive(Debug)]
pub(super) struct PinnedAuthority {
    pin: Hash,
    provider: Arc<CryptoProvider>,
}

impl PinnedAuthority {
    pub(super) fn new(pin: Hash, provider: Arc<CryptoProvider>) -> Self {
        Self { pin, provider }
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let pinned = chain.iter().find(|c| fingerprint(c) == Some(self.pin));
        let authority = pinned.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        let verifier = verifier.map_err(|e| Error::General(e.to_string()))?;
        verifier.verify_server_cert(leaf, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
