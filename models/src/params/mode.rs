//! Update modes: how much of a model local training changes.
use super::{Entry, Mask, ModelSpec, Part, Role};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU16;

/// How much of a model local training changes. What an update covers follows from it.
///
/// ```
/// use models::params::UpdateMode;
/// assert_eq!("last:2".parse::<UpdateMode>().unwrap().to_string(), "last:2");
/// assert!("last:0".parse::<UpdateMode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum UpdateMode {
    /// Everything trainable.
    #[default]
    Full,
    /// The last layers that have parameters, so many of them, the head included.
    Last(NonZeroU16),
    /// The head alone: nothing is uploaded.
    Head,
    /// The biases of all layers.
    Bias,
}

/// A text that names no update mode.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown update mode {0:?}: expected full, last:K (K from 1 to 65535), head or bias")]
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
    /// The entries that change by gradient.
    pub fn mask(self, spec: &ModelSpec) -> Mask {
        match self {
            Self::Full => Mask::all(spec),
            Self::Last(layers) => last(spec, layers.get().into()),
            Self::Head => Mask::part(spec, Part::Head),
            Self::Bias => {
                Mask::of(spec, |e| e.role == Role::Trainable && e.name.rsplit('.').next() == Some("bias"))
            }
        }
    }

    /// The entries of a whole model that an update of this mode covers. `full` covers all there are and `head` none. Else what is not
    /// trained by gradient, a running statistic or a counter, is covered where something of its layer is trained: only there it moves.
    pub fn covers(self, spec: &ModelSpec) -> Mask {
        match self {
            Self::Full => Mask::of(spec, |_| true),
            Self::Head => Mask::of(spec, |_| false),
            Self::Last(_) | Self::Bias => self.mask(spec).with_statistics(spec),
        }
    }

    /// What a board with this ceiling trains where a run wishes for `wished`: that, if the ceiling holds all of it, and else the ceiling.
    ///
    /// ```
    /// # use models::{nn::{arch, bench::card}, params::UpdateMode};
    /// let (_, spec) = arch::build(&card("cc28"))?;
    /// let meet = |own: &str, wished: &str| own.parse::<UpdateMode>().unwrap().at_most(wished.parse().unwrap(), &spec).to_string();
    /// assert_eq!([meet("full", "last:2"), meet("last:2", "full"), meet("last:3", "last:2")], ["last:2"; 3]);
    /// assert_eq!([meet("head", "bias"), meet("bias", "last:2")], ["head", "bias"]);
    /// # Ok::<(), models::params::SpecError>(())
    /// ```
    #[must_use]
    pub fn at_most(self, wished: Self, spec: &ModelSpec) -> Self {
        if wished.mask(spec).is_within(&self.mask(spec)) { wished } else { self }
    }

    /// Whether the model has as many layers as this speaks of.
    pub fn suits(self, spec: &ModelSpec) -> bool {
        !matches!(self, Self::Last(k) if usize::from(k.get()) > layers(spec).len())
    }

    /// The same for this model: as many layers as it has, or more, are all of it.
    #[must_use]
    pub fn of(self, spec: &ModelSpec) -> Self {
        match self {
            Self::Last(k) if usize::from(k.get()) >= layers(spec).len() => Self::Full,
            other => other,
        }
    }
}

/// The form of a mode in files that people write: its text.
pub mod text {
    use super::UpdateMode;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes `last:2`.
    ///
    /// # Errors
    /// Whatever the format gives.
    pub fn serialize<S: Serializer>(mode: &UpdateMode, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(mode)
    }

    /// Reads `last:2`.
    ///
    /// # Errors
    /// [`UnknownMode`](super::UnknownMode), in the format's own words.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<UpdateMode, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The layers that have something to train, in order.
fn layers(spec: &ModelSpec) -> Vec<&str> {
    let trained = spec.entries().iter().filter(|e| e.role == Role::Trainable);
    let mut names: Vec<&str> = trained.map(Entry::layer).collect();
    names.dedup();
    names
}

/// What is trained of the last `count` layers.
fn last(spec: &ModelSpec, count: usize) -> Mask {
    let mut names = layers(spec);
    let chosen = names.split_off(names.len().saturating_sub(count));
    Mask::of(spec, |e| e.role == Role::Trainable && chosen.contains(&e.layer()))
}
