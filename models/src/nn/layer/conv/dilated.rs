//! Convolution whose window steps over pixels: the same as one with a larger window that has zeros in between.
use super::{At, Direct, Product};
use crate::nn::graph::{Conv2d, Dims};
use crate::tensor::kernel::Isa;
use std::ops::Range;

/// The same convolution with its zeros written out.
pub(super) fn spread(conv: Conv2d) -> Conv2d {
    Conv2d { kernel: conv.reach().expect("the builder has checked the shapes"), dilation: [1, 1], ..conv }
}

/// A convolution with zeros in its window.
#[derive(Debug)]
pub(super) struct Dilated {
    inner: Direct,
    /// For each weight, its place among those of the larger window.
    places: Vec<u32>,
    /// Weights of the larger window.
    spread: usize,
}

impl Dilated {
    pub(super) fn new(conv: Conv2d, input: Dims, inner: Direct) -> Self {
        let ([rows, columns], [height, width]) = (conv.kernel, spread(conv).kernel);
        let planes = conv.out * (input.channels / conv.groups);
        let mut places = Vec::with_capacity(planes * rows * columns);
        for (plane, u) in (0..planes).flat_map(|plane| (0..rows).map(move |u| (plane, u))) {
            let row = (plane * height + u * conv.dilation[0]) * width;
            places.extend((0..columns).map(|v| (row + v * conv.dilation[1]) as u32));
        }
        Self { inner, places, spread: planes * height * width }
    }
}

impl Product for Dilated {
    fn packed(&self, isa: Isa) -> usize {
        self.inner.packed(isa)
    }

    fn packing(&self) -> usize {
        self.spread
    }

    /// What lies between the places stays zero.
    fn pack(&self, isa: Isa, w: &[f32], packed: &mut [f32], spread: &mut [f32]) {
        self.places.iter().zip(w).for_each(|(&place, w)| spread[place as usize] = *w);
        self.inner.pack(isa, spread, packed, &mut []);
    }

    fn work(&self) -> usize {
        self.inner.work()
    }

    fn sums(&self) -> usize {
        self.inner.sums()
    }

    fn band(&self) -> usize {
        self.inner.band()
    }

    fn rows(
        &self,
        at: At<'_>,
        rows: Range<usize>,
        x: &[f32],
        work: &mut [f32],
        out: &mut [f32],
        pitch: usize,
    ) {
        self.inner.rows(at, rows, x, work, out, pitch);
    }

    fn weight_grad(&self, isa: Isa, x: &[f32], dy: &[f32], work: &mut [f32], sums: &mut [f32]) {
        self.inner.weight_grad(isa, x, dy, work, sums);
    }

    fn input_grad(&self, at: At<'_>, dy: &[f32], dx: &mut [f32], work: &mut [f32]) {
        self.inner.input_grad(at, dy, dx, work);
    }

    fn unpack(&self, sums: &[f32], out: &mut [f32], spread: &mut [f32]) {
        spread.fill(0.0);
        self.inner.unpack(sums, spread, &mut []);
        out.iter_mut().zip(&self.places).for_each(|(out, &place)| *out += spread[place as usize]);
    }
}
