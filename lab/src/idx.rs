//! Packed IDX pairs: the format in which the bundle lies here and in which boards get their data.
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use models::data::{DataError, Elements, Samples, idx};
use std::io::{Read, Write};

const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;
/// Most bytes that a packed file here may hold (all of Fashion-MNIST has 47 MB).
const UNPACKED_CAP: u64 = 64 << 20;

/// Why bytes are not a packed IDX pair.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The compressed stream is broken.
    #[error("the gzip stream can't be unpacked: {0}")]
    Gzip(#[from] std::io::Error),
    /// What is in it is no IDX file.
    #[error(transparent)]
    Format(#[from] DataError),
}

/// Reads a pair of packed files.
///
/// # Errors
/// [`PairError`].
pub fn read_pair(images: &[u8], labels: &[u8]) -> Result<Samples, PairError> {
    let inputs = idx::parse(&unpack(images)?)?.into_inputs()?;
    Ok(Samples::new(inputs, idx::parse(&unpack(labels)?)?.into_labels()?)?)
}

/// Packs grey images and their labels into two files, the same bytes every time.
///
/// # Panics
/// If the samples are not bytes: every world here is made of such.
pub fn write_pair(samples: &Samples) -> (Vec<u8>, Vec<u8>) {
    let [_, height, width] = samples.inputs().input();
    let Elements::U8(pixels) = samples.inputs().elements() else { panic!("images are bytes") };
    let labels: Vec<u8> = samples.labels().iter().map(|&l| l as u8).collect();
    (pack(IMAGES, &[samples.len(), height, width], pixels), pack(LABELS, &[samples.len()], &labels))
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, PairError> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(UNPACKED_CAP).read_to_end(&mut bytes)?;
    Ok(bytes)
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
    use models::data::Inputs;

    #[test]
    fn what_is_written_is_read_back() {
        let inputs = Inputs::new([1, 2, 3], Elements::U8((0..18).collect())).unwrap();
        let samples = Samples::new(inputs, vec![4, 0, 9]).unwrap();
        let (images, labels) = write_pair(&samples);
        assert_eq!(read_pair(&images, &labels).unwrap(), samples);
        assert!(matches!(read_pair(&labels, &labels), Err(PairError::Format(_))));
        assert!(matches!(read_pair(&images[..9], &labels), Err(PairError::Gzip(_))));
    }
}
