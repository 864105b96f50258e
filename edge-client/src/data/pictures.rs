//! Pictures as the model takes them.
use super::{LocalDataError, files};
use image::imageops::FilterType;
use image::{DynamicImage, ImageReader, Limits};
use std::io::Cursor;
use std::path::Path;

/// What a picture must become.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Channels, height, width.
    pub input: [usize; 3],
    /// Whether another size is scaled.
    pub resize: bool,
}

/// Largest width and height that is decoded.
const MOST_SIDE: u32 = 16_384;
/// Most memory that decoding one picture may take.
const MOST_MEMORY: u64 = 256 << 20;

/// A picture file as channel-first bytes.
///
/// # Errors
/// [`LocalDataError::Picture`] if it can't be decoded, [`LocalDataError::Size`], [`LocalDataError::NoPictures`].
pub fn decode(path: &Path, fit: Fit) -> Result<Vec<u8>, LocalDataError> {
    let bytes = files::read(path)?;
    let corrupt = |why: String| LocalDataError::Picture { path: path.into(), why };
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| corrupt(e.to_string()))?;
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height, limits.max_alloc) =
        (Some(MOST_SIDE), Some(MOST_SIDE), Some(MOST_MEMORY));
    reader.limits(limits);
    let picture = reader.decode().map_err(|e| corrupt(e.to_string()))?;
    shape(picture, path, fit)
}

fn shape(picture: DynamicImage, path: &Path, fit: Fit) -> Result<Vec<u8>, LocalDataError> {
    let [channels, height, width] = fit.input;
    let sized = match (picture.width() as usize, picture.height() as usize) {
        got if got == (width, height) => picture,
        _ if fit.resize => picture.resize_exact(width as u32, height as u32, FilterType::Triangle),
        (w, h) => {
            let (got, expected) = (format!("{w}×{h}"), format!("{width}×{height}"));
            return Err(LocalDataError::Size { path: path.into(), got, expected });
        }
    };
    match channels {
        1 => Ok(sized.into_luma8().into_raw()),
        3 => Ok(planes(sized.into_rgb8().as_raw())),
        channels => Err(LocalDataError::NoPictures { channels }),
    }
}

/// `rgbrgb…` as `rr…gg…bb…`.
fn planes(interleaved: &[u8]) -> Vec<u8> {
    (0..3).flat_map(|c| interleaved.iter().skip(c).step_by(3)).copied().collect()
}
