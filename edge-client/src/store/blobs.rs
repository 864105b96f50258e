//! Shared parts by their hash: whatever is damaged or missing is fetched again, so nothing here needs syncing.
use super::{StoreError, io_error, make_private_dir, private_file};
use models::id::Hash;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

/// A directory of blobs under a cap of bytes; the longest unused go first.
#[derive(Debug)]
pub struct BlobCache {
    dir: PathBuf,
    cap: u64,
}

impl BlobCache {
    pub(super) fn new(dir: PathBuf, cap: u64) -> Self {
        Self { dir, cap }
    }

    /// The blob, if it is here and whole. A damaged one is removed.
    pub fn get(&self, hash: Hash) -> Option<Vec<u8>> {
        let path = self.path(hash);
        let bytes = fs::read(&path).ok()?;
        if Hash::of(&bytes) != hash {
            let _ = fs::remove_file(&path);
            return None;
        }
        // So that what is used stays.
        let _ = fs::File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps a blob whose hash the caller has checked.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn put(&self, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        make_private_dir(&self.dir)?;
        self.make_room(bytes.len() as u64);
        let beside = self.dir.join("incoming");
        let mut file = private_file().truncate(true).open(&beside).map_err(|e| io_error(&beside, e))?;
        file.write_all(bytes).map_err(|e| io_error(&beside, e))?;
        let path = self.path(hash);
        fs::rename(&beside, &path).map_err(|e| io_error(&path, e))
    }

    /// Bytes held.
    pub fn size(&self) -> u64 {
        self.entries().iter().map(|(_, size, _)| size).sum()
    }

    fn path(&self, hash: Hash) -> PathBuf {
        self.dir.join(hash.to_string())
    }

    fn entries(&self) -> Vec<(SystemTime, u64, PathBuf)> {
        let Ok(listing) = fs::read_dir(&self.dir) else { return Vec::new() };
        let facts = |entry: fs::DirEntry| {
            let about = entry.metadata().ok()?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        };
        listing.filter_map(Result::ok).filter_map(facts).collect()
    }

    fn make_room(&self, needed: u64) {
        let mut entries = self.entries();
        entries.sort();
        let mut held: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in entries {
            if held + needed <= self.cap {
                break;
            }
            if fs::remove_file(path).is_ok() {
                held -= size;
            }
        }
    }
}
