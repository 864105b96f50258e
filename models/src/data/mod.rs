//! Bytes of data files as typed samples: pure, total parsers. Whoever reads files unpacks them and names them in errors.
pub mod cifar;
pub mod idx;
pub mod labels;
mod samples;

pub use samples::{Elements, Inputs, Samples};

use crate::tensor::Shape;

/// Why bytes are not the data they are said to be. The caller adds the file's name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Fewer bytes than any file of this kind has.
    #[error("{got} bytes are too few for {format}: its header alone takes {needed}; the file may be cut off")]
    Short {
        /// The format.
        format: &'static str,
        /// Bytes that a header takes.
        needed: usize,
        /// Bytes that came.
        got: usize,
    },
    /// It doesn't start as IDX files do.
    #[error(
        "it starts with {start:02x?}, an IDX file starts with two zero bytes; if it ends in .gz, keep that ending so that it is unpacked"
    )]
    NotIdx {
        /// The first two bytes.
        start: [u8; 2],
    },
    /// An IDX element type that no sample here has.
    #[error(
        "IDX element type 0x{code:02x} is not supported; use 0x08 (unsigned byte) or 0x0b (16-bit integer)"
    )]
    ElementType {
        /// The type's code.
        code: u8,
    },
    /// A number of dimensions that means nothing here.
    #[error("{what} in an IDX file have {expected} dimensions, this one has {got}")]
    Rank {
        /// Images or labels.
        what: &'static str,
        /// How many are right.
        expected: &'static str,
        /// How many there are.
        got: usize,
    },
    /// The size that the header states and the bytes that are there differ.
    #[error(
        "the header states {extents}, that is {expected} bytes of data, but there are {got}; the file may be cut off"
    )]
    Size {
        /// What the header states.
        extents: Shape,
        /// Bytes that would be.
        expected: u128,
        /// Bytes that are.
        got: usize,
    },
    /// Not a whole number of records.
    #[error(
        "{got} bytes are not a whole number of {format} records of {record} bytes; the file may be cut off or of another kind"
    )]
    Records {
        /// The format.
        format: &'static str,
        /// Bytes of one record.
        record: usize,
        /// Bytes that came.
        got: usize,
    },
    /// An extent that is no image.
    #[error(
        "a sample of {extents} is no image and no window: channels, height and width must lie in 1..={most}"
    )]
    Extents {
        /// What the header states.
        extents: Shape,
        /// Largest extent.
        most: usize,
    },
    /// Images and labels don't pair up.
    #[error(
        "there are {samples} samples but {labels} labels: images and labels are of different files or one is cut off"
    )]
    Unpaired {
        /// Samples.
        samples: usize,
        /// Labels.
        labels: usize,
    },
    /// A label that the model doesn't know.
    #[error("sample {sample} has label {label}, but the model knows 0 to {last} only ({names})")]
    UnknownLabel {
        /// Which sample, from 0.
        sample: usize,
        /// Its label.
        label: u16,
        /// Highest label known.
        last: usize,
        /// What the model knows.
        names: String,
    },
    /// Samples of another size than the model takes.
    #[error("samples are {got} (channels×height×width), but the model takes {expected}")]
    Input {
        /// What the model takes.
        expected: Shape,
        /// What the samples are.
        got: Shape,
    },
    /// Nothing there.
    #[error("there is no sample in it")]
    Empty,
    /// Parts that don't go together.
    #[error("samples of {first} and of {other} can't be put together")]
    Mixed {
        /// Of the first part.
        first: Shape,
        /// Of another.
        other: Shape,
    },
    /// Not text.
    #[error("line {line} is not UTF-8 text")]
    NotText {
        /// Where, from 1.
        line: usize,
    },
    /// A name that stands for nothing or for two classes.
    #[error("line {line}: class name {name:?} {why}")]
    ClassName {
        /// Where, from 1.
        line: usize,
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No or too many class names.
    #[error("{got} class names; there must be between 1 and {most}, one a line")]
    ClassCount {
        /// How many there are.
        got: usize,
        /// How many are allowed.
        most: usize,
    },
}

/// Largest extent of a sample.
pub const MOST_EXTENT: usize = 4096;

/// Refuses a sample size that is zero or absurd.
///
/// # Errors
/// [`DataError::Extents`].
fn check_extents(input: [usize; 3]) -> Result<[usize; 3], DataError> {
    match input.iter().all(|e| (1..=MOST_EXTENT).contains(e)) {
        true => Ok(input),
        false => Err(DataError::Extents { extents: Shape::new(input), most: MOST_EXTENT }),
    }
}

#[cfg(test)]
mod tests;
