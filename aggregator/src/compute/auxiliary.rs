//! The host's own labelled samples: read once from pictures or IDX files, then kept in the host's directory.
use crate::dir::{self, DirError};
use crate::disk;
use flate2::read::GzDecoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageReader, Limits};
use models::data::{DataError, Elements, Inputs, Samples, idx, labels};
use models::id::Hash;
use models::params::ModelCard;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Largest file, unpacked.
const CAP: u64 = 1 << 30;
/// Largest side of a picture that is decoded.
const MOST_SIDE: u32 = 16_384;

/// Why auxiliary data can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuxiliaryError {
    /// A file or directory can't be read.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than is taken.
    #[error("{path}: larger than 1 GiB")]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// A picture can't be decoded.
    #[error("{path}: {why}; repair or remove it")]
    Picture {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A folder that is no class.
    #[error("{path}: no class of the model is called so; its classes are {labels}")]
    UnknownClass {
        /// Which.
        path: PathBuf,
        /// The model's classes.
        labels: String,
    },
    /// Nothing that could be read.
    #[error("{path}: neither one folder per class nor an IDX pair (`…images…` and `…labels…`)")]
    NothingThere {
        /// Where.
        path: PathBuf,
    },
    /// The numbers don't fit.
    #[error("{path}: {source}")]
    Data {
        /// Where.
        path: PathBuf,
        /// Why.
        source: DataError,
    },
}

/// Reads labelled samples for this network from a directory: one folder of pictures per class, or an IDX pair.
///
/// # Errors
/// [`AuxiliaryError`]: the host's set is small and the operator's own, so anything odd in it is an error.
pub fn load(path: &Path, card: &ModelCard) -> Result<Samples, AuxiliaryError> {
    let listing = list(path)?;
    let samples = match listing.iter().find(|p| is_images(p)) {
        Some(images) => idx_pair(images)?,
        None => folders(path, &listing, card)?,
    };
    samples.check(card.input, &card.labels).map_err(at(path))?;
    Ok(samples)
}

