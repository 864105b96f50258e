//! Labelled samples in memory, and how a network gets to see them.
use super::ClassCounts;
use super::layer::Plane;
use crate::id::Hash;
use crate::params::Preprocessing;
use crate::tensor::rng::Key;
use std::ops::Range;

/// Samples, one after the other, each channel-first (all rows of a channel, then the next channel).
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// One byte per number, meaning `byte / 255`.
    Bytes(Vec<u8>),
    /// Numbers, usually in [0, 1].
    Floats(Vec<f32>),
    /// Numbers that the network takes as they are, without the model's preprocessing: features that something else made.
    Ready(Vec<f32>),
}

/// Labelled samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    inputs: Inputs,
    labels: Vec<u16>,
    width: usize,
}

/// Why numbers and labels are not a data set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Numbers and labels do not match.
    #[error("{labels} labels need {expected} numbers of input, {got} came")]
    Length {
        /// Labels.
        labels: usize,
        /// Numbers that they need.
        expected: usize,
        /// Numbers that came.
        got: usize,
    },
    /// A label that the model does not have.
    #[error("sample {sample} has label {label}, but there are {classes} classes")]
    Label {
        /// Which sample.
        sample: usize,
        /// Its label.
        label: u16,
        /// Classes of the model.
        classes: usize,
    },
    /// An input is not finite.
    #[error("sample {sample} holds a number that is not finite")]
    NotFinite {
        /// Which sample.
        sample: usize,
    },
}

impl Dataset {
    /// Samples of `width` numbers each with a label below `classes`.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn new(inputs: Inputs, labels: Vec<u16>, width: usize, classes: usize) -> Result<Self, DataError> {
        let got = match &inputs {
            Inputs::Bytes(bytes) => bytes.len(),
            Inputs::Floats(floats) | Inputs::Ready(floats) => floats.len(),
        };
        let expected = labels.len().saturating_mul(width);
        if got != expected {
            return Err(DataError::Length { labels: labels.len(), expected, got });
        }
        if let Some(sample) = labels.iter().position(|&l| usize::from(l) >= classes) {
            return Err(DataError::Label { sample, label: labels[sample], classes });
        }
        if let Inputs::Floats(floats) | Inputs::Ready(floats) = &inputs
            && let Some(at) = floats.iter().position(|x| !x.is_finite())
        {
            return Err(DataError::NotFinite { sample: at / width.max(1) });
        }
        Ok(Self { inputs, labels, width })
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Numbers in a sample.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The class of each sample.
    pub fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// Samples per class among those given.
    pub fn counts(&self, samples: &[usize], classes: usize) -> ClassCounts {
        let mut counts = vec![0; classes];
        samples.iter().for_each(|&i| counts[usize::from(self.labels[i])] += 1);
        ClassCounts(counts)
    }

    /// One sample as numbers in [0, 1], channel-first.
    pub fn sample(&self, index: usize, out: &mut [f32]) {
        let place = index * self.width..(index + 1) * self.width;
        match &self.inputs {
            Inputs::Bytes(bytes) => {
                out.iter_mut().zip(&bytes[place]).for_each(|(x, &b)| *x = f32::from(b) / 255.0);
            }
            Inputs::Floats(floats) | Inputs::Ready(floats) => out.copy_from_slice(&floats[place]),
        }
    }

    /// The name of each sample: the hash of its numbers.
    pub(super) fn hashes(&self) -> Vec<Hash> {
        let width = self.width.max(1);
        match &self.inputs {
            Inputs::Bytes(bytes) => bytes.chunks_exact(width).map(Hash::of).collect(),
            Inputs::Floats(floats) | Inputs::Ready(floats) => {
                let bytes = |sample: &[f32]| sample.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
                floats.chunks_exact(width).map(|sample| Hash::of(&bytes(sample))).collect()
            }
        }
    }

    /// Draws the validation slice (one tenth, at least one sample if there are ten) and returns (training samples, validation
    /// samples), each in ascending order.
    pub fn split(&self, key: Key) -> (Vec<usize>, Vec<usize>) {
        let held = if self.len() >= 10 { (self.len() / 10).max(1) } else { 0 };
        let mut order = key.stream().permutation(self.len());
        let mut train = order.split_off(held);
        train.sort_unstable();
        order.sort_unstable();
        (train, order)
    }

    /// The samples as a network with this preprocessing sees them.
    pub(super) fn source<'a>(&'a self, standardise: &'a Standardise) -> Source<'a> {
        let numbers = match &self.inputs {
            Inputs::Bytes(bytes) => Numbers::Bytes(bytes),
            Inputs::Floats(floats) => Numbers::Floats(floats),
            Inputs::Ready(floats) => return Source::ready(floats),
        };
        Source { numbers, standardise: Some(standardise) }
    }
}

/// Preprocessing, with a table for bytes.
#[derive(Clone, Debug)]
pub(super) struct Standardise {
    preprocessing: Preprocessing,
    /// What a byte becomes, by channel.
    table: Vec<[f32; 256]>,
}

impl Standardise {
    pub(super) fn new(preprocessing: &Preprocessing) -> Self {
        let moments = preprocessing.mean.iter().zip(&preprocessing.std);
        let table =
            moments.map(|(mean, std)| std::array::from_fn(|b| (b as f32 / 255.0 - mean) / std)).collect();
        Self { preprocessing: preprocessing.clone(), table }
    }
}

#[derive(Clone, Copy, Debug)]
enum Numbers<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
}

/// Where a network's samples come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    numbers: Numbers<'a>,
    standardise: Option<&'a Standardise>,
}

impl<'a> Source<'a> {
    /// Samples that are already standardised.
    pub(super) fn ready(inputs: &'a [f32]) -> Self {
        Self { numbers: Numbers::Floats(inputs), standardise: None }
    }

    /// Writes sample `index` into the interior of a channel-last plane.
    pub(super) fn load(&self, index: usize, plane: &Plane, out: &mut [f32]) {
        let first = index * plane.dims.len();
        match (self.numbers, self.standardise) {
            (Numbers::Bytes(bytes), Some(s)) => scatter(plane, out, |c, places, to| {
                let from = &bytes[first + places.start..first + places.end];
                to.zip(from).for_each(|(to, &b)| *to = s.table[c][usize::from(b)]);
            }),
            (Numbers::Bytes(bytes), None) => scatter(plane, out, |_, places, to| {
                to.zip(&bytes[first + places.start..]).for_each(|(to, &b)| *to = f32::from(b) / 255.0);
            }),
            (Numbers::Floats(floats), Some(s)) => scatter(plane, out, |c, places, to| {
                let (mean, std) = (s.preprocessing.mean[c], s.preprocessing.std[c]);
                to.zip(&floats[first + places.start..]).for_each(|(to, x)| *to = (x - mean) / std);
            }),
            (Numbers::Floats(floats), None) => scatter(plane, out, |_, places, to| {
                to.zip(&floats[first + places.start..]).for_each(|(to, x)| *to = *x);
            }),
        }
    }
}

/// Calls `f(channel, the row's place in the channel-first sample, its places in the plane)` for each row of each channel.
fn scatter(
    plane: &Plane,
    out: &mut [f32],
    mut f: impl FnMut(usize, Range<usize>, std::iter::StepBy<std::slice::IterMut<'_, f32>>),
) {
    let dims = plane.dims;
    for c in 0..dims.channels {
        for y in 0..dims.height {
            let from = (c * dims.height + y) * dims.width;
            f(c, from..from + dims.width, out[plane.row(y)][c..].iter_mut().step_by(dims.channels));
        }
    }
}
