//! Blobs: bytes named by their SHA-256. What was put can't change, and what comes out was verified.
use models::id::Hash;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::path::Path;
use std::sync::Arc;

/// Why a blob can't be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// There is none of this name.
    #[error("no blob {0}")]
    Missing(Hash),
    /// What is stored under the name is something else.
    #[error("blob {0} is damaged on disk; restore it from a backup")]
    Damaged(Hash),
    /// It is larger than the caller can take.
    #[error("blob {hash} has {bytes} bytes, at most {limit} are taken")]
    TooLarge {
        /// Which.
        hash: Hash,
        /// Its size.
        bytes: u64,
        /// The cap.
        limit: usize,
    },
    /// The store failed.
    #[error("blob store: {0}")]
    Store(#[from] object_store::Error),
    /// Its directory can't be made.
    #[error("blob store: {0}")]
    Directory(#[from] std::io::Error),
}

/// A content-addressed store.
#[derive(Clone, Debug)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
}

impl Blobs {
    /// A store in a directory. A blob is written beside, synced and renamed.
    ///
    /// # Errors
    /// [`BlobError`].
    pub fn open(dir: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(dir)?;
        Ok(Self { store: Arc::new(LocalFileSystem::new_with_prefix(dir)?.with_fsync(true)) })
    }

    /// Stores `bytes` and gives their name. Once it answers they survive a power cut. Putting them again is harmless, and heals a damaged copy.
    ///
    /// # Errors
    /// [`BlobError`].
    pub async fn put(&self, bytes: bytes::Bytes) -> Result<Hash, BlobError> {
        let hash = Hash::of(&bytes);
        self.store.put(&key(hash), bytes.into()).await?;
        Ok(hash)
    }

    /// Forgets a blob. None of this name is as good as forgotten.
    ///
    /// # Errors
    /// [`BlobError`].
    pub async fn remove(&self, hash: Hash) -> Result<(), BlobError> {
        match self.store.delete(&key(hash)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of all blobs, sorted.
    ///
    /// # Errors
    /// [`BlobError`].
    pub async fn names(&self) -> Result<Vec<Hash>, BlobError> {
        let mut names = Vec::new();
        let mut open = vec![Key::default()];
        while let Some(prefix) = open.pop() {
            let listing = self.store.list_with_delimiter(Some(&prefix)).await?;
            open.extend(listing.common_prefixes);
            names.extend(listing.objects.iter().filter_map(|o| Hash::from_hex(o.location.filename()?)));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The bytes of this name, at most `limit`, verified.
    ///
    /// # Errors
    /// [`BlobError`].
    pub async fn get(&self, hash: Hash, limit: usize) -> Result<bytes::Bytes, BlobError> {
        let found = match self.store.get(&key(hash)).await {
            Err(object_store::Error::NotFound { .. }) => return Err(BlobError::Missing(hash)),
            other => other?,
        };
        if found.meta.size > limit as u64 {
            return Err(BlobError::TooLarge { hash, bytes: found.meta.size, limit });
        }
        let bytes = found.bytes().await?;
        if Hash::of(&bytes) == hash { Ok(bytes) } else { Err(BlobError::Damaged(hash)) }
    }
}

/// Two levels, so that no directory grows without bound.
fn key(hash: Hash) -> Key {
    let name = hash.to_string();
    Key::from(format!("{}/{name}", &name[..2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_blob_comes_back_verified_capped_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path()).unwrap();
        let hash = blobs.put(bytes::Bytes::from_static(b"values")).await.unwrap();
        assert_eq!(blobs.put(bytes::Bytes::from_static(b"values")).await.unwrap(), hash);
        assert_eq!(&blobs.get(hash, 6).await.unwrap()[..], b"values");
        assert!(matches!(blobs.get(hash, 5).await, Err(BlobError::TooLarge { bytes: 6, limit: 5, .. })));
        assert!(matches!(blobs.get(Hash::of(b"none"), 9).await, Err(BlobError::Missing(_))));
        assert_eq!(blobs.names().await.unwrap(), [hash]);
        let file = dir.path().join(key(hash).to_string());
        std::fs::write(file, b"valueS").unwrap();
        assert!(matches!(blobs.get(hash, 6).await, Err(BlobError::Damaged(_))));
        blobs.remove(hash).await.unwrap();
        blobs.remove(hash).await.unwrap();
        assert!(matches!(blobs.get(hash, 6).await, Err(BlobError::Missing(_))));
    }
}
