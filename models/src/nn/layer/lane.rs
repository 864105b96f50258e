//! What a lane holds while a batch goes through.
use crate::tensor::Aligned;

/// One lane's buffers. A lane is a fixed share of a batch's samples, whatever the number of threads.
#[derive(Debug, Default)]
pub(in crate::nn) struct Lane {
    /// Activations by node; empty while they are not alive.
    pub values: Vec<Aligned>,
    /// Gradients by node; empty while they are not alive.
    pub grads: Vec<Aligned>,
    /// What layers keep, by layer.
    pub own: Vec<Own>,
    /// Memory of values and gradients that are kept, while they are not alive.
    pub kept: Vec<Aligned>,
    /// Memory of the others, while someone works on this lane.
    pub desk: Vec<Aligned>,
    /// Scratch that layers share, and that for sums of gradients, while someone works on this lane.
    pub scratch: Aligned,
    /// See `scratch`.
    pub spare: Aligned,
    /// Samples in it.
    pub samples: usize,
    /// Sum of the losses of the lane's samples.
    pub loss: f64,
}

/// What one layer keeps in a lane.
#[derive(Debug, Default)]
pub(in crate::nn) struct Own {
    /// Winners of poolings, and units that dropout keeps.
    pub bytes: Vec<u8>,
    /// Sums of parameter gradients.
    pub grad: Aligned,
    /// Scratch of this layer alone; starts as zeros.
    pub work: Aligned,
    /// Scratch that all layers share: whatever the last one left in it.
    pub scratch: Aligned,
    /// Sums per channel.
    pub sums: Vec<f64>,
}

/// Extents of [`Own`].
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::nn) struct OwnLen {
    /// Bytes per sample.
    pub bytes: usize,
    /// Floats in all.
    pub grad: usize,
    /// Floats in all.
    pub work: usize,
    /// Floats in all.
    pub scratch: usize,
    /// Doubles in all.
    pub sums: usize,
    /// Floats of packed weights and coefficients, once for all lanes.
    pub packed: usize,
    /// Floats of scratch that [`Layer::gradient`] takes, if more than a batch's gradients of the rows wanted.
    pub applying: usize,
}
