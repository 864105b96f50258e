//! Attributes of a node. One that is not known, or has a value that is not read, is refused by name.
use super::{ImportError, Source};
use crate::proto::{AttributeProto, TensorProto};

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

    /// A switch: 0 or 1.
    pub(crate) fn switch(self, name: &str, default: bool) -> Result<bool, ImportError> {
        match self.int(name, default.into())? {
            0 => Ok(false),
            1 => Ok(true),
            got => Err(self.refuse(name, &got, &"0 or 1")),
        }
    }

    /// A finite number.
    pub(crate) fn float(self, name: &str, default: f32) -> Result<f32, ImportError> {
        let got = self.get(name).map_or(Some(default), |attribute| attribute.f);
        got.filter(|v| v.is_finite()).ok_or_else(|| self.refuse(name, &got, &"a finite number"))
    }

    /// Whole numbers, if they are given.
    pub(crate) fn wholes(self, name: &str) -> Option<&'a [i64]> {
        self.get(name).map(|attribute| attribute.ints.as_slice())
    }

    /// Which of these attributes is given, and the array that it stands for.
    pub(crate) fn constant(self) -> Option<TensorProto> {
        let attribute = self.source.node.attribute.first()?;
        let whole = |values: &[i64]| Some(TensorProto::whole("", values));
        match attribute.name.as_str() {
            "value" => attribute.t.clone(),
            "value_int" => Some(TensorProto { dims: vec![], ..whole(&[attribute.i?])? }),
            "value_ints" => whole(&attribute.ints),
            "value_float" => Some(TensorProto::floats("", &[], &[attribute.f?])),
            "value_floats" => Some(TensorProto::floats("", &[attribute.floats.len()], &attribute.floats)),
            _ => None,
        }
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

    /// The share of the new in running statistics, from 0 to 1. Files have that of the old as `momentum`, a decimal fraction that was rounded
    /// to `f32`: seven digits bring it back (0.1, not 0.10000002), and lose nothing that an `f32` near one tells.
    pub(crate) fn momentum(self) -> Result<f64, ImportError> {
        let got = self.get("momentum").map_or(Some(0.9), |attribute| attribute.f);
        let old = got
            .filter(|old| (0.0..=1.0).contains(old))
            .ok_or_else(|| self.refuse("momentum", &got, &"0 to 1"))?;
        Ok(((1.0 - f64::from(old)) * 1e7).round() / 1e7)
    }

    /// A text.
    pub(crate) fn text(self, name: &str, default: &str) -> String {
        let bytes = self.get(name).map(|attribute| attribute.s.clone().unwrap_or_default());
        bytes.map_or_else(|| default.into(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A text, of which only one value is read, the default.
    pub(crate) fn text_is(self, name: &str, only: &str) -> Result<(), ImportError> {
        let Some(attribute) = self.get(name) else { return Ok(()) };
        let got = String::from_utf8_lossy(attribute.s.as_deref().unwrap_or_default());
        if got == only { Ok(()) } else { Err(self.refuse(name, &got, &only)) }
    }

    /// Two numbers, `[rows, columns]`; along time there is one, for columns, and `row` stands for rows.
    fn sizes(
        self,
        name: &str,
        along_time: bool,
        row: usize,
        default: usize,
    ) -> Result<[usize; 2], ImportError> {
        let Some(attribute) = self.get(name) else {
            return Ok([if along_time { row } else { default }, default]);
        };
        let sizes = attribute.ints.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n <= MAX_WINDOW));
        match (along_time, sizes.collect::<Option<Vec<usize>>>().as_deref()) {
            (true, Some(&[columns])) => Ok([row, columns]),
            (false, Some(&[rows, columns])) => Ok([rows, columns]),
            _ => {
                let wanted = if along_time { "one number" } else { "two numbers" };
                Err(self.refuse(name, &attribute.ints, &format!("{wanted} from 0 to {MAX_WINDOW}")))
            }
        }
    }

    /// Positive extents, steps or the like, `[rows, columns]`, all 1 if they are not given.
    pub(crate) fn pair(self, name: &str, along_time: bool) -> Result<[usize; 2], ImportError> {
        let pair = self.sizes(name, along_time, 1, 1)?;
        if pair.contains(&0) { Err(self.refuse(name, &pair, &"numbers above 0")) } else { Ok(pair) }
    }

    /// Whether an attribute is given.
    pub(crate) fn given(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What lies around the input: above, left, below, right; by `pads`, or by `auto_pad` for windows that reach `reach`
    /// far with steps of `stride` over `extent`.
    pub(crate) fn padding(
        self,
        along_time: bool,
        (extent, reach, stride): ([usize; 2], [usize; 2], [usize; 2]),
    ) -> Result<[usize; 4], ImportError> {
        let auto = self.text("auto_pad", "NOTSET");
        let same = |i: usize| {
            let windows = extent[i].div_ceil(stride[i].max(1));
            (windows.saturating_sub(1) * stride[i] + reach[i]).saturating_sub(extent[i])
        };
        let (least, most) = ([0, 1].map(|i| same(i) / 2), [0, 1].map(|i| same(i).div_ceil(2)));
        match auto.as_str() {
            "NOTSET" => self.pads(along_time),
            "VALID" => Ok([0; 4]),
            "SAME_UPPER" => Ok([least[0], least[1], most[0], most[1]]),
            "SAME_LOWER" => Ok([most[0], most[1], least[0], least[1]]),
            _ => Err(self.refuse("auto_pad", &auto, &"NOTSET, VALID, SAME_UPPER or SAME_LOWER")),
        }
    }

    fn pads(self, along_time: bool) -> Result<[usize; 4], ImportError> {
        let Some(attribute) = self.get("pads") else { return Ok([0; 4]) };
        let sides = attribute.ints.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n <= MAX_WINDOW));
        match (along_time, sides.collect::<Option<Vec<usize>>>().as_deref()) {
            (true, Some(&[left, right])) => Ok([0, left, 0, right]),
            (false, Some(&[top, left, bottom, right])) => Ok([top, left, bottom, right]),
            _ => Err(self.refuse("pads", &attribute.ints, &format!("numbers from 0 to {MAX_WINDOW}"))),
        }
    }
}
