//! The bundled part of Fashion-MNIST, and the proof that it is what it says.
use crate::idx::{self, PairError};
use models::data::Samples;
use std::ops::Range;
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
    pub clients: Samples,
    /// The host's auxiliary set.
    pub auxiliary: Samples,
    /// To be dealt as test images.
    pub test: Samples,
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
        );
        let test = idx::read_pair(
            include_bytes!("../data/fashion-mnist/t10k-images-idx3-ubyte.gz"),
            include_bytes!("../data/fashion-mnist/t10k-labels-idx1-ubyte.gz"),
        );
        Self::cut(&train.expect("the embedded files are sound"), &test.expect("the embedded files are sound"))
    }

    /// The same part, from the original files of the folder `from`.
    ///
    /// # Errors
    /// [`OriginalError`].
    pub fn original(from: &Path) -> Result<Self, OriginalError> {
        Ok(Self::cut(&read(from, TRAIN)?, &read(from, TEST)?))
    }

    fn cut(train: &Samples, test: &Samples) -> Self {
        let slice = |of: &Samples, range: Range<usize>| of.select(&range.collect::<Vec<_>>());
        Self {
            clients: slice(train, 0..CLIENT_IMAGES),
            auxiliary: slice(train, CLIENT_IMAGES..CLIENT_IMAGES + AUXILIARY_IMAGES),
            test: slice(test, 0..TEST_IMAGES),
        }
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
        source: PairError,
    },
}

fn read(from: &Path, part: &str) -> Result<Samples, OriginalError> {
    let images = from.join(format!("{part}-images-idx3-ubyte.gz"));
    let labels = from.join(format!("{part}-labels-idx1-ubyte.gz"));
    let load =
        |path: &Path| std::fs::read(path).map_err(|source| OriginalError::File { path: path.into(), source });
    let (pixels, classes) = (load(&images)?, load(&labels)?);
    idx::read_pair(&pixels, &classes).map_err(|source| OriginalError::Format { path: images, source })
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
        let sizes = [&bundle.clients, &bundle.auxiliary, &bundle.test].map(Samples::len);
        assert_eq!(sizes, [CLIENT_IMAGES, AUXILIARY_IMAGES, TEST_IMAGES]);
        assert_eq!(bundle.test.inputs().input(), [1, 28, 28]);
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
