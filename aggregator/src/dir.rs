//! A host's directory: what lies where, how it is made, and that one process at a time has it.
use crate::blobs::{BlobError, Blobs};
use crate::clock;
use crate::compute;
use crate::config::{ConfigError, FILE, NETWORK, Settings};
use crate::ledger::{Ledger, LedgerError, Sqlite};
use crate::pki::{Authority, PkiError};
use models::data::{DataError, Samples};
use models::wire::Token;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a directory can't be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is a host already.
    #[error("{path} holds a host already; serve it, or choose another directory")]
    Taken {
        /// Where.
        path: PathBuf,
    },
    /// Another process serves it.
    #[error("another `aggregator serve` has {path}; stop it first")]
    Busy {
        /// Where.
        path: PathBuf,
    },
    /// The auxiliary data are not where they were put.
    #[error(
        "{path}: this host was made with auxiliary data, and they are missing: put them back, or restore a backup"
    )]
    NoAuxiliary {
        /// Where they should be.
        path: PathBuf,
    },
    /// The auxiliary data don't fit.
    #[error("auxiliary data: {0}")]
    Auxiliary(#[from] DataError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The method can't begin with this model and these data.
    #[error(transparent)]
    Compute(#[from] compute::ComputeError),
    /// The blob store.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// A host's directory.
#[derive(Clone, Debug)]
pub struct HostDir(PathBuf);

impl HostDir {
    /// The directory at `path`, which [`HostDir::create`] has made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes a host: its configuration with every default written out, its authority, its ledger, its auxiliary data.
    ///
    /// # Errors
    /// [`DirError`]; nothing is overwritten.
    pub async fn create(
        path: &Path,
        settings: &Settings,
        auxiliary: Option<&Samples>,
    ) -> Result<Self, DirError> {
        let plan = settings.check()?;
        let dir = Self::new(path);
        if dir.at(FILE).exists() {
            return Err(DirError::Taken { path: path.into() });
        }
        if let Some(samples) = auxiliary {
            samples.check(plan.spec.card().input, &plan.spec.card().labels)?;
        }
        settings.effective()?.to_toml()?;
        compute::rehearse(&plan, auxiliary)?;
        make_private(path)?;
        let mut settings = settings.effective()?;
        if let Some(samples) = auxiliary {
            settings.auxiliary.sha256 = compute::write_auxiliary(&dir.auxiliary(), samples)?.to_string();
        }
        if let Some(network) = &plan.network {
            write(&dir.at(NETWORK), network)?;
        }
        let text = settings.to_toml()?;
        let authority = Authority::create(&dir.at("pki"), clock::now())?;
        authority.renew_leaf(&plan.names, clock::now())?;
        Sqlite::create(&dir.ledger_file()).await?.close().await;
        keep_private(&dir.ledger_file())?;
        // Last, because it is what says that a host is here.
        write(&dir.at(FILE), text.as_bytes())?;
        Ok(dir)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its configuration.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Settings::read(&self.0)
    }

    /// Its certificate authority.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn authority(&self) -> Result<Authority, PkiError> {
        Authority::open(&self.at("pki"))
    }

    /// Its ledger.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn ledger(&self) -> Result<Sqlite, LedgerError> {
        Sqlite::open(&self.ledger_file()).await
    }

    fn ledger_file(&self) -> PathBuf {
        self.at("ledger.sqlite")
    }

    /// Its blobs.
    ///
    /// # Errors
    /// [`BlobError`].
    pub fn blobs(&self) -> Result<Blobs, BlobError> {
        Blobs::open(&self.at("blobs"))
    }

    /// Its auxiliary data, if it was made with any: those and no others.
    ///
    /// # Errors
    /// [`DirError`].
    pub fn samples(&self) -> Result<Option<Samples>, DirError> {
        let (path, expected) = (self.auxiliary(), self.settings()?.auxiliary.sha256);
        match (path.exists(), expected.is_empty()) {
            (true, _) => compute::read_auxiliary(&path, &expected).map(Some),
            (false, true) => Ok(None),
            (false, false) => Err(DirError::NoAuxiliary { path }),
        }
    }

    /// A new one-time token: known to the ledger by its digest alone, and returned to be shown once.
    ///
    /// # Errors
    /// [`DirError`].
    pub async fn token(&self, name: Option<String>, life: Duration) -> Result<Token, DirError> {
        let not_after = clock::later(clock::now(), life);
        let token = self.authority()?.token(not_after);
        let ledger = self.ledger().await?;
        Ledger::add_token(&ledger, token.digest(), name, not_after).await?;
        ledger.close().await;
        Ok(token)
    }

    /// Copies the host to a new directory, also while it is served: what the copy's ledger names is there.
    ///
    /// # Errors
    /// [`DirError`].
    pub async fn copy_to(&self, to: &Path) -> Result<Self, DirError> {
        if to.join(FILE).exists() {
            return Err(DirError::Taken { path: to.into() });
        }
        let copy = Self::new(to);
        make_private(to)?;
        // Blobs on both sides of the ledger's copy: those that it names were written before, and may be removed after.
        copy_tree(&self.at("blobs"), &copy.at("blobs"))?;
        self.ledger().await?.copy_to(&copy.at("ledger.sqlite")).await?;
        copy_tree(&self.at("blobs"), &copy.at("blobs"))?;
        copy_tree(&self.at("pki"), &copy.at("pki"))?;
        if self.auxiliary().exists() {
            copy_file(&self.auxiliary(), &copy.auxiliary())?;
        }
        if self.at(NETWORK).exists() {
            copy_file(&self.at(NETWORK), &copy.at(NETWORK))?;
        }
        copy_file(&self.at(FILE), &copy.at(FILE))?;
        Ok(copy)
    }

    /// Takes the directory for this process until the file is dropped.
    ///
    /// # Errors
    /// [`DirError::Busy`].
    pub(crate) fn lock(&self) -> Result<File, DirError> {
        let path = self.at("lock");
        let fail = |source| DirError::File { path: path.clone(), source };
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        match patiently(&file) {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(DirError::Busy { path: self.0.clone() }),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    fn auxiliary(&self) -> PathBuf {
        self.at("auxiliary.samples")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Makes a directory that only its owner may look into.
fn make_private(path: &Path) -> Result<(), DirError> {
    let fail = |source| DirError::File { path: path.into(), source };
    fs::create_dir_all(path).map_err(fail)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).map_err(fail)?;
    Ok(())
}

/// Lets only its owner read and write a file.
fn keep_private(path: &Path) -> Result<(), DirError> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(|source| DirError::File { path: path.into(), source })?;
    Ok(())
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

/// Writes beside, syncs, renames; readable by the owner alone.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), DirError> {
    let fail = |source| DirError::File { path: path.into(), source };
    let beside = path.with_extension("new");
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fail)?;
    fs::rename(&beside, path).map_err(fail)
}

fn copy_file(from: &Path, to: &Path) -> Result<(), DirError> {
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(source) => Err(DirError::File { path: from.into(), source }),
    }
}

/// Copies files that aren't there yet. One that goes away meanwhile was removed, and is passed over.
fn copy_tree(from: &Path, to: &Path) -> Result<(), DirError> {
    fs::create_dir_all(to).map_err(|source| DirError::File { path: to.into(), source })?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &target)?;
        } else if !target.exists() && path.exists() {
            copy_file(&path, &target)?;
        }
    }
    Ok(())
}
