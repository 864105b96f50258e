//! A network's file on disk, with weights that exporters put into files beside it.
use crate::proto::{self, DecodeError, MAX_FILE, ModelProto, TensorProto};
use prost::Message;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Why a network can't be read from disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file can't be read.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its bytes are no ONNX file.
    #[error("{path}: {source}")]
    Decode {
        /// Which.
        path: PathBuf,
        /// Why.
        source: DecodeError,
    },
    /// A weight in another file can't be used.
    #[error(
        "constant {name}: its values lie in {location:?}: {why}; export the network into one file (`external_data=False`)"
    )]
    External {
        /// The constant.
        name: String,
        /// The file that it names.
        location: String,
        /// Why.
        why: String,
    },
}

/// The bytes of a network as one file: weights that lie beside it, in its own folder, are taken in.
///
/// # Errors
/// [`FileError`].
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let bytes = capped(path)?;
    let decoded = proto::decode(&bytes);
    let mut model: ModelProto = decoded.map_err(|source| FileError::Decode { path: path.into(), source })?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut room = MAX_FILE.saturating_sub(bytes.len()) as u64;
    let initializers = model.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
    let mut taken = false;
    for tensor in initializers.filter(|tensor| tensor.data_location != 0) {
        take_in(tensor, folder, &mut room)?;
        taken = true;
    }
    Ok(if taken { model.encode_to_vec() } else { bytes })
}

fn capped(path: &Path) -> Result<Vec<u8>, FileError> {
    let fail = |source| FileError::Io { path: path.into(), source };
    let file = regular(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// Opens a regular file: a pipe would hang, a device never end.
fn regular(path: &Path) -> io::Result<File> {
    match path.metadata()? {
        about if about.is_file() => File::open(path),
        about if about.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file but a pipe or a device")),
    }
}

/// Reads a tensor's values from the file that it names, at most `room` bytes.
fn take_in(tensor: &mut TensorProto, folder: &Path, room: &mut u64) -> Result<(), FileError> {
    let entry = |key: &str| tensor.external_data.iter().find(|e| e.key == key).map(|e| e.value.clone());
    let location = entry("location").unwrap_or_default();
    let refuse = |why: &str| FileError::External {
        name: tensor.name.clone(),
        location: location.clone(),
        why: why.into(),
    };
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| refuse(&format!("its {key} is no number"))),
    };
    let path = inside(folder, &location).ok_or_else(|| refuse("that is no file in the network's folder"))?;
    let fail = |source| FileError::Io { path: path.clone(), source };
    let mut file = File::open(&path).map_err(fail)?;
    let all = file.metadata().map_err(fail)?.len();
    let offset = number("offset")?.unwrap_or(0);
    let left = all.checked_sub(offset).ok_or_else(|| refuse("it begins behind the file's end"))?;
    let length = number("length")?.unwrap_or(left);
    if length > left {
        return Err(refuse("it reaches behind the file's end"));
    }
    *room = room.checked_sub(length).ok_or_else(|| refuse("all values together are too large"))?;
    file.seek(SeekFrom::Start(offset)).map_err(fail)?;
    let mut values = vec![0; length as usize];
    file.read_exact(&mut values).map_err(fail)?;
    (tensor.raw_data, tensor.data_location) = (values, 0);
    tensor.external_data.clear();
    Ok(())
}

/// A plain file below a folder, links followed; `None` for anything that leads out of it.
fn inside(folder: &Path, location: &str) -> Option<PathBuf> {
    let relative = Path::new(location);
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
    (plain && !location.is_empty()).then_some(())?;
    let (folder, path) = (folder.canonicalize().ok()?, folder.join(relative).canonicalize().ok()?);
    (path.starts_with(folder) && path.is_file()).then_some(path)
}
