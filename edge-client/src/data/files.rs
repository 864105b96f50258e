//! Reading and recognising data files.
use super::LocalDataError;
use crate::disk;
use flate2::read::GzDecoder;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest file once unpacked, in MiB.
const CAP_MIB: u64 = 1024;

/// A file's bytes, unpacked if they are gzip.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, LocalDataError> {
    let fail = |source| LocalDataError::Read { path: path.into(), source };
    let mut file = disk::open(path).map_err(fail)?;
    let mut start = [0; 2];
    let got = file.read(&mut start).map_err(fail)?;
    let whole = start[..got].chain(file);
    match start == [0x1f, 0x8b] {
        true => read_capped(GzDecoder::new(whole), path),
        false => read_capped(whole, path),
    }
}

fn read_capped(source: impl Read, path: &Path) -> Result<Vec<u8>, LocalDataError> {
    let cap = CAP_MIB << 20;
    let mut bytes = Vec::new();
    let read = source.take(cap + 1).read_to_end(&mut bytes);
    read.map_err(|source| LocalDataError::Read { path: path.into(), source })?;
    match bytes.len() as u64 > cap {
        true => Err(LocalDataError::TooLarge { path: path.into(), limit: CAP_MIB }),
        false => Ok(bytes),
    }
}

/// A directory's entries in the order of their names, hidden ones left out.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>, LocalDataError> {
    let entries = fs::read_dir(dir)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = entries.map_err(|source| LocalDataError::Read { path: dir.into(), source })?;
    paths.retain(|p| !name(p).starts_with('.'));
    paths.sort();
    Ok(paths)
}

/// A path's last part in lower case.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Whether the name says that it is a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    [".png", ".jpg", ".jpeg"].iter().any(|ending| name(path).ends_with(ending))
}

/// Whether the name says that it is an IDX file of samples.
pub(super) fn is_idx_images(path: &Path) -> bool {
    let name = name(path);
    name.contains("idx") && ["images", "-x-"].iter().any(|part| name.contains(part))
}

/// The training images among several IDX files.
pub(super) fn idx_images(listing: &[PathBuf]) -> Option<PathBuf> {
    let images = || listing.iter().filter(|p| is_idx_images(p));
    images().find(|p| name(p).starts_with("train")).or_else(|| images().next()).cloned()
}

/// Where the labels of IDX images lie by custom: `images` → `labels`, `-x-` → `-y-`, rank 1, unsigned bytes.
pub(super) fn labels_beside(images: &Path) -> PathBuf {
    let name = images.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let swaps =
        [("images", "labels"), ("-x-", "-y-"), ("idx3", "idx1"), ("idx4", "idx1"), ("int16", "ubyte")];
    let swapped = swaps.iter().fold(name, |name, (from, to)| name.replace(from, to));
    images.with_file_name(swapped)
}

/// CIFAR's training batches.
pub(super) fn cifar_batches(listing: &[PathBuf]) -> Vec<PathBuf> {
    let is_batch = |p: &&PathBuf| {
        let name = name(p);
        name.contains(".bin") && (name.starts_with("data_batch") || name.starts_with("train"))
    };
    listing.iter().filter(is_batch).cloned().collect()
}
