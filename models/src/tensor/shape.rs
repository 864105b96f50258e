//! Shapes and row-major arrays.
use serde::{Deserialize, Serialize};
use std::fmt;

/// Extents of an array, outermost first.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// A shape of these extents.
    pub fn new(extents: impl Into<Vec<usize>>) -> Self {
        Self(extents.into())
    }

    /// The extents.
    pub fn extents(&self) -> &[usize] {
        &self.0
    }

    /// Number of values (1 for rank 0).
    pub fn len(&self) -> usize {
        self.0.iter().product()
    }

    /// Whether an extent is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of extents.
    pub fn rank(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", text.join("×"))
    }
}

/// A row-major `f32` array that owns its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Shape,
    values: Vec<f32>,
}

impl Tensor {
    /// An array of `values` in `shape`.
    ///
    /// # Panics
    /// If the number of values is not the shape's.
    pub fn new(shape: Shape, values: Vec<f32>) -> Self {
        assert_eq!(shape.len(), values.len(), "shape {shape} does not hold {} values", values.len());
        Self { shape, values }
    }

    /// Its extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// A view of all of it.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { extents: self.shape.extents(), values: &self.values }
    }

    /// The values, without the shape.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// A borrowed row-major array.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    extents: &'a [usize],
    values: &'a [f32],
}

impl<'a> TensorView<'a> {
    /// A view of `values` in these extents.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn new(extents: &'a [usize], values: &'a [f32]) -> Self {
        assert_eq!(extents.iter().product::<usize>(), values.len(), "extents {extents:?} do not fit");
        Self { extents, values }
    }

    /// The extents.
    pub fn extents(&self) -> &'a [usize] {
        self.extents
    }

    /// The values, row by row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Outermost extent: the number of samples of a batch.
    pub fn rows(&self) -> usize {
        self.extents.first().copied().unwrap_or(1)
    }

    /// Row `index` of the outermost extent.
    pub fn row(&self, index: usize) -> &'a [f32] {
        let width = self.values.len() / self.rows().max(1);
        &self.values[index * width..(index + 1) * width]
    }
}