fn at(path: &Path) -> impl FnOnce(DataError) -> AuxiliaryError {
    let path = path.to_owned();
    move |source| AuxiliaryError::Data { path, source }
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Entries in the order of their names, hidden ones left out.
fn list(dir: &Path) -> Result<Vec<PathBuf>, AuxiliaryError> {
    let entries =
        fs::read_dir(dir).and_then(|all| all.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = entries.map_err(|source| AuxiliaryError::Read { path: dir.into(), source })?;
    paths.retain(|p| !name(p).starts_with('.'));
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<Vec<u8>, AuxiliaryError> {
    let fail = |source| AuxiliaryError::Read { path: path.into(), source };
    let file = disk::open(path).map_err(fail)?;
    let source: Box<dyn Read> =
        if name(path).ends_with(".gz") { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut bytes = Vec::new();
    source.take(CAP + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > CAP { Err(AuxiliaryError::TooLarge { path: path.into() }) } else { Ok(bytes) }
}

fn is_images(path: &Path) -> bool {
    path.is_file() && name(path).contains("idx") && name(path).contains("images")
}

fn idx_pair(images: &Path) -> Result<Samples, AuxiliaryError> {
    let swapped = [("images", "labels"), ("idx3", "idx1"), ("idx4", "idx1")]
        .iter()
        .fold(name(images), |n, (a, b)| n.replace(a, b));
    let labels = images.with_file_name(swapped);
    let inputs = idx::parse(&read_file(images)?).and_then(idx::Idx::into_inputs).map_err(at(images))?;
    let classes = idx::parse(&read_file(&labels)?).and_then(idx::Idx::into_labels).map_err(at(&labels))?;
    Samples::new(inputs, classes).map_err(at(images))
}

fn folders(path: &Path, listing: &[PathBuf], card: &ModelCard) -> Result<Samples, AuxiliaryError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for folder in listing.iter().filter(|p| p.is_dir()) {
        let class = class_of(folder, card)?;
        for picture in list(folder)? {
            pixels.extend(decode(&picture, card.input)?);
            labels.push(class);
        }
    }
    if labels.is_empty() {
        return Err(AuxiliaryError::NothingThere { path: path.into() });
    }
    Inputs::new(card.input, Elements::U8(pixels))
        .and_then(|inputs| Samples::new(inputs, labels))
        .map_err(at(path))
}

fn class_of(folder: &Path, card: &ModelCard) -> Result<u16, AuxiliaryError> {
    let unknown = || AuxiliaryError::UnknownClass { path: folder.into(), labels: card.labels.join(", ") };
    labels::class_of(&name(folder), &card.labels).ok_or_else(unknown)
}

/// A picture as channel-first bytes of the network's size.
fn decode(path: &Path, [channels, height, width]: [usize; 3]) -> Result<Vec<u8>, AuxiliaryError> {
    let broken = |why: String| AuxiliaryError::Picture { path: path.into(), why };
    let picture = picture(read_file(path)?).map_err(|e| broken(e.to_string()))?;
    let sized = picture.resize_exact(width as u32, height as u32, FilterType::Triangle);
    match channels {
        1 => Ok(sized.into_luma8().into_raw()),
        3 => {
            let rgb = sized.into_rgb8().into_raw();
            Ok((0..3).flat_map(|c| rgb.iter().skip(c).step_by(3)).copied().collect())
        }
        _ => Err(broken(format!("a picture has 1 or 3 channels, the network takes {channels}"))),
    }
}

fn picture(bytes: Vec<u8>) -> image::ImageResult<DynamicImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(MOST_SIDE), Some(MOST_SIDE));
    reader.limits(limits);
    reader.decode()
}

/// The form in which samples lie in the host's directory.
#[derive(Deserialize, Serialize)]
struct Stored {
    input: [usize; 3],
    labels: Vec<u16>,
    bytes: Vec<u8>,
    readings: Vec<i16>,
}

/// Keeps samples in a file, and gives its SHA-256.
pub(crate) fn write(path: &Path, samples: &Samples) -> Result<Hash, DirError> {
    let (bytes, readings) = match samples.inputs().elements() {
        Elements::U8(bytes) => (bytes.clone(), Vec::new()),
        Elements::I16(readings) => (Vec::new(), readings.clone()),
    };
    let stored =
        Stored { input: samples.inputs().input(), labels: samples.labels().to_vec(), bytes, readings };
    let bytes = postcard::to_stdvec(&stored).unwrap_or_default();
    dir::write(path, &bytes)?;
    Ok(Hash::of(&bytes))
}

/// Reads what [`write`] kept, which must have this SHA-256, if one is known.
pub(crate) fn read(path: &Path, expected: &str) -> Result<Samples, DirError> {
    let bytes = fs::read(path).map_err(|source| DirError::File { path: path.into(), source })?;
    let damaged = || DirError::File {
        path: path.into(),
        source: io::Error::other("not the data that this host was made with; restore them from a backup"),
    };
    if !expected.is_empty() && Hash::of(&bytes).to_string() != expected {
        return Err(damaged());
    }
    let Stored { input, labels, bytes, readings } = postcard::from_bytes(&bytes).map_err(|_| damaged())?;
    let elements = if readings.is_empty() { Elements::U8(bytes) } else { Elements::I16(readings) };
    Ok(Samples::new(Inputs::new(input, elements)?, labels)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::params::Preprocessing;

    fn card() -> ModelCard {
        let labels = vec!["Bag".into(), "T-shirt/top".into()];
        ModelCard {
            arch: "mlp".into(),
            input: [1, 2, 2],
            labels,
            statistics: 0,
            preprocessing: Preprocessing::none(1),
        }
    }

    #[test]
    fn pictures_become_samples_and_survive_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        for (folder, grey) in [("bag", 10), ("t-shirt_top", 200)] {
            fs::create_dir(dir.path().join(folder)).unwrap();
            image::GrayImage::from_pixel(4, 4, image::Luma([grey]))
                .save(dir.path().join(folder).join("a.png"))
                .unwrap();
        }
        let samples = load(dir.path(), &card()).unwrap();
        assert_eq!((samples.labels(), samples.len()), (&[0, 1][..], 2));
        let path = dir.path().join("kept");
        let hash = write(&path, &samples).unwrap().to_string();
        assert_eq!(read(&path, &hash).unwrap(), samples);
        assert_eq!(read(&path, "").unwrap(), samples, "by a program that noted no hash");
        let mut changed = fs::read(&path).unwrap();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(read(&path, &hash).is_err(), "other data");
        fs::write(&path, [1, 2, 3]).unwrap();
        assert!(read(&path, "").is_err());
    }

    #[test]
    fn an_unknown_class_and_a_broken_picture_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(load(dir.path(), &card()), Err(AuxiliaryError::NothingThere { .. })));
        fs::create_dir(dir.path().join("bag")).unwrap();
        fs::write(dir.path().join("bag/x.png"), b"no picture").unwrap();
        assert!(matches!(load(dir.path(), &card()), Err(AuxiliaryError::Picture { .. })));
        fs::remove_dir_all(dir.path().join("bag")).unwrap();
        fs::create_dir(dir.path().join("shoe")).unwrap();
        assert!(matches!(load(dir.path(), &card()), Err(AuxiliaryError::UnknownClass { .. })));
    }
}
