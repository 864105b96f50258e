//! The binary form of CIFAR-10 and CIFAR-100: records of one or two label bytes and three planes of 32 × 32 pixels.
use super::{DataError, Elements, Inputs, Samples};

/// Which of the two, and which label counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variant {
    /// CIFAR-10.
    Ten,
    /// CIFAR-100 by its hundred classes.
    Fine,
    /// CIFAR-100 by its twenty superclasses.
    Coarse,
}

/// Channels, height, width.
pub const INPUT: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;

impl Variant {
    /// The variant whose records have the labels of a model with so many classes.
    pub fn of_classes(classes: usize) -> Self {
        match classes {
            0..=10 => Self::Ten,
            11..=20 => Self::Coarse,
            _ => Self::Fine,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ten => "CIFAR-10",
            Self::Fine | Self::Coarse => "CIFAR-100",
        }
    }

    fn label_bytes(self) -> usize {
        match self {
            Self::Ten => 1,
            Self::Fine | Self::Coarse => 2,
        }
    }

    fn label(self, record: &[u8]) -> u16 {
        u16::from(match self {
            Self::Ten | Self::Coarse => record[0],
            Self::Fine => record[1],
        })
    }
}

/// Parses an unpacked batch file.
///
/// # Errors
/// [`DataError::Records`] unless it is a whole number of records.
pub fn parse(bytes: &[u8], variant: Variant) -> Result<Samples, DataError> {
    let record = PIXELS + variant.label_bytes();
    if !bytes.len().is_multiple_of(record) {
        return Err(DataError::Records { format: variant.name(), record, got: bytes.len() });
    }
    let records = bytes.chunks_exact(record);
    let labels = records.clone().map(|r| variant.label(r)).collect();
    let pixels = records.flat_map(|r| &r[variant.label_bytes()..]).copied().collect();
    Samples::new(Inputs::new(INPUT, Elements::U8(pixels))?, labels)
}
