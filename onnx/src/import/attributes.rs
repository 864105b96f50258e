//! Attributes of a node. One that is not known, or has a value that is not read, is refused by name.
use super::{ImportError, Source};
use crate::proto::AttributeProto;

/// Largest window, stride or padding.
const MAX_WINDOW: usize = 1 << 10;

/// Attributes of a node, all of them known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'s, 'a> {
    source: &'s Source<'a>,
}

impl<'s, 'a> Attributes<'s, 'a> {
    pub(super) fn new(source: &'s Source<'a>, known: &[&str]) -> Result<Self, ImportError> {
        match source.node.attribute.iter().find(|a| !known.contains(&a.name.as_str())) {
            Some(other) => {
                Err(source.refuse(format!("it has the attribute {}", other.name), "leave that attribute out"))
            }
            None => Ok(Self { source }),
        }
    }

    fn get(self, name: &str) -> Option<&'a AttributeProto> {
        self.source.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    fn refuse(self, name: &str, got: &dyn std::fmt::Debug, only: &dyn std::fmt::Debug) -> ImportError {
        self.source.refuse(format!("{name} is {got:?}"), &format!("only {only:?} is read"))
    }

    /// A whole number.
    pub(crate) fn int(self, name: &str, default: i64) -> Result<i64, ImportError> {
        let Some(attribute) = self.get(name) else { return Ok(default) };
        attribute.i.ok_or_else(|| {
            self.source.refuse(format!("{name} is no whole number"), "export the network again")
        })
    }

    /// A whole number, of which only one value is read.
    pub(crate) fn int_is(self, name: &str, default: i64, only: i64) -> Result<(), ImportError> {
        let got = self.int(name, default)?;
        if got == only { Ok(()) } else { Err(self.refuse(name, &got, &only)) }
    }

    /// A small positive number.
    pub(crate) fn count(self, name: &str, default: i64) -> Result<usize, ImportError> {
        let got = self.int(name, default)?;
        let count = usize::try_from(got).ok().filter(|n| (1..=1 << 16).contains(n));
        count.ok_or_else(|| self.refuse(name, &got, &"1 to 65536"))
    }

    /// A number, of which only one value is read.
    pub(crate) fn float_is(self, name: &str, default: f32, only: f32) -> Result<(), ImportError> {
        let got = self.get(name).map_or(Some(default), |attribute| attribute.f);
        if got == Some(only) { Ok(()) } else { Err(self.refuse(name, &got, &only)) }
    }

    /// `epsilon` of a normalisation: above zero, at most one.
    pub(crate) fn epsilon(self) -> Result<f32, ImportError> {
        let got = self.get("epsilon").map_or(Some(1e-5), |attribute| attribute.f);
        got.filter(|e| *e > 0.0 && *e <= 1.0)
            .ok_or_else(|| self.refuse("epsilon", &got, &"above 0, at most 1"))
    }

    /// A text, of which only one value is read, the default.
    pub(crate) fn text_is(self, name: &str, only: &str) -> Result<(), ImportError> {
        let Some(attribute) = self.get(name) else { return Ok(()) };
        let got = String::from_utf8_lossy(attribute.s.as_deref().unwrap_or_default());
        if got == only { Ok(()) } else { Err(self.refuse(name, &got, &only)) }
    }

    fn sizes<const N: usize>(self, name: &str, default: [usize; N]) -> Result<[usize; N], ImportError> {
        let Some(attribute) = self.get(name) else { return Ok(default) };
        let sizes = attribute.ints.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n <= MAX_WINDOW));
        let sizes =
            sizes.collect::<Option<Vec<usize>>>().and_then(|sizes| <[usize; N]>::try_from(sizes).ok());
        sizes
            .ok_or_else(|| self.refuse(name, &attribute.ints, &format!("{N} numbers from 0 to {MAX_WINDOW}")))
    }

    /// Two positive numbers, `[rows, columns]`.
    pub(crate) fn pair(self, name: &str, default: [usize; 2]) -> Result<[usize; 2], ImportError> {
        let pair = self.sizes(name, default)?;
        if pair.contains(&0) { Err(self.refuse(name, &pair, &"two numbers above 0")) } else { Ok(pair) }
    }

    /// Two numbers, of which only one value is read, the default.
    pub(crate) fn pair_is(self, name: &str, only: [usize; 2]) -> Result<(), ImportError> {
        let got = self.sizes(name, only)?;
        if got == only { Ok(()) } else { Err(self.refuse(name, &got, &only)) }
    }

    /// `pads`, the same before and after: `[rows, columns]`.
    pub(crate) fn padding(self) -> Result<[usize; 2], ImportError> {
        match self.sizes("pads", [0; 4])? {
            [top, left, bottom, right] if top == bottom && left == right => Ok([top, left]),
            uneven => Err(self.refuse("pads", &uneven, &"the same padding on both sides")),
        }
    }
}
