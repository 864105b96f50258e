//! The order of a flat vector's numbers inside the engine, and how weights follow it.
use crate::nn::layer::Piece;
use std::ops::Range;

/// A linear layer whose inputs lie in another order than its weights count them.
#[derive(Clone, Debug)]
pub(super) struct Reordered {
    weight: Range<usize>,
    /// For each input as it lies: its number in the weights.
    natural: Vec<u32>,
}

impl Reordered {
    /// The reordering for a layer that reads these pieces, if it isn't trivial.
    pub(super) fn of(weight: Range<usize>, pieces: &[Piece]) -> Option<Self> {
        let mut natural = Vec::new();
        let mut first = 0;
        for piece in pieces {
            for (pixel, channel) in (0..piece.pixels).flat_map(|p| (0..piece.channels).map(move |c| (p, c))) {
                natural.push((first + channel * piece.pixels + pixel) as u32);
            }
            first += piece.pixels * piece.channels;
        }
        let trivial = (0u32..).zip(&natural).all(|(i, &n)| i == n);
        (!trivial).then_some(Self { weight, natural })
    }

    /// Puts this layer's weights into the engine's order.
    pub(super) fn to_engine(&self, values: &mut [f32]) {
        self.each_row(values, |row, copy| {
            self.natural.iter().zip(row).for_each(|(&n, w)| *w = copy[n as usize]);
        });
    }

    /// Puts this layer's weights back into their own order.
    pub(super) fn to_natural(&self, values: &mut [f32]) {
        self.each_row(values, |row, copy| {
            self.natural.iter().zip(copy).for_each(|(&n, w)| row[n as usize] = *w);
        });
    }

    fn each_row(&self, values: &mut [f32], f: impl Fn(&mut [f32], &[f32])) {
        let mut copy = vec![0.0; self.natural.len()];
        for row in values[self.weight.clone()].chunks_exact_mut(self.natural.len()) {
            copy.copy_from_slice(row);
            f(row, &copy);
        }
    }
}
