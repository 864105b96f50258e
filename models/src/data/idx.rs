//! IDX, the format of MNIST and its kin: two zero bytes, an element type, a rank, big-endian extents, then the elements.
use super::{DataError, Elements, Inputs};
use crate::tensor::Shape;

/// An IDX file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Idx {
    extents: Vec<usize>,
    elements: Elements,
}

/// Highest rank that means something here.
const MOST_RANK: usize = 4;

/// Parses an unpacked IDX file. Nothing is allocated before the stated size equals the bytes that are there.
///
/// ```
/// # use models::data::idx;
/// let file = idx::parse(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9]).unwrap();
/// assert_eq!(file.into_labels().unwrap(), [7, 0, 9]);
/// ```
///
/// # Errors
/// [`DataError`].
pub fn parse(bytes: &[u8]) -> Result<Idx, DataError> {
    let (&[a, b, code, rank], rest) = bytes.split_first_chunk::<4>().ok_or(short(4, bytes))?;
    if [a, b] != [0, 0] {
        return Err(DataError::NotIdx { start: [a, b] });
    }
    let size = element_size(code)?;
    let rank = usize::from(rank);
    if !(1..=MOST_RANK).contains(&rank) {
        return Err(DataError::Rank { what: "samples or labels", expected: "1 to 4", got: rank });
    }
    let (header, data) = rest.split_at_checked(4 * rank).ok_or(short(4 + 4 * rank, bytes))?;
    let extents: Vec<usize> =
        header.as_chunks::<4>().0.iter().map(|e| u32::from_be_bytes(*e) as usize).collect();
    let expected = extents.iter().map(|&e| e as u128).product::<u128>() * size as u128;
    if expected != data.len() as u128 {
        return Err(DataError::Size { extents: Shape::new(extents), expected, got: data.len() });
    }
    let elements = match size {
        1 => Elements::U8(data.to_vec()),
        _ => Elements::I16(data.as_chunks::<2>().0.iter().map(|e| i16::from_be_bytes(*e)).collect()),
    };
    Ok(Idx { extents, elements })
}

fn short(needed: usize, bytes: &[u8]) -> DataError {
    DataError::Short { format: "IDX", needed, got: bytes.len() }
}

/// Bytes of one element.
fn element_size(code: u8) -> Result<usize, DataError> {
    match code {
        0x08 => Ok(1),
        0x0b => Ok(2),
        code => Err(DataError::ElementType { code }),
    }
}

impl Idx {
    /// The extents that the header states, outermost first.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Class labels: one dimension of unsigned bytes.
    ///
    /// # Errors
    /// [`DataError::Rank`], [`DataError::ElementType`].
    pub fn into_labels(self) -> Result<Vec<u16>, DataError> {
        match (self.extents.len(), self.elements) {
            (1, Elements::U8(labels)) => Ok(labels.into_iter().map(u16::from).collect()),
            (1, Elements::I16(_)) => Err(DataError::ElementType { code: 0x0b }),
            (got, _) => Err(DataError::Rank { what: "labels", expected: "1", got }),
        }
    }

    /// Samples: pixels as `[n, height, width]`, `[n, channels, height, width]` or `[n, height, width, channels]` (channels
    /// are 1 or 3), sensor windows as `[n, time, channels]` of 16-bit readings, which become channels × 1 × time.
    ///
    /// # Errors
    /// [`DataError::Rank`], [`DataError::Extents`].
    pub fn into_inputs(self) -> Result<Inputs, DataError> {
        match (self.extents.as_slice(), &self.elements) {
            (&[_, h, w], Elements::U8(_)) => Inputs::new([1, h, w], self.elements),
            (&[n, t, c], Elements::I16(_)) => Inputs::new([c, 1, t], channel_first(&self.elements, n, t, c)),
            (&[_, 3, h, w], _) => Inputs::new([3, h, w], self.elements),
            (&[n, h, w, 3], _) => Inputs::new([3, h, w], channel_first(&self.elements, n, h * w, 3)),
            (&[_, 1, h, w] | &[_, h, w, 1], _) => Inputs::new([1, h, w], self.elements),
            (&[_, ..], _) if self.extents.len() == MOST_RANK => {
                Err(DataError::Rank { what: "samples with 1 or 3 channels", expected: "4", got: MOST_RANK })
            }
            _ => Err(DataError::Rank { what: "samples", expected: "3 or 4", got: self.extents.len() }),
        }
    }
}

/// `[n, places, channels]` as `[n, channels, places]`.
fn channel_first(elements: &Elements, n: usize, places: usize, channels: usize) -> Elements {
    let at = move |s: usize, c: usize, p: usize| (s * places + p) * channels + c;
    elements.gather(
        (0..n).flat_map(move |s| (0..channels).flat_map(move |c| (0..places).map(move |p| at(s, c, p)))),
    )
}
