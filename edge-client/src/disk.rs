//! Files that somebody else names: only regular ones are read, so that a pipe or a device neither hangs the program nor never ends,
//! and what is written takes the old file's place whole or not at all.
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
/// What the operating system says, or that it is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match fs::metadata(path)? {
        about if about.is_file() => File::open(path),
        about if about.is_dir() => Err(io::Error::new(ErrorKind::IsADirectory, "is a directory")),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "is not a regular file but a pipe or a device")),
    }
}

/// A regular file's text, which may have `cap` bytes.
///
/// # Errors
/// What the operating system says, or that it is too long or not UTF-8.
pub(crate) fn text(path: &Path, cap: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(cap + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("is longer than {cap} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Puts `bytes` in the place of a file: written beside it, synced, renamed. What was there stays if that fails.
///
/// # Errors
/// What the operating system says.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn pipes_devices_and_folders_are_not_read_and_texts_are_capped() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(text(&pipe, 9).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(text(Path::new("/dev/zero"), 9).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(text(dir.path(), 9).unwrap_err().kind(), ErrorKind::IsADirectory);
        let file = dir.path().join("file");
        fs::write(&file, "123456789").unwrap();
        assert_eq!(text(&file, 9).unwrap(), "123456789");
        assert_eq!(text(&file, 8).unwrap_err().kind(), ErrorKind::FileTooLarge);
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(text(&file, 9).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("specialist.onnx");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        // Something is in the way: the write fails, as on a full disk.
        fs::create_dir(dir.path().join("specialist.onnx.new")).unwrap();
        assert!(replace(&file, b"three").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
