//! Floats that start at a cache line: a vector register then never reads from two, which costs some percent of a training step.
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector register.
const LINE: usize = 64;

/// Floats by which an allocation is longer.
const SLACK: usize = LINE / size_of::<f32>();

/// Where `len` of these floats start. An allocator is free not to say where a line is; then it is the first.
fn line(floats: &[f32], len: usize) -> usize {
    let start = floats.as_ptr().align_offset(LINE);
    if start.saturating_add(len) <= floats.len() { start } else { 0 }
}

/// A slice of floats on the heap that starts at a cache line.
#[derive(Debug, Default)]
pub struct Aligned {
    floats: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let floats = vec![0.0; len + SLACK];
        Self { start: line(&floats, len), floats, len }
    }

    /// The same floats in the same memory.
    pub fn into_vec(self) -> Vec<f32> {
        let Self { mut floats, start, len } = self;
        floats.copy_within(start..start + len, 0);
        floats.truncate(len);
        floats
    }

    /// Makes it `len` long: zeros if that is a change, else what it held.
    pub fn fit(&mut self, len: usize) {
        if self.len != len {
            *self = Self::zeros(len);
        }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.floats[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.start..self.start + self.len]
    }
}

impl From<Vec<f32>> for Aligned {
    /// Keeps the memory if it can.
    fn from(mut floats: Vec<f32>) -> Self {
        let len = floats.len();
        floats.reserve_exact(SLACK);
        floats.resize(len + SLACK, 0.0);
        let start = line(&floats, len);
        floats.copy_within(..len, start);
        Self { floats, start, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_a_line_and_holds_what_a_vector_held() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let floats: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let mut buffer = Aligned::from(floats.clone());
            assert_eq!(&buffer[..], floats);
            assert_eq!(&buffer.clone()[..], floats);
            assert_eq!(buffer.clone().into_vec(), floats);
            assert!(buffer.as_ptr().addr().is_multiple_of(LINE), "{len} floats at {:p}", buffer.as_ptr());
            buffer.fit(len);
            assert_eq!(&buffer[..], floats);
            buffer.fit(len + 1);
            assert!(buffer.len() == len + 1 && buffer.iter().all(|x| *x == 0.0));
        }
    }
}
