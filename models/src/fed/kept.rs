//! Values as the side that owns them keeps them on its own disk.
use crate::params::{Entry, EntryDecl, ModelCard, ModelSpec, Scope, Values};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// Values that a state remembers. [`Values`] has no form in bytes; a state wraps it in this, and no
/// [`Uplink`](super::Uplink) can hold one.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<S: Scope>(pub Values<S>);

impl<S: Scope> Deref for Kept<S> {
    type Target = Values<S>;
    fn deref(&self) -> &Values<S> {
        &self.0
    }
}

impl<S: Scope> From<Values<S>> for Kept<S> {
    fn from(values: Values<S>) -> Self {
        Self(values)
    }
}

impl<S: Scope> Serialize for Kept<S> {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        let spec = self.0.spec();
        (spec.card(), spec.entries(), self.0.values()).serialize(to)
    }
}

impl<'de, S: Scope> Deserialize<'de> for Kept<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (card, entries, values) = <(ModelCard, Vec<Entry>, Vec<f32>)>::deserialize(from)?;
        let declare = |e: Entry| EntryDecl { name: e.name, shape: e.shape, part: e.part, role: e.role };
        let spec =
            ModelSpec::new(card, entries.into_iter().map(declare).collect()).map_err(D::Error::custom)?;
        Values::new(Arc::new(spec), values).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::arch;
    use crate::params::{Params, Preprocessing};

    #[test]
    fn a_backbone_is_kept_without_the_head_that_lies_behind_it() {
        const SECRET: f32 = 12_345.678;
        let card = ModelCard {
            arch: "mlp".into(),
            input: [1, 2, 2],
            labels: vec!["a".into(), "b".into()],
            statistics: 0,
            preprocessing: Preprocessing::none(1),
        };
        let (_, spec) = arch::build(&card).unwrap();
        let values = (0..spec.len()).map(|i| if i < spec.backbone_len() { 1.0 } else { SECRET }).collect();
        let model = Params::new(spec, values).unwrap();
        let holds = |bytes: &[u8]| bytes.windows(4).any(|b| b == SECRET.to_le_bytes());
        let bytes = postcard::to_stdvec(&Kept(model.backbone())).unwrap();
        assert!(holds(&postcard::to_stdvec(&Kept(model.clone())).unwrap()) && !holds(&bytes));
        assert_eq!(postcard::from_bytes::<Kept<_>>(&bytes).unwrap(), Kept(model.backbone()));
    }
}
