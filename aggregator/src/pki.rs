//! The host's own certificate authority: it signs the host's leaf, which rotates, and the boards' certificates.
//!
//! Boards pin the SHA-256 of the authority's public key (its `SubjectPublicKeyInfo`), so a new leaf never touches them.
//! A board's key is made on the board; only its signing request comes here.
use crate::clock::{Millis, later};
use crate::disk;
use models::id::{ClientId, Hash};
use models::wire::{HOST_NAME, Token};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer, PrivateKeyDer};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest signing request that is looked at.
pub const MAX_REQUEST: usize = 2048;
const DAY: Duration = Duration::from_secs(86_400);
const AUTHORITY_DAYS: u32 = 365 * 25;
const BOARD_DAYS: u32 = 365 * 10;
/// A leaf's life; it is renewed when less than a third is left.
pub const LEAF_DAYS: u32 = 90;

/// Why a certificate can't be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: not a {what}; restore it from a backup")]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// The signing request is not acceptable.
    #[error("the signing request is refused: {why}")]
    Request {
        /// Why.
        why: &'static str,
    },
    /// The certificate library failed.
    #[error("certificate: {0}")]
    Library(#[from] rcgen::Error),
}

/// The public key of a board, out of a signing request whose signature was right.
#[derive(Debug)]
pub struct BoardKey(CertificateSigningRequestParams);

impl BoardKey {
    /// Reads a signing request (DER). Of what it asks for, only the key is used: names and rights are the host's to give.
    ///
    /// # Errors
    /// [`PkiError::Request`]: too long, malformed, signed by another key, or not P-256 or Ed25519.
    pub fn from_request(der: &[u8]) -> Result<Self, PkiError> {
        let refuse = |why| PkiError::Request { why };
        if der.len() > MAX_REQUEST {
            return Err(refuse("it is longer than 2048 bytes"));
        }
        let parsed = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der))
            .map_err(|_| refuse("it is malformed or not signed by its own key"))?;
        let kinds = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519];
        if !kinds.contains(&parsed.public_key.algorithm()) {
            return Err(refuse("the key must be ECDSA P-256 or Ed25519"));
        }
        Ok(Self(parsed))
    }

    /// SHA-256 of its `SubjectPublicKeyInfo`: the board's identity.
    pub fn fingerprint(&self) -> Hash {
        Hash::of(&self.0.public_key.subject_public_key_info())
    }
}

/// SHA-256 of the public key in a certificate, or nothing if it can't be read.
pub fn fingerprint_of(certificate: &CertificateDer<'_>) -> Option<Hash> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    Some(Hash::of(&parsed.subject_public_key_info()))
}

/// The host's leaf certificate with its private key.
#[derive(Debug)]
pub struct Leaf {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
    /// When it was made.
    pub issued: Millis,
}

impl Leaf {
    /// Whether less than a third of its life is left.
    pub fn is_due(&self, now: Millis) -> bool {
        now >= later(self.issued, DAY * (LEAF_DAYS * 2 / 3)) || now < self.issued
    }
}

/// The host's certificate authority, in a directory of its own.
#[derive(Debug)]
pub struct Authority {
    dir: PathBuf,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority in `dir`.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn create(dir: &Path, now: Millis) -> Result<Self, PkiError> {
        fs::create_dir_all(dir).map_err(|source| PkiError::File { path: dir.into(), source })?;
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = named("Spectra host authority", now, AUTHORITY_DAYS)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?;
        write_secret(&dir.join("authority.key.pem"), key.serialize_pem().as_bytes())?;
        write_secret(&dir.join("authority.pem"), certificate.pem().as_bytes())?;
        Self::open(dir)
    }

    /// Opens the authority in `dir`.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn open(dir: &Path) -> Result<Self, PkiError> {
        let certificate: CertificateDer<'static> = read_pem(&dir.join("authority.pem"), "certificate")?;
        let path = dir.join("authority.key.pem");
        let text = disk::text(&path).map_err(|source| PkiError::File { path: path.clone(), source })?;
        let key = KeyPair::from_pem(&text).map_err(|_| PkiError::Malformed { path, what: "private key" })?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        Ok(Self { dir: dir.into(), certificate, issuer })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// What boards pin: SHA-256 of its `SubjectPublicKeyInfo`.
    pub fn fingerprint(&self) -> Hash {
        Hash::of(&self.issuer.key().subject_public_key_info())
    }

