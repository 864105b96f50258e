//! Becoming known: the key is made here and kept before anything is sent, so that a crash or a lost answer only means
//! asking again with the same key.
use crate::secret::Secret;
use crate::store::{Identity, Membership, Store, StoreError};
use crate::transport::{CallError, Link};
use models::id::{ClientId, Hash};
use models::round::Backoff;
use models::wire::{Bytes, EnrollRequest, Enrolled, Name, Token};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::time::Duration;

/// Why a board can't be enrolled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrollError {
    /// It is enrolled somewhere else already.
    #[error(
        "this directory belongs to board {client} of {host}; give another `--dir` to enrol at {wanted}; if that is the same host at a new address, leave `--token` out"
    )]
    Elsewhere {
        /// Its number there.
        client: ClientId,
        /// Where.
        host: String,
        /// Where it should go.
        wanted: String,
    },
    /// The name can't be sent.
    #[error("{name:?} is no name for a board: at most 64 bytes, no control characters")]
    Name {
        /// It.
        name: String,
    },
    /// The key can't be made or read.
    #[error("the device key: {0}")]
    Key(#[from] rcgen::Error),
    /// The host's answer doesn't fit the token or the key.
    #[error("the host's answer is refused: {why}")]
    Answer {
        /// What is wrong.
        why: &'static str,
    },
    /// The private directory can't be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host refuses or can't be reached.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// How often an unreachable host is asked.
const TRIES: u32 = 6;

/// Makes the key if there is none, and keeps it with the host's address.
///
/// # Errors
/// [`EnrollError`].
pub fn prepare(store: &mut Store, host: &str, name: &str) -> Result<(), EnrollError> {
    let key = match &store.record().identity {
        Some(Identity { membership: Some(member), host: at, .. }) if at != host => {
            return Err(EnrollError::Elsewhere {
                client: member.client,
                host: at.clone(),
                wanted: host.into(),
            });
        }
        Some(identity) => identity.key.clone(),
        None => Secret::new(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?.serialize_der()),
    };
    let membership = store.record().identity.as_ref().and_then(|i| i.membership.clone());
    let identity = Identity { name: name.into(), host: host.into(), key, membership };
    Ok(store.update(|r| r.identity = Some(identity))?)
}

/// Keeps another address of the host that this board is enrolled at. Whoever answers there must be the same authority, as
/// always: a wrong address finds no trust.
///
/// # Errors
/// [`EnrollError::Store`].
pub fn relocate(store: &mut Store, host: &str) -> Result<(), EnrollError> {
    Ok(store.update(|r| {
        if let Some(identity) = &mut r.identity {
            identity.host = host.into();
        }
    })?)
}

/// Asks the host to be let in and keeps what it gives. `log` hears of each try that came to nothing.
///
/// # Errors
/// [`EnrollError`].
pub fn enroll(
    store: &mut Store,
    link: &mut Link,
    token: &Token,
    log: &mut dyn FnMut(&str),
) -> Result<ClientId, EnrollError> {
    let Some(identity) = store.record().identity.clone() else {
        return Err(EnrollError::Answer { why: "no key was prepared" });
    };
    let key = read_key(&identity.key)?;
    let given = ask(link, &request(&identity.name, &key, token)?, log)?;
    let member = check(&given, &key, token.authority)?;
    let client = member.client;
    let heard = link.clock().seconds();
    store.update(|r| {
        r.identity = Some(Identity { membership: Some(member), ..identity });
        r.host_time = heard;
    })?;
    Ok(client)
}

fn read_key(key: &Secret) -> Result<KeyPair, rcgen::Error> {
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(key.expose()), &PKCS_ECDSA_P256_SHA256)
}

fn request(name: &str, key: &KeyPair, token: &Token) -> Result<EnrollRequest, EnrollError> {
    let bad_name = || EnrollError::Name { name: name.into() };
    let printable = !name.is_empty() && !name.chars().any(char::is_control);
    let bounded = Name::try_from(name).ok().filter(|_| printable).ok_or_else(bad_name)?;
    let csr = CertificateParams::new(Vec::new())?.serialize_request(key)?;
    let secret = Bytes::from_slice(&token.secret)
        .map_err(|_| EnrollError::Answer { why: "the token's secret is too long" })?;
    let request = Bytes::from_slice(csr.der())
        .map_err(|_| EnrollError::Answer { why: "the signing request is too long" })?;
    Ok(EnrollRequest { secret, request, name: bounded })
}

/// Asks, again for a while if the host can't be reached: a board is often switched on before its network.
fn ask(link: &mut Link, request: &EnrollRequest, log: &mut dyn FnMut(&str)) -> Result<Enrolled, CallError> {
    let mut backoff = Backoff::new(u64::from(std::process::id()), 250, 4_000);
    for attempt in 1..TRIES {
        match link.enroll(request) {
            Err(error @ CallError::Unreachable { .. }) => {
                log(&format!("try {attempt} of {TRIES}: {error}; trying again"));
                std::thread::sleep(Duration::from_millis(backoff.next_ms()));
            }
            answered => return answered,
        }
    }
    link.enroll(request)
}

/// The authority must be the pinned one and the certificate be for our key.
fn check(given: &Enrolled, key: &KeyPair, pin: Hash) -> Result<Membership, EnrollError> {
    let refuse = |why| EnrollError::Answer { why };
    let public_key = |der: &[u8]| crate::transport::fingerprint(&CertificateDer::from(der));
    if public_key(&given.authority) != Some(pin) {
        return Err(refuse("its authority is not the one that the token names"));
    }
    if public_key(&given.certificate) != Some(Hash::of(&key.subject_public_key_info())) {
        return Err(refuse("its certificate is for another key"));
    }
    let (certificate, authority) = (given.certificate.to_vec(), given.authority.to_vec());
    Ok(Membership { client: given.client, certificate, authority, pin })
}
