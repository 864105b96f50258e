//! The board's private directory: identity, method state and pending update in one file, a cache of shared parts, a lock.
//!
//! The file is replaced, never changed: written beside, synced, renamed, with a checksum, a schema version and the
//! generation before it kept. Whatever moment power fails at, one whole generation is there.
mod blobs;
mod container;

pub use blobs::BlobCache;

use crate::disk;
use crate::personal::Personal;
use crate::secret::Secret;
use models::id::{ClientId, Hash};
use models::params::ModelCard;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the private directory can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refuses.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process works in this directory.
    #[error(
        "{dir} is in use by another edge-client (process {holder}); stop it, or choose another directory with `--dir`"
    )]
    InUse {
        /// Which directory.
        dir: PathBuf,
        /// Process number, as it wrote it itself.
        holder: String,
    },
    /// Every generation is damaged.
    #[error(
        "{path} is damaged ({why}) and so is the copy before it; restore them from a backup, or enrol again in a new directory"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// How.
        why: &'static str,
    },
    /// Written by a newer program.
    #[error(
        "{path} was written by a newer edge-client (schema {found}, this one knows {known}); install the newer program again"
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: u16,
        /// Ours.
        known: u16,
    },
    /// The board isn't enrolled.
    #[error(
        "{dir} holds no identity: enrol this board first with `edge-client enroll --host URL --token FILE --dir {dir}`"
    )]
    NotEnrolled {
        /// Which directory.
        dir: PathBuf,
    },
}

/// Who this board is. Its key was made here and never leaves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Identity {
    /// How the owner calls it.
    pub name: String,
    /// Where the host is.
    pub host: String,
    /// The device key, PKCS#8 DER.
    pub key: Secret,
    /// What the host gave at enrolment; none while enrolment is under way.
    pub membership: Option<Membership>,
}

/// What the host gave at enrolment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Membership {
    /// The board's number.
    pub client: ClientId,
    /// The board's certificate, DER.
    pub certificate: Vec<u8>,
    /// The host's authority, DER: the only root this board trusts.
    pub authority: Vec<u8>,
    /// SHA-256 of the authority's public key, as the token said.
    pub pin: Hash,
}

/// Everything a board must not lose, as one value.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// Who it is.
    pub identity: Option<Identity>,
    /// Starts of this board's process so far.
    pub epoch: u32,
    /// The host's clock when it last spoke, in seconds since 1970.
    pub host_time: u64,
    /// What the network is, once the host has shown it.
    pub model: Option<ModelCard>,
    /// What the board learned, and the update that waits to be sent.
    pub personal: Personal,
}

impl Record {
    /// Identity and membership of an enrolled board. `dir` is named in the error.
    ///
    /// # Errors
    /// [`StoreError::NotEnrolled`].
    pub fn enrolled(&self, dir: &Path) -> Result<(&Identity, &Membership), StoreError> {
        let identity = self.identity.as_ref();
        let member = identity.and_then(|i| i.membership.as_ref().map(|m| (i, m)));
        member.ok_or_else(|| StoreError::NotEnrolled { dir: dir.into() })
    }
}

/// An open, locked private directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    generation: u64,
    record: Record,
    recovered: Option<&'static str>,
    _lock: File,
}

const STATE: &str = "state";
const NETWORK: &str = "network.onnx";

impl Store {
    /// Opens `dir`, making it if need be, and locks it against other processes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        make_private_dir(dir)?;
        let lock = lock(dir)?;
        let path = dir.join(STATE);
        let loaded = container::load(&path)?;
        let generation = loaded.as_ref().map_or(0, |l| l.generation);
        let (record, recovered) = match loaded {
            None => (Record::default(), None),
            Some(loaded) => (decode(&path, &loaded.payload)?, loaded.recovered),
        };
        Ok(Self { dir: dir.into(), generation, record, recovered, _lock: lock })
    }

    /// Reads what is stored without locking: for commands that only look, also beside a running `edge-client run`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn peek(dir: &Path) -> Result<Record, StoreError> {
        let path = dir.join(STATE);
        match container::load(&path)? {
            None => Ok(Record::default()),
            Some(loaded) => decode(&path, &loaded.payload),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is stored.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Why the newest generation couldn't be read and the one before it is used, if so.
    pub fn recovered(&self) -> Option<&'static str> {
        self.recovered
    }

    /// Changes the record and makes the change durable before it returns.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the old record then still stands, in memory as on disk.
    pub fn update(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), StoreError> {
        let mut next = self.record.clone();
        change(&mut next);
        container::save(&self.dir.join(STATE), self.generation + 1, &next)?;
        self.generation += 1;
        self.record = next;
        Ok(())
    }

    /// Counts a new start of the process. After a recovery the number jumps, so that no lost start is counted twice.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_epoch(&mut self) -> Result<u32, StoreError> {
        let step = if self.recovered.is_some() { 2 } else { 1 };
        self.update(|r| r.epoch += step)?;
        Ok(self.record.epoch)
    }

    /// Keeps the file of the network, and only then what the host says about it: a board that knows its model has its file.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn adopt_model(&mut self, card: ModelCard, network: Option<&[u8]>) -> Result<(), StoreError> {
        if let Some(bytes) = network {
            let path = self.dir.join(NETWORK);
            disk::replace(&path, bytes).map_err(|e| io_error(&path, e))?;
        }
        self.update(|r| r.model = Some(card))
    }

    /// The file of a network that was brought along, if this board has one.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn network(dir: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let path = dir.join(NETWORK);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(&path, error)),
            Ok(file) => {
                let mut bytes = Vec::new();
                let read = file.take(models::wire::NETWORK_CAP as u64 + 1).read_to_end(&mut bytes);
                read.map(|_| Some(bytes)).map_err(|e| io_error(&path, e))
            }
        }
    }

    /// The cache of shared parts, holding at most `cap` bytes.
    pub fn blobs(&self, cap: u64) -> BlobCache {
        BlobCache::new(self.dir.join("blobs"), cap)
    }
}

fn decode(path: &Path, payload: &[u8]) -> Result<Record, StoreError> {
    match postcard::take_from_bytes(payload) {
        Ok((record, [])) => Ok(record),
        _ => Err(StoreError::Damaged {
            path: path.into(),
            why: "its checksum is right but its content is not",
        }),
    }
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let mut options = private_file();
    let mut file = options.read(true).open(&path).map_err(|e| io_error(&path, e))?;
    match patiently(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = (&file).take(20).read_to_string(&mut holder);
            let holder = if holder.is_empty() { "unknown".into() } else { holder };
            return Err(StoreError::InUse { dir: dir.into(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(io_error(&path, source)),
    }
    let number = std::process::id().to_string();
    let written =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(number.as_bytes()));
    written.map(|()| file).map_err(|e| io_error(&path, e))
}

/// Tries for a second: a process that is ending, or a child between its fork and the program it becomes, lets go by itself.
fn patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 0..20 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
            other => return other,
        }
    }
    file.try_lock()
}

fn make_private_dir(dir: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|e| io_error(dir, e))
}

/// Options for a file that only its owner may read.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.into(), source }
}
