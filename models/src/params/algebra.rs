//! The algebra methods speak: differences, mixtures, and the one accumulator behind every average.
use super::{Delta, Scope, Values};
use std::marker::PhantomData;
use std::sync::Arc;

impl<S: Scope> Values<S> {
    /// `self − base`: what training changed.
    #[must_use]
    pub fn minus(&self, base: &Self) -> Delta<S> {
        let values = self.values().iter().zip(base.values()).map(|(a, b)| a - b).collect();
        Delta(Self::of(Arc::clone(&self.spec), values))
    }

    /// `self + scale · delta`; at scale 1 exactly the sum.
    #[must_use]
    pub fn plus(&self, delta: &Delta<S>, scale: f32) -> Self {
        let values = self.values().iter().zip(delta.values()).map(|(a, d)| a + scale * d).collect();
        Self::of(Arc::clone(&self.spec), values)
    }

    /// `g + (1−a)·(m−g)` with `g = self`: at a = 1 exactly `self`. Reductions between methods rest on this form.
    ///
    /// ```
    /// # use models::params::*;
    /// # use std::sync::Arc;
    /// # let card = ModelCard { arch: "x".into(), input: [1, 1, 1], labels: vec!["a".into()], statistics: 0, preprocessing: Preprocessing::none(1) };
    /// # let entry = EntryDecl { name: "w".into(), shape: models::tensor::Shape::new([2]), part: Part::Backbone, role: Role::Trainable };
    /// # let spec = Arc::new(ModelSpec::new(card, vec![entry]).unwrap());
    /// let g = Params::new(spec.clone(), vec![1.0, 3.0]).unwrap();
    /// let m = Params::new(spec, vec![5.0, 7.0]).unwrap();
    /// assert_eq!(g.mixed_with(&m, 0.75).values(), &[2.0, 4.0]);
    /// assert_eq!(g.mixed_with(&m, 1.0).values(), g.values());
    /// ```
    #[must_use]
    pub fn mixed_with(&self, other: &Self, own_share: f32) -> Self {
        let values =
            self.values().iter().zip(other.values()).map(|(g, m)| g + (1.0 - own_share) * (m - g)).collect();
        Self::of(Arc::clone(&self.spec), values)
    }

    /// Euclidean distance, accumulated in `f64`.
    pub fn distance(&self, other: &Self) -> f64 {
        let sum: f64 =
            self.values().iter().zip(other.values()).map(|(a, b)| f64::from(a - b) * f64::from(a - b)).sum();
        libm::sqrt(sum)
    }
}

/// The weight of one reply in a sum: a non-negative real in units of 2⁻²⁰, so that sums of weights are exact.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Weight(u64);

impl Weight {
    const ONE: f64 = 1_048_576.0;

    /// A whole number of samples.
    pub fn samples(n: u32) -> Self {
        Self(u64::from(n) << 20)
    }

    /// `share` of a number of samples (π·n), rounded to 2⁻²⁰; at share 1 exactly [`Weight::samples`].
    pub fn share(share: f32, n: u32) -> Self {
        Self((f64::from(share.clamp(0.0, 1.0)) * f64::from(n) * Self::ONE).round() as u64)
    }

    /// Whether nothing is left after rounding.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// A weighted mean in fixed point: bit-identical for any order, thread count or tree of folding.
///
/// Each value is taken in units of 2⁻³⁶ and multiplied by its integer weight into 128 bits; one division at the end.
/// The caps below keep 2¹⁶ replies far from overflow.
#[derive(Clone, Debug)]
pub struct Accumulator<S: Scope> {
    sums: Vec<i128>,
    weight: u128,
    scope: PhantomData<S>,
}

impl<S: Scope> Accumulator<S> {
    const UNIT: f64 = 68_719_476_736.0; // 2^36

    /// An empty sum over `len` values.
    pub fn new(len: usize) -> Self {
        Self { sums: vec![0; len], weight: 0, scope: PhantomData }
    }

    /// Folds one delta in.
    pub fn add(&mut self, delta: &Delta<S>, weight: Weight) {
        self.weight += u128::from(weight.0);
        let factor = i128::from(weight.0);
        for (sum, value) in self.sums.iter_mut().zip(delta.values()) {
            *sum += (f64::from(*value) * Self::UNIT).round() as i64 as i128 * factor;
        }
    }

    /// The mean as a delta, or nothing if no weight came in.
    pub fn mean(&self, like: &Values<S>) -> Option<Delta<S>> {
        if self.weight == 0 {
            return None;
        }
        let scale = 1.0 / (self.weight as f64 * Self::UNIT);
        let values = self.sums.iter().map(|&s| (s as f64 * scale) as f32).collect();
        Some(Delta(Values::of(Arc::clone(&like.spec), values)))
    }
}
