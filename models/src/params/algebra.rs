//! The algebra methods speak: differences, mixtures, and the one accumulator behind every average.
use super::{Delta, Entry, Mask, ModelSpec, Scope, Values};
use std::marker::PhantomData;
use std::ops::Range;
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
/// Each value is taken in units of 2⁻³⁶ and multiplied by its integer weight into 128 bits; one division at the end. Every entry has
/// a denominator of its own: the weight of those deltas that cover it. The caps below keep 2¹⁶ replies far from overflow.
#[derive(Clone, Debug)]
pub struct Accumulator<S: Scope> {
    spec: Arc<ModelSpec>,
    sums: Vec<i128>,
    /// One for each entry of the model.
    weights: Vec<u128>,
    scope: PhantomData<S>,
}

impl<S: Scope> Accumulator<S> {
    const UNIT: f64 = 68_719_476_736.0; // 2^36

    /// An empty sum over this scope of `spec`.
    pub fn new(spec: &Arc<ModelSpec>) -> Self {
        let (sums, weights) = (vec![0; S::range(spec).len()], vec![0; spec.entries().len()]);
        Self { spec: Arc::clone(spec), sums, weights, scope: PhantomData }
    }

    /// Folds in what one delta covers; its other values are not looked at.
    pub fn add(&mut self, delta: &Delta<S>, weight: Weight, covers: &Mask) {
        let factor = i128::from(weight.0);
        for (index, place) in places::<S>(&self.spec).filter(|(index, _)| covers.has(*index)) {
            self.weights[index] += u128::from(weight.0);
            for (sum, value) in self.sums[place.clone()].iter_mut().zip(&delta.values()[place]) {
                *sum += (f64::from(*value) * Self::UNIT).round() as i64 as i128 * factor;
            }
        }
    }

    /// The mean as a delta, or nothing if no weight came in. Where an entry was covered by nothing the delta is −0, which leaves the bits of
    /// whatever it is added to.
    pub fn mean(&self) -> Option<Delta<S>> {
        if self.weights.iter().all(|w| *w == 0) {
            return None;
        }
        let mut values = vec![-0.0; self.sums.len()];
        for (index, place) in places::<S>(&self.spec).filter(|(index, _)| self.weights[*index] > 0) {
            let scale = 1.0 / (self.weights[index] as f64 * Self::UNIT);
            for (value, sum) in values[place.clone()].iter_mut().zip(&self.sums[place]) {
                *value = (*sum as f64 * scale) as f32;
            }
        }
        Some(Delta(Values::of(Arc::clone(&self.spec), values)))
    }
}

/// The entries of a scope, by their index in the model, with their places in the scope's own buffer.
fn places<S: Scope>(spec: &ModelSpec) -> impl Iterator<Item = (usize, Range<usize>)> {
    let scope = S::range(spec);
    let start = scope.start;
    let inside = move |e: &Entry| e.range.start >= scope.start && e.range.end <= scope.end;
    let all = spec.entries().iter().enumerate().filter(move |(_, e)| inside(e));
    all.map(move |(index, e)| (index, e.range.start - start..e.range.end - start))
}
