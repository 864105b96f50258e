//! The bundled part of Fashion-MNIST, and the proof that it is what it says.
use crate::idx::{self, IdxError};
use crate::images::Images;
use std::path::{Path, PathBuf};

/// Training images dealt to clients: the first of the file.
pub const CLIENT_IMAGES: usize = 7_000;
/// Training images of the host's auxiliary set: those that follow.
pub const AUXILIARY_IMAGES: usize = 500;
/// Test images dealt: the first of the file.
pub const TEST_IMAGES: usize = 1_500;
/// The classes, in the order of their labels.
pub const CLASSES: [&str; 10] =
    ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"];
/// Mean and standard deviation of the whole training set, pixels in [0, 1] (methods §2.2).
pub const STANDARD: (f32, f32) = (0.2860, 0.3530);

const TRAIN: &str = "train";
const TEST: &str = "t10k";

/// The three sets that the worlds are made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// To be dealt to clients.
    pub clients: Images,
    /// The host's auxiliary set.
    pub auxiliary: Images,
    /// To be dealt as test images.
    pub test: Images,
}

impl Bundle {
    /// What is compiled into this program.
    ///
    /// # Panics
    /// Never in a build whose tests pass: they unpack it.
    pub fn embedded() -> Self {
        let train = idx::read_pair(
            include_bytes!("../data/fashion-mnist/train-images-idx3-ubyte.gz"),
            include_bytes!("../data/fashion-mnist/train-labels-idx1-ubyte.gz"),
            usize::MAX,
        );
        let test = idx::read_pair(
            include_bytes!("../data/fashion-mnist/t10k-images-idx3-ubyte.gz"),
            include_bytes!("../data/fashion-mnist/t10k-labels-idx1-ubyte.gz"),
            usize::MAX,
        );
        Self::cut(&train.expect("the embedded files are sound"), test.expect("the embedded files are sound"))
    }

    /// The same part, from the original files of the folder `from`.
    ///
    /// # Errors
    /// [`OriginalError`].
    pub fn original(from: &Path) -> Result<Self, OriginalError> {
        Ok(Self::cut(&read(from, TRAIN, CLIENT_IMAGES + AUXILIARY_IMAGES)?, read(from, TEST, TEST_IMAGES)?))
    }

    fn cut(train: &Images, test: Images) -> Self {
        let clients = train.slice(0..CLIENT_IMAGES);
        let auxiliary = train.slice(CLIENT_IMAGES..CLIENT_IMAGES + AUXILIARY_IMAGES);
        Self { clients, auxiliary, test }
    }
}

/// Why the original files can't be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OriginalError {
    /// A file is missing or can't be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {source}")]
    Format {
        /// Which.
        path: PathBuf,
        /// Why.
        source: IdxError,
    },
}

fn read(from: &Path, part: &str, limit: usize) -> Result<Images, OriginalError> {
    let images = from.join(format!("{part}-images-idx3-ubyte.gz"));
    let labels = from.join(format!("{part}-labels-idx1-ubyte.gz"));
    let load = |path: &PathBuf| {
        std::fs::read(path).map_err(|source| OriginalError::File { path: path.clone(), source })
    };
    let (pixels, classes) = (load(&images)?, load(&labels)?);
    idx::read_pair(&pixels, &classes, limit).map_err(|source| OriginalError::Format { path: images, source })
}

/// Where data sets lie: `$SPECTRA_DATA`, else `shared/data` beside the workspace; never relative to the current directory.
pub fn data_root() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    std::env::var_os("SPECTRA_DATA").map_or_else(beside, PathBuf::from)
}

/// The folder of the original files, if it is there.
pub fn originals() -> Option<PathBuf> {
    Some(data_root().join("fashion-mnist")).filter(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_has_the_announced_sizes_and_all_classes() {
        let bundle = Bundle::embedded();
        let sizes = [&bundle.clients, &bundle.auxiliary, &bundle.test].map(Images::len);
        assert_eq!(sizes, [CLIENT_IMAGES, AUXILIARY_IMAGES, TEST_IMAGES]);
        assert_eq!(bundle.test.extents(), [28, 28]);
        assert!(bundle.auxiliary.counts(CLASSES.len()).iter().all(|&n| n > 0));
    }

    #[test]
    fn the_bundle_equals_the_original_files() {
        match originals() {
            Some(folder) => assert!(Bundle::original(&folder).unwrap() == Bundle::embedded()),
            None => println!("skipped: no data"),
        }
    }
}
