//! Mixing shared parts on the board (FedPrism §4.1): `M_i = Σ_k π_ik C_k`.
use crate::params::{Scope, Values};

/// The mix of some parts; weights sum to one. Written `C_0 + Σ_{k>0} π_k (C_k − C_0)`, so that equal parts give exactly that
/// part, whatever the weights. Nothing for no part.
///
/// ```
/// # use models::params::*;
/// # use std::sync::Arc;
/// # let card = ModelCard { arch: "x".into(), input: [1, 1, 1], labels: vec!["a".into()], statistics: 0, preprocessing: Preprocessing::none(1) };
/// # let entry = EntryDecl { name: "w".into(), shape: models::tensor::Shape::new([2]), part: Part::Backbone, role: Role::Trainable };
/// # let spec = Arc::new(ModelSpec::new(card, vec![entry]).unwrap());
/// let part = |v: [f32; 2]| Params::new(spec.clone(), v.to_vec()).unwrap();
/// let mixed = models::fed::mix::mixed(&[part([1.0, 0.0]), part([5.0, 4.0])], &[0.75, 0.25]).unwrap();
/// assert_eq!(mixed.values(), &[2.0, 1.0]);
/// ```
pub fn mixed<S: Scope>(parts: &[Values<S>], weights: &[f32]) -> Option<Values<S>> {
    let (first, others) = parts.split_first()?;
    let mut out = first.clone();
    for (part, weight) in others.iter().zip(weights.iter().skip(1)) {
        for ((to, from), base) in out.values_mut().iter_mut().zip(part.values()).zip(first.values()) {
            *to += weight * (from - base);
        }
    }
    Some(out)
}
