//! IDX, the format of the MNIST family: a magic number, big-endian extents, then bytes.
use crate::images::Images;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{Read, Write};

const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;

/// Why bytes are not an IDX file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdxError {
    /// The compressed stream is broken.
    #[error("the gzip stream can't be unpacked: {0}")]
    Gzip(#[from] std::io::Error),
    /// Another kind of file.
    #[error("the magic number is {got:#010x}, {expected:#010x} was expected")]
    Magic {
        /// What the kind of file starts with.
        expected: u32,
        /// What it starts with.
        got: u32,
    },
    /// Less or more than the header announces.
    #[error("the header announces {announced} bytes, {got} follow")]
    Length {
        /// By the header.
        announced: usize,
        /// After the header.
        got: usize,
    },
    /// Images without labels or the other way round.
    #[error("{images} images but {labels} labels")]
    Pair {
        /// Images.
        images: usize,
        /// Labels.
        labels: usize,
    },
}

/// Reads a pair of packed files, at most the first `limit` samples.
///
/// # Errors
/// [`IdxError`].
pub fn read_pair(images: &[u8], labels: &[u8], limit: usize) -> Result<Images, IdxError> {
    let (pixel_extents, mut pixels) = unpack(images, IMAGES, 3)?;
    let (_, mut labels) = unpack(labels, LABELS, 1)?;
    if pixel_extents[0] != labels.len() {
        return Err(IdxError::Pair { images: pixel_extents[0], labels: labels.len() });
    }
    labels.truncate(limit);
    pixels.truncate(labels.len() * pixel_extents[1] * pixel_extents[2]);
    Ok(Images::new(pixel_extents[1], pixel_extents[2], pixels, labels))
}

/// Packs images and labels into two files, the same bytes every time.
pub fn write_pair(of: &Images) -> (Vec<u8>, Vec<u8>) {
    let [height, width] = of.extents();
    (pack(IMAGES, &[of.len(), height, width], of.pixels()), pack(LABELS, &[of.len()], of.labels()))
}

fn unpack(packed: &[u8], expected: u32, rank: usize) -> Result<(Vec<usize>, Vec<u8>), IdxError> {
    let mut reader = GzDecoder::new(packed);
    let mut word = || -> Result<u32, IdxError> {
        let mut bytes = [0; 4];
        reader.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    };
    let got = word()?;
    if got != expected {
        return Err(IdxError::Magic { expected, got });
    }
    let extents = (0..rank).map(|_| word().map(|w| w as usize)).collect::<Result<Vec<_>, _>>()?;
    let announced = extents.iter().product();
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    if body.len() != announced {
        return Err(IdxError::Length { announced, got: body.len() });
    }
    Ok((extents, body))
}

fn pack(magic: u32, extents: &[usize], body: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
    let header = std::iter::once(magic).chain(extents.iter().map(|&e| e as u32)).flat_map(u32::to_be_bytes);
    let bytes: Vec<u8> = header.chain(body.iter().copied()).collect();
    writer.write_all(&bytes).and_then(|()| writer.finish()).expect("writing into memory can't fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let images = Images::new(2, 3, (0..18).collect(), vec![4, 0, 9]);
        let (pixels, labels) = write_pair(&images);
        assert_eq!(read_pair(&pixels, &labels, 10).unwrap(), images);
        assert_eq!(read_pair(&pixels, &labels, 2).unwrap(), images.select(&[0, 1]));
    }

    #[test]
    fn a_wrong_kind_and_a_missing_label_are_named() {
        let (pixels, labels) = write_pair(&Images::new(1, 1, vec![7, 8], vec![0, 1]));
        assert!(matches!(
            read_pair(&labels, &labels, 9),
            Err(IdxError::Magic { expected: 0x0803, got: 0x0801 })
        ));
        let (_, short) = write_pair(&Images::new(1, 1, vec![7], vec![0]));
        assert!(matches!(read_pair(&pixels, &short, 9), Err(IdxError::Pair { images: 2, labels: 1 })));
    }
}
