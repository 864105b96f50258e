//! A board's local data: image folders, IDX pairs, CIFAR files. What can't be used is named and counted, never dropped in silence.
mod files;
mod folder;
mod inputs;
mod pictures;

pub use inputs::{Queries, queries};
pub use pictures::{Fit, decode};

use models::data::{DataError, Inputs, Samples, cifar, idx};
use models::params::ModelCard;
use std::path::{Path, PathBuf};

/// Why local data can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalDataError {
    /// No source was given.
    #[error("no training data: give `--data PATH` or set `[data] train`")]
    NoSource,
    /// A file can't be read.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is too large to be sample data.
    #[error("{path}: more than {limit} MiB once unpacked")]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// The cap.
        limit: u64,
    },
    /// A file is not what it should be.
    #[error("{path}: {source}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: DataError,
    },
    /// A picture can't be decoded.
    #[error("{path}: not a usable picture ({why})")]
    Picture {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A picture has another size.
    #[error(
        "{path} is {got} pixels but the model takes {expected}; scale your pictures, or let this program do it with `--resize`"
    )]
    Size {
        /// Which.
        path: PathBuf,
        /// Width × height.
        got: String,
        /// Width × height.
        expected: String,
    },
    /// The model's input is no picture.
    #[error("the model takes {channels} channels: pictures have 1 or 3; give IDX files")]
    NoPictures {
        /// Channels of the model.
        channels: usize,
    },
    /// A directory holds nothing of any known kind.
    #[error(
        "{path} holds no data: expected one sub-folder of PNG or JPEG pictures per class, or `…images-idx3-ubyte[.gz]` with `…labels-idx1-ubyte[.gz]`, or CIFAR `data_batch….bin[.gz]`"
    )]
    NothingThere {
        /// Which directory.
        path: PathBuf,
    },
    /// Nothing that can be answered is there.
    #[error(
        "{path} holds nothing to answer: expected PNG or JPEG pictures, IDX images (`…images-idx3-ubyte[.gz]`), or folders of them"
    )]
    NothingToAnswer {
        /// Where.
        path: PathBuf,
    },
    /// Pictures lie beside each other with no class.
    #[error("{path} holds pictures but no sub-folders: put them into one sub-folder per class ({labels})")]
    NoClasses {
        /// Which directory.
        path: PathBuf,
        /// The model's classes.
        labels: String,
    },
    /// Every sub-folder has a name that is no class.
    #[error("no sub-folder of {path} is a class of the model: found {found}; the model knows {labels}")]
    AllUnknown {
        /// Which directory.
        path: PathBuf,
        /// What is there.
        found: String,
        /// The model's classes.
        labels: String,
    },
    /// No picture could be decoded.
    #[error("none of the {count} pictures in {path} can be decoded, the first is {first}")]
    AllCorrupt {
        /// Which directory.
        path: PathBuf,
        /// How many.
        count: usize,
        /// The first, with the reason.
        first: String,
    },
    /// IDX images without their labels.
    #[error("{images} has no labels beside it: expected {labels}, or give both as `IMAGES,LABELS`")]
    NoLabels {
        /// The images.
        images: PathBuf,
        /// Where labels should be.
        labels: PathBuf,
    },
}

/// What the samples must fit.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Channels, height, width.
    pub input: [usize; 3],
    /// The classes.
    pub labels: &'a [String],
    /// Whether pictures of another size are scaled.
    pub resize: bool,
}

impl<'a> Target<'a> {
    /// What a model takes.
    pub fn of(card: &'a ModelCard, resize: bool) -> Self {
        Self { input: card.input, labels: &card.labels, resize }
    }
}

/// Samples, and what the owner should know about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The samples that can be used.
    pub samples: Samples,
    /// What was left out, and why; what is thin.
    pub warnings: Vec<String>,
}

