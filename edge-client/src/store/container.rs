//! A payload in a file that is whole or not there: magic, schema, generation, length, SHA-256, payload.
use super::{StoreError, io_error, private_file};
use models::id::Hash;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SPECTRA\n";
const SCHEMA: u16 = 1;
const HEADER: usize = 8 + 2 + 8 + 8 + 32;
/// Largest payload that is read: far above any method's state.
const CAP: u64 = 1 << 30;
/// Bytes that are written at once.
const PIECE: usize = 1 << 16;

/// A payload that was read whole.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) generation: u64,
    pub(super) payload: Vec<u8>,
    /// Why the newest file could not be used, if it couldn't.
    pub(super) recovered: Option<&'static str>,
}

enum Flaw {
    Missing,
    Damaged(&'static str),
    Newer(u16),
}

/// The newest whole generation among the file, the one being written and the one before; none if there never was any.
pub(super) fn load(path: &Path) -> Result<Option<Loaded>, StoreError> {
    let (mut best, mut flaw, mut newer): (Option<Loaded>, _, _) = (None, None, None);
    for file in [path.into(), beside(path, "new"), beside(path, "prev")] {
        match read(&file)? {
            Ok(loaded) if best.as_ref().is_none_or(|b| b.generation < loaded.generation) => {
                best = Some(loaded);
            }
            Ok(_) | Err(Flaw::Missing) => {}
            Err(Flaw::Newer(found)) => newer = Some(found),
            // A half-written successor is what a crash leaves: no damage.
            Err(Flaw::Damaged(why)) if file == *path => flaw = Some(why),
            Err(Flaw::Damaged(_)) => {}
        }
    }
    match (best, flaw, newer) {
        (_, _, Some(found)) => Err(StoreError::Newer { path: path.into(), found, known: SCHEMA }),
        (Some(best), recovered, None) => Ok(Some(Loaded { recovered, ..best })),
        (None, Some(why), None) => Err(StoreError::Damaged { path: path.into(), why }),
        (None, None, None) => Ok(None),
    }
}

/// Replaces the file by a new generation, whose payload is the value in postcard; durable when it returns. The payload is
/// never in memory: it is as large as all that the board has learned.
pub(super) fn save(path: &Path, generation: u64, value: &impl Serialize) -> Result<(), StoreError> {
    let new = beside(path, "new");
    write(&new, generation, value).map_err(|e| io_error(&new, e))?;
    match fs::rename(path, beside(path, "prev")) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_error(path, e)),
        _ => {}
    }
    fs::rename(&new, path).and_then(|()| sync_parent(path)).map_err(|e| io_error(path, e))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    path.with_extension(ending)
}

fn header(generation: u64, payload: &Digested) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(SCHEMA.to_le_bytes());
    bytes.extend(generation.to_le_bytes());
    bytes.extend(payload.length.to_le_bytes());
    bytes.extend(checksum(SCHEMA, generation, payload.hash).0);
    bytes
}

/// Over everything but the magic; the length is implied.
fn checksum(schema: u16, generation: u64, payload: Hash) -> Hash {
    let mut bytes = schema.to_le_bytes().to_vec();
    bytes.extend(generation.to_le_bytes());
    bytes.extend_from_slice(&payload.0);
    Hash::of(&bytes)
}

fn write(path: &Path, generation: u64, value: &impl Serialize) -> io::Result<()> {
    let digested = Digested::of(value)?;
    let mut file = private_file().truncate(true).open(path)?;
    file.write_all(&header(generation, &digested))?;
    encode(value, &mut file)?;
    file.sync_all()
}

/// Writes a value in postcard, in pieces.
fn encode(value: &impl Serialize, to: impl Write) -> io::Result<()> {
    let mut pieces = Pieces { to: BufWriter::with_capacity(PIECE, to), failure: None };
    let written = postcard::to_io(value, &mut pieces).map(|_| ());
    match pieces.failure {
        Some(error) => Err(error),
        None => written.map_err(io::Error::other).and_then(|()| pieces.to.flush()),
    }
}

/// Keeps why writing failed: postcard doesn't.
struct Pieces<W: Write> {
    to: BufWriter<W>,
    failure: Option<io::Error>,
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write_all(bytes).map(|()| bytes.len()).map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// What the header says of a payload.
struct Digested {
    length: u64,
    hash: Hash,
}

impl Digested {
    fn of(value: &impl Serialize) -> io::Result<Self> {
        let mut sum = Sum::default();
        encode(value, &mut sum)?;
        Ok(Self { length: sum.length, hash: Hash(sum.hash.finalize().into()) })
    }
}

#[derive(Default)]
struct Sum {
    length: u64,
    hash: Sha256,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the renames durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<Result<Loaded, Flaw>, StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Err(Flaw::Missing)),
        Err(e) => return Err(io_error(path, e)),
    };
    let mut file = file.take(CAP + HEADER as u64);
    let (mut header, mut payload) = (Vec::new(), Vec::new());
    let mut read = || {
        file.by_ref().take(HEADER as u64).read_to_end(&mut header)?;
        file.read_to_end(&mut payload)
    };
    read().map_err(|e| io_error(path, e))?;
    Ok(parse(&header, payload))
}

fn parse(header: &[u8], payload: Vec<u8>) -> Result<Loaded, Flaw> {
    if header.len() < HEADER {
        return Err(Flaw::Damaged("it is cut off in its header"));
    }
    let (magic, rest) = header.split_at(8);
    if magic != MAGIC {
        return Err(Flaw::Damaged("it doesn't start as a state file does"));
    }
    let (schema, rest) = rest.split_at(2);
    let schema = u16::from_le_bytes([schema[0], schema[1]]);
    let (numbers, _) = rest.as_chunks::<8>();
    let [generation, length] = [numbers[0], numbers[1]].map(u64::from_le_bytes);
    if length != payload.len() as u64 {
        return Err(Flaw::Damaged("it is cut off"));
    }
    if checksum(schema, generation, Hash::of(&payload)).0[..] != rest[16..] {
        return Err(Flaw::Damaged("its checksum is wrong"));
    }
    match schema {
        SCHEMA => Ok(Loaded { generation, payload, recovered: None }),
        found => Err(Flaw::Newer(found)),
    }
}
