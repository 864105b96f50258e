//! Training data as the statistics see them.
use crate::nn::Trainer;

/// Samples scaled to [0, 1], with their classes. Stays on the board.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Values of one sample.
    pub width: usize,
    /// Number of classes.
    pub classes: usize,
    /// One row per sample.
    pub values: Vec<f32>,
    /// Their classes.
    pub labels: Vec<u16>,
}

impl Samples {
    /// A trainer's training data.
    pub fn of(trainer: &dyn Trainer) -> Self {
        let mut all = Self { classes: trainer.spec().classes(), ..Self::default() };
        trainer.visit(&mut |values, label| {
            all.width = values.len();
            all.values.extend_from_slice(values);
            all.labels.push(label);
        });
        all
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// One sample.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    /// These samples, in this order.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let values = indices.iter().flat_map(|&i| self.row(i)).copied().collect();
        let labels = indices.iter().map(|&i| self.labels[i]).collect();
        Self { width: self.width, classes: self.classes, values, labels }
    }
}