/// Loads all sources, in the order given.
///
/// # Errors
/// [`LocalDataError`] if a source is unusable or nothing is left.
pub fn load(sources: &[PathBuf], target: Target<'_>) -> Result<Loaded, LocalDataError> {
    let mut all: Option<Samples> = None;
    let mut warnings = Vec::new();
    for path in sources {
        let loaded = load_one(path, target)?;
        warnings.extend(loaded.warnings);
        loaded.samples.check(target.input, target.labels).map_err(at(path))?;
        all = Some(match all {
            None => loaded.samples,
            Some(before) => before.chain(loaded.samples).map_err(at(path))?,
        });
    }
    let samples = all.ok_or(LocalDataError::NoSource)?;
    warnings.extend(thin(&samples, target.labels));
    Ok(Loaded { samples, warnings })
}

/// Adds the file to a parser's error.
fn at(path: &Path) -> impl FnOnce(DataError) -> LocalDataError {
    move |source| LocalDataError::Parse { path: path.into(), source }
}

fn load_one(path: &Path, target: Target<'_>) -> Result<Loaded, LocalDataError> {
    if let Some((images, labels)) = pair(path) {
        return plain(load_idx(&images, &labels)?);
    }
    if path.is_dir() {
        return load_dir(path, target);
    }
    if files::name(path).contains(".bin") {
        return plain(load_cifar(path, target)?);
    }
    plain(load_idx(path, &files::labels_beside(path))?)
}

fn plain(samples: Samples) -> Result<Loaded, LocalDataError> {
    Ok(Loaded { samples, warnings: Vec::new() })
}

/// `IMAGES,LABELS`, if that is what the argument says.
fn pair(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let (images, labels) = path.to_str()?.split_once(',')?;
    (!path.exists()).then(|| (images.into(), labels.into()))
}

fn load_dir(path: &Path, target: Target<'_>) -> Result<Loaded, LocalDataError> {
    let listing = files::list(path)?;
    if let Some(images) = files::idx_images(&listing) {
        return plain(load_idx(&images, &files::labels_beside(&images))?);
    }
    let batches = files::cifar_batches(&listing);
    let mut parts = batches.iter().map(|batch| load_cifar(batch, target));
    if let Some(first) = parts.next() {
        let all = parts.try_fold(first?, |all, part| all.chain(part?).map_err(at(path)))?;
        return plain(all);
    }
    folder::load(path, &listing, target)
}

/// An IDX pair.
///
/// # Errors
/// [`LocalDataError`].
pub fn load_idx(images: &Path, labels: &Path) -> Result<Samples, LocalDataError> {
    let inputs = load_idx_inputs(images)?;
    if !labels.exists() {
        return Err(LocalDataError::NoLabels { images: images.into(), labels: labels.into() });
    }
    let classes = idx::parse(&files::read(labels)?).and_then(idx::Idx::into_labels).map_err(at(labels))?;
    Samples::new(inputs, classes).map_err(at(images))
}

/// The samples of an IDX file, without labels.
///
/// # Errors
/// [`LocalDataError`].
pub fn load_idx_inputs(path: &Path) -> Result<Inputs, LocalDataError> {
    idx::parse(&files::read(path)?).and_then(idx::Idx::into_inputs).map_err(at(path))
}

fn load_cifar(path: &Path, target: Target<'_>) -> Result<Samples, LocalDataError> {
    cifar::parse(&files::read(path)?, cifar::Variant::of_classes(target.labels.len())).map_err(at(path))
}

/// What is thin about these samples.
fn thin(samples: &Samples, labels: &[String]) -> Vec<String> {
    let counts = samples.counts(labels.len());
    let present: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
    let mut warnings = Vec::new();
    if samples.len() < 10 {
        warnings.push(format!(
            "there are only {} samples: nothing can be held out to check the personal model",
            samples.len()
        ));
    }
    if let [only] = present[..] {
        warnings.push(format!(
            "every sample is of class {:?}: alone, this board could learn nothing else",
            labels[only]
        ));
    }
    warnings
}