    /// A certificate by which this board is known.
    ///
    /// # Errors
    /// [`PkiError::Library`].
    pub fn certify(
        &self,
        board: &BoardKey,
        id: ClientId,
        now: Millis,
    ) -> Result<CertificateDer<'static>, PkiError> {
        let mut params = named(&format!("board {id}"), now, BOARD_DAYS)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params.signed_by(&board.0.public_key, &self.issuer)?.der().clone())
    }

    /// A new one-time token, by which a board finds this host and is let in once.
    pub fn token(&self, not_after: Millis) -> Token {
        Token { secret: random(), authority: self.fingerprint(), not_after: not_after.0 / 1000 }
    }

    /// The leaf to serve with: the one on disk, or a new one if there is none or it is due.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn leaf(&self, names: &[String], now: Millis) -> Result<Leaf, PkiError> {
        match self.stored_leaf() {
            Ok(leaf) if !leaf.is_due(now) => Ok(leaf),
            _ => self.renew_leaf(names, now),
        }
    }

    /// Makes a new leaf with a new key and puts it in place of the old one.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn renew_leaf(&self, names: &[String], now: Millis) -> Result<Leaf, PkiError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let always = [HOST_NAME, "localhost", "127.0.0.1", "::1"].map(String::from);
        let mut params =
            CertificateParams::new(always.into_iter().chain(names.iter().cloned()).collect::<Vec<_>>())?;
        dress(&mut params, "Spectra host", now, LEAF_DAYS);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        // One file, so that no crash can leave a certificate beside another's key.
        let bundle = format!("{}\n{}{}", now.0, certificate.pem(), key.serialize_pem());
        write_secret(&self.dir.join("leaf.pem"), bundle.as_bytes())?;
        self.stored_leaf()
    }

    fn stored_leaf(&self) -> Result<Leaf, PkiError> {
        let path = self.dir.join("leaf.pem");
        let text = disk::text(&path).map_err(|source| PkiError::File { path: path.clone(), source })?;
        let issued = text.lines().next().and_then(|line| line.parse().ok()).map(Millis);
        let issued = issued.ok_or_else(|| PkiError::Malformed { path: path.clone(), what: "leaf" })?;
        Ok(Leaf {
            certificate: read_pem(&path, "certificate")?,
            key: read_pem(&path, "private key")?,
            issued,
        })
    }
}

fn named(common_name: &str, now: Millis, days: u32) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(Vec::new())?;
    dress(&mut params, common_name, now, days);
    Ok(params)
}

/// Validity begins before any release of this program, so that a board whose clock stands at its build date accepts it.
fn dress(params: &mut CertificateParams, common_name: &str, now: Millis, days: u32) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_millis(now.0) + DAY * days;
    params.serial_number = Some(SerialNumber::from_slice(&random::<16>()));
    params.use_authority_key_identifier_extension = true;
}

/// Random bytes for secrets and serial numbers.
///
/// # Panics
/// If the operating system has no randomness to give.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system always has randomness once it runs programs");
    bytes
}

fn read_pem<T: PemObject>(path: &Path, what: &'static str) -> Result<T, PkiError> {
    T::from_pem_file(path).map_err(|_| PkiError::Malformed { path: path.into(), what })
}

/// Writes beside, syncs, renames; readable by the owner alone.
fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), PkiError> {
    let fail = |source| PkiError::File { path: path.into(), source };
    let beside = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fail)?;
    fs::rename(&beside, path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);

    fn request(key: &KeyPair) -> Vec<u8> {
        CertificateParams::new(vec!["root.example".into()])
            .unwrap()
            .serialize_request(key)
            .unwrap()
            .der()
            .to_vec()
    }

    #[test]
    fn a_board_gets_its_own_key_back_and_no_right_it_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::create(dir.path(), NOW).unwrap();
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let board = BoardKey::from_request(&request(&key)).unwrap();
        let certificate = authority.certify(&board, ClientId(3), NOW).unwrap();
        assert_eq!(fingerprint_of(&certificate), Some(board.fingerprint()));
        assert!(!certificate.windows(12).any(|w| w == b"root.example"));
    }

    #[test]
    fn tampered_oversized_and_foreign_requests_are_refused() {
        let mut der = request(&KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap());
        let last = der.len() - 1;
        der[last] ^= 1;
        assert!(matches!(BoardKey::from_request(&der), Err(PkiError::Request { .. })));
        assert!(matches!(BoardKey::from_request(&[0; MAX_REQUEST + 1]), Err(PkiError::Request { .. })));
        let p384 = request(&KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap());
        assert!(matches!(BoardKey::from_request(&p384), Err(PkiError::Request { .. })));
    }

    #[test]
    fn a_leaf_is_renewed_when_due_and_the_authority_stays() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::create(dir.path(), NOW).unwrap();
        let first = authority.leaf(&[], NOW).unwrap();
        assert_eq!(authority.leaf(&[], later(NOW, DAY * 59)).unwrap().certificate, first.certificate);
        assert_ne!(authority.leaf(&[], later(NOW, DAY * 61)).unwrap().certificate, first.certificate);
        assert_eq!(Authority::open(dir.path()).unwrap().fingerprint(), authority.fingerprint());
        assert_eq!(fingerprint_of(authority.certificate()), Some(authority.fingerprint()));
    }
}
