//! Samples as files hold them: integers, channel-first, with or without labels.
use super::{DataError, check_extents};
use crate::tensor::Shape;

/// Numbers as a file holds them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Elements {
    /// Pixels.
    U8(Vec<u8>),
    /// Sensor readings.
    I16(Vec<i16>),
}

impl Elements {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::I16(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those at `indices`, in that order.
    pub(super) fn gather(&self, indices: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::U8(values) => Self::U8(indices.map(|i| values[i]).collect()),
            Self::I16(values) => Self::I16(indices.map(|i| values[i]).collect()),
        }
    }
}

/// Samples without labels, all of one size, channel-first.
#[derive(Clone, Eq, PartialEq)]
pub struct Inputs {
    input: [usize; 3],
    elements: Elements,
}

impl std::fmt::Debug for Inputs {
    /// Never prints the values: they are private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Inputs({} of {:?})", self.len(), self.input)
    }
}

impl Inputs {
    /// Takes channel-first `elements` as samples of `input` (channels, height, width).
    ///
    /// # Errors
    /// [`DataError::Extents`]; [`DataError::Size`] if they are no whole number of samples.
    pub fn new(input: [usize; 3], elements: Elements) -> Result<Self, DataError> {
        let width: usize = check_extents(input)?.iter().product();
        if !elements.len().is_multiple_of(width) {
            let expected = (elements.len().div_ceil(width) * width) as u128;
            return Err(DataError::Size { extents: Shape::new(input), expected, got: elements.len() });
        }
        Ok(Self { input, elements })
    }

    /// Channels, height and width of each.
    pub fn input(&self) -> [usize; 3] {
        self.input
    }

    /// Values of one sample.
    pub fn width(&self) -> usize {
        self.input.iter().product()
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.elements.len() / self.width()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The raw numbers alone.
    pub fn into_elements(self) -> Elements {
        self.elements
    }

    /// The raw numbers of all samples.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// Writes sample `index` as `f32`: pixels as `x / 255` in [0, 1], readings as `x / 32768` in [−1, 1).
    ///
    /// # Panics
    /// If there is no such sample or `out` has another length than [`Self::width`].
    pub fn write(&self, index: usize, out: &mut [f32]) {
        let width = self.width();
        assert_eq!(out.len(), width, "a sample has {width} values");
        let range = index * width..(index + 1) * width;
        match &self.elements {
            Elements::U8(values) => {
                out.iter_mut().zip(&values[range]).for_each(|(to, &x)| *to = f32::from(x) / 255.0);
            }
            Elements::I16(values) => {
                out.iter_mut().zip(&values[range]).for_each(|(to, &x)| *to = f32::from(x) / 32768.0);
            }
        }
    }

    /// All samples as [`Self::write`] gives them, one after the other.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.elements.len()];
        for (index, sample) in values.chunks_exact_mut(self.width()).enumerate() {
            self.write(index, sample);
        }
        values
    }

    /// The samples at `indices`, in that order.
    ///
    /// # Panics
    /// If there is no such sample.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let width = self.width();
        let elements = self.elements.gather(indices.iter().flat_map(|i| i * width..(i + 1) * width));
        Self { input: self.input, elements }
    }

    /// These samples and then those.
    ///
    /// # Errors
    /// [`DataError::Mixed`] if size or kind differ.
    pub fn chain(mut self, other: Self) -> Result<Self, DataError> {
        let mixed = DataError::Mixed { first: Shape::new(self.input), other: Shape::new(other.input) };
        if self.input != other.input {
            return Err(mixed);
        }
        match (&mut self.elements, other.elements) {
            (Elements::U8(all), Elements::U8(more)) => all.extend(more),
            (Elements::I16(all), Elements::I16(more)) => all.extend(more),
            _ => return Err(mixed),
        }
        Ok(self)
    }

    /// Refuses samples of another size than the model's.
    ///
    /// # Errors
    /// [`DataError::Input`].
    pub fn check_input(&self, expected: [usize; 3]) -> Result<(), DataError> {
        match self.input == expected {
            true => Ok(()),
            false => Err(DataError::Input { expected: Shape::new(expected), got: Shape::new(self.input) }),
        }
    }
}

/// Samples with their classes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Samples {
    inputs: Inputs,
    labels: Vec<u16>,
}

impl Samples {
    /// Pairs samples with labels.
    ///
    /// # Errors
    /// [`DataError::Unpaired`].
    pub fn new(inputs: Inputs, labels: Vec<u16>) -> Result<Self, DataError> {
        match inputs.len() == labels.len() {
            true => Ok(Self { inputs, labels }),
            false => Err(DataError::Unpaired { samples: inputs.len(), labels: labels.len() }),
        }
    }

    /// The samples and their classes.
    pub fn into_parts(self) -> (Inputs, Vec<u16>) {
        (self.inputs, self.labels)
    }

    /// The samples.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The class of each.
    pub fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Samples per class, for classes `0..classes`.
    pub fn counts(&self, classes: usize) -> Vec<u32> {
        let mut counts = vec![0; classes];
        for &label in &self.labels {
            if let Some(count) = counts.get_mut(usize::from(label)) {
                *count += 1;
            }
        }
        counts
    }

    /// The samples at `indices`, in that order.
    ///
    /// # Panics
    /// If there is no such sample.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            inputs: self.inputs.select(indices),
            labels: indices.iter().map(|&i| self.labels[i]).collect(),
        }
    }

    /// These samples and then those.
    ///
    /// # Errors
    /// [`DataError::Mixed`].
    pub fn chain(self, other: Self) -> Result<Self, DataError> {
        let Self { inputs, mut labels } = self;
        labels.extend(other.labels);
        Ok(Self { inputs: inputs.chain(other.inputs)?, labels })
    }

    /// Refuses no sample at all, another size than the model's, and labels that it doesn't know.
    ///
    /// # Errors
    /// [`DataError::Empty`], [`DataError::Input`], [`DataError::UnknownLabel`].
    pub fn check(&self, input: [usize; 3], names: &[String]) -> Result<(), DataError> {
        if self.is_empty() {
            return Err(DataError::Empty);
        }
        self.inputs.check_input(input)?;
        match self.labels.iter().position(|&label| usize::from(label) >= names.len()) {
            None => Ok(()),
            Some(sample) => Err(DataError::UnknownLabel {
                sample,
                label: self.labels[sample],
                last: names.len().saturating_sub(1),
                names: names.join(", "),
            }),
        }
    }
}
