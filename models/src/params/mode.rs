//! Update modes: how much of a model local training changes.
use super::{Mask, ModelSpec, Part, Role};
use std::num::NonZeroUsize;

/// How much of a model local training changes. An update covers the backbone's share of it.
///
/// ```
/// use models::params::UpdateMode;
/// assert_eq!("last:2".parse::<UpdateMode>().unwrap().to_string(), "last:2");
/// assert!("last:0".parse::<UpdateMode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UpdateMode {
    /// Everything trainable.
    #[default]
    Full,
    /// The last layers that have parameters, so many of them, the head included.
    Last(NonZeroUsize),
    /// The head alone: nothing is uploaded.
    Head,
    /// The biases of all layers.
    Bias,
}

/// A text that names no update mode.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown update mode {0:?}: expected full, last:K (K from 1), head or bias")]
pub struct UnknownMode(pub String);

impl std::str::FromStr for UpdateMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let last = || text.strip_prefix("last:").and_then(|k| k.parse().ok()).map(Self::Last);
        match text {
            "full" => Ok(Self::Full),
            "head" => Ok(Self::Head),
            "bias" => Ok(Self::Bias),
            _ => last().ok_or_else(|| UnknownMode(text.to_owned())),
        }
    }
}

impl std::fmt::Display for UpdateMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Last(layers) => write!(f, "last:{layers}"),
            Self::Head => f.write_str("head"),
            Self::Bias => f.write_str("bias"),
        }
    }
}

impl UpdateMode {
    /// The entries that change.
    pub fn mask(self, spec: &ModelSpec) -> Mask {
        match self {
            Self::Full => Mask::all(spec),
            Self::Last(layers) => last(spec, layers.get()),
            Self::Head => Mask::part(spec, Part::Head),
            Self::Bias => {
                Mask::of(spec, |e| e.role == Role::Trainable && e.name.rsplit('.').next() == Some("bias"))
            }
        }
    }

    /// The entries that an update covers: what changes of the backbone.
    pub fn covers(self, spec: &ModelSpec) -> Mask {
        let mask = self.mask(spec);
        let covered = spec.entries().iter().enumerate().map(|(i, e)| mask.has(i) && e.part == Part::Backbone);
        Mask(covered.collect())
    }
}

/// The last layers that have something to train.
fn last(spec: &ModelSpec, layers: usize) -> Mask {
    let layer = |name: &str| name.rsplit_once('.').map_or(name, |(layer, _)| layer).to_owned();
    let mut names: Vec<String> =
        spec.entries().iter().filter(|e| e.role == Role::Trainable).map(|e| layer(&e.name)).collect();
    names.dedup();
    let chosen = names.split_off(names.len().saturating_sub(layers));
    Mask::of(spec, |e| e.role == Role::Trainable && chosen.contains(&layer(&e.name)))
}
