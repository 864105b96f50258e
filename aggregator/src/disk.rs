//! Files that the operator names: only regular ones are read, so that a pipe or a device neither hangs the program nor never ends.
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Longest text that is read: a configuration or a list of labels.
const LONGEST_TEXT: u64 = 1 << 20;

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

/// A regular file's text.
///
/// # Errors
/// What the operating system says, or that it is too long or not UTF-8.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("is longer than {LONGEST_TEXT} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_folders_are_not_read_and_texts_are_capped() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(text(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(text(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        let file = dir.path().join("file");
        fs::write(&file, vec![b'a'; LONGEST_TEXT as usize]).unwrap();
        assert!(text(&file).is_ok());
        fs::write(&file, vec![b'a'; LONGEST_TEXT as usize + 1]).unwrap();
        assert_eq!(text(&file).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
