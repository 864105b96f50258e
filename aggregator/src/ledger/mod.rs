//! The ledger: what happened, in order, and who may come in. All that a restart needs, and nothing else is truth.
//!
//! [`Ledger`] is what a database must offer; [`Sqlite`] is the embedded one. [`conformance`] says by tests what the words mean.
pub mod conformance;
mod sqlite;

pub use sqlite::Sqlite;

use crate::clock::Millis;
use models::id::{ClientId, Hash};
use models::wire::Health;
use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

/// What a ledger's function gives once it is done. Boxed, so that the database can be chosen at run time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

/// Why the ledger can't answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The database failed.
    #[error("ledger: {0}")]
    Database(#[from] sqlx::Error),
    /// It is not where a host's directory has it.
    #[error(
        "{path}: the ledger is missing or empty, and without it nobody knows what happened: put it back, or make the host out of a backup with `aggregator restore BACKUP NEW-DIRECTORY`"
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// It was written by a later program.
    #[error(
        "the ledger has schema version {found}, this program knows {known}: use the newer program, or restore a backup"
    )]
    Newer {
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// A stored value is impossible.
    #[error("ledger: {what} of row {row} is damaged; restore a backup")]
    Damaged {
        /// Which value.
        what: &'static str,
        /// Where.
        row: i64,
    },
    /// There is no such device.
    #[error("no device {0}")]
    NoDevice(ClientId),
}

/// An event, to be kept for ever.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Its name, for people.
    pub kind: &'static str,
    /// Its encoded form.
    pub body: Vec<u8>,
}

/// An event as it was kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// Its place, from 1, without gaps.
    pub seq: i64,
    /// When.
    pub at: Millis,
    /// Its name.
    pub kind: String,
    /// Its encoded form.
    pub body: Vec<u8>,
}

/// What a device may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Everything a board does.
    Active,
    /// Read models, but not take part.
    Quarantined,
    /// Nothing.
    Revoked,
}

impl Standing {
    /// Its spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Quarantined => "quarantined",
            Self::Revoked => "revoked",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Quarantined, Self::Revoked].into_iter().find(|s| s.name() == name)
    }
}

/// An enrolled board.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Device {
    /// Its number.
    pub id: ClientId,
    /// SHA-256 of its public key.
    pub key: Hash,
    /// What its owner called it.
    pub name: String,
    /// What it may do.
    pub standing: Standing,
    /// When it enrolled.
    pub enrolled: Millis,
    /// When it was last heard.
    pub seen: Millis,
    /// How many of its requests were refused.
    pub refusals: u64,
    /// How it says it goes, if its owner lets it say.
    pub health: Option<Health>,
}

/// A wish to be let in.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// Digest of the token's secret.
    pub token: Hash,
    /// SHA-256 of the board's public key.
    pub key: Hash,
    /// What its owner calls it.
    pub name: String,
    /// When.
    pub at: Millis,
}

/// What became of an [`Enrolment`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Admission {
    /// It is in; the same key always gets the same number.
    In(Device),
    /// Nobody made this token.
    UnknownToken,
    /// Another key used it before.
    UsedToken,
    /// Its time is over.
    ExpiredToken,
    /// The key was revoked: only a new key can come back.
    RevokedKey,
}

/// A one-time token, as far as the ledger knows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenNote {
    /// Whom it is for, if the operator said so.
    pub name: Option<String>,
    /// When it ends.
    pub not_after: Millis,
    /// The key that used it.
    pub used_by: Option<Hash>,
}

/// Storage of events, devices and tokens. Each function is one transaction; once it answers, a power cut can't undo it.
pub trait Ledger: Debug + Send + Sync {
    /// Keeps events, all or none.
    fn append(&self, at: Millis, records: Vec<Record>) -> Answer<'_, ()>;
    /// At most `limit` events after `seq` (0 for all), in order.
    fn events(&self, after: i64, limit: u32) -> Answer<'_, Vec<Kept>>;
    /// Makes a token known by its digest.
    fn add_token(&self, digest: Hash, name: Option<String>, not_after: Millis) -> Answer<'_, ()>;
    /// All tokens, by name.
    fn tokens(&self) -> Answer<'_, Vec<TokenNote>>;
    /// Uses a token up and gives the key its number, together. Asking again with both the same gives the same answer.
    fn enrol(&self, wish: Enrolment) -> Answer<'_, Admission>;
    /// Who has this key.
    fn device_by_key(&self, key: Hash) -> Answer<'_, Option<Device>>;
    /// All devices, by number.
    fn devices(&self) -> Answer<'_, Vec<Device>>;
    /// Changes what a device may do.
    fn set_standing(&self, id: ClientId, standing: Standing) -> Answer<'_, ()>;
    /// Notes that a device was heard.
    fn heard(&self, id: ClientId, at: Millis) -> Answer<'_, ()>;
    /// Keeps how a device says it goes.
    fn felt(&self, id: ClientId, health: Health) -> Answer<'_, ()>;
    /// Counts a refusal by its name.
    fn refused(&self, id: ClientId, reject: &'static str) -> Answer<'_, ()>;
    /// Refusals of a device, by name.
    fn refusals(&self, id: ClientId) -> Answer<'_, Vec<(String, u64)>>;
}
