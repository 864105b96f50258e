//! Looking for private numbers in bytes: in any form in which a program of ours could have written them.
use crate::hashed;
use models::fed::erased::{MethodVisitor, with_method};
use models::fed::{Extent, Method};
use models::params::ModelSpec;
use models::wire::{self, Codec};
use serde_json::Value;
use std::collections::HashSet;

/// Every tensor and lone number in a board's private state.
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// Rows of numbers, with where they stand.
    pub tensors: Vec<(String, Vec<f32>)>,
}

/// A board's state of the method called `name`, with a sentinel in the place of every number, and what was planted.
///
/// # Panics
/// If the bytes are no state of that method.
pub fn plant(name: &str, state: &[u8]) -> (Vec<u8>, Private) {
    with_method(name, Rewrite { state, planting: true }).expect("a method")
}

/// Every number in a board's state.
///
/// # Panics
/// If the bytes are no state of that method.
pub fn read(name: &str, state: &[u8]) -> Private {
    with_method(name, Rewrite { state, planting: false }).expect("a method").1
}

struct Rewrite<'a> {
    state: &'a [u8],
    planting: bool,
}

impl MethodVisitor for Rewrite<'_> {
    type Out = (Vec<u8>, Private);

    /// By way of JSON, which says what a number is and what only counts.
    fn visit<M: Method>(self) -> Self::Out {
        let state: M::Client = postcard::from_bytes(self.state).expect("a state of this method");
        let mut tree = serde_json::to_value(&state).expect("a state is a tree");
        let mut found = Private::default();
        walk(&mut tree, "state", self.planting, &mut found);
        let state: M::Client = serde_json::from_value(tree).expect("the same tree with other numbers");
        (postcard::to_stdvec(&state).expect("a state has bytes"), found)
    }
}

fn walk(tree: &mut Value, at: &str, planting: bool, found: &mut Private) {
    match tree {
        // Values with their specification: the specification is no secret.
        Value::Array(items) if items.first().is_some_and(|card| card.get("arch").is_some()) => {
            walk(&mut items[2], at, planting, found);
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_f64) => {
            if planting {
                let stream = 7000 + found.tensors.len() as u64;
                let sentinel = |i: usize| f64::from((hashed::symmetric(stream, i as u64) * 0.05) as f32);
                items.iter_mut().enumerate().for_each(|(i, item)| *item = sentinel(i).into());
            }
            let values = items.iter().filter_map(Value::as_f64).map(|v| v as f32).collect();
            found.tensors.push((at.into(), values));
        }
        Value::Array(items) => {
            items
                .iter_mut()
                .enumerate()
                .for_each(|(i, item)| walk(item, &format!("{at}[{i}]"), planting, found));
        }
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, field)| walk(field, &format!("{at}.{name}"), planting, found));
        }
        Value::Number(number) if number.is_f64() => {
            let value = number.as_f64().unwrap_or_default() as f32;
            let sentinel = 0.4 + hashed::symmetric(6999, found.tensors.len() as u64) as f32 * 0.05;
            let value = if planting { sentinel } else { value };
            *tree = f64::from(value).into();
            found.tensors.push((at.into(), vec![value]));
        }
        _ => {}
    }
}

/// Everything that a board said, ready to be searched.
#[derive(Debug)]
pub struct Record {
    bytes: Vec<u8>,
    windows: HashSet<[u8; 8]>,
}

impl Record {
    /// Makes `bytes` searchable.
    pub fn new(bytes: Vec<u8>) -> Self {
        let windows = bytes.array_windows().copied().collect();
        Self { bytes, windows }
    }

    fn holds(&self, needle: &[u8]) -> bool {
        match needle.first_chunk::<8>() {
            Some(start) if !self.windows.contains(start) => false,
            _ => self.bytes.windows(needle.len()).any(|window| window == needle),
        }
    }

    /// In which form the record holds a part of this tensor, if it does. Two neighbours are enough as `f32`, four as `bf16`,
    /// one as text; as `int8-row` the beginning of a row. A lone number is looked for alone. Numbers that are rounder than
    /// any learned one could be anything and are not looked for.
    pub fn leaks(&self, tensor: &[f32], spec: &ModelSpec) -> Option<&'static str> {
        let crooked = |v: &f32| v.abs() > 1e-6 && v.fract() != 0.0 && v.to_bits() & 0xfff != 0;
        let any = |width: usize, form: &dyn Fn(&f32) -> Vec<u8>| {
            let mut windows = tensor.windows(width).filter(|w| w.iter().all(crooked));
            windows.any(|w| self.holds(&w.iter().flat_map(form).collect::<Vec<u8>>()))
        };
        let f32s = |v: &f32| v.to_le_bytes().to_vec();
        let bf16s = |v: &f32| {
            [(v.to_bits() >> 16) as u16, ((v.to_bits() + 0x8000) >> 16) as u16].map(u16::to_le_bytes)
        };
        let (cut, rounded) = (|v: &f32| bf16s(v)[0].to_vec(), |v: &f32| bf16s(v)[1].to_vec());
        let text =
            |v: &f32| Some(v.to_string()).filter(|t| t.len() >= 8 && self.holds(t.as_bytes())).is_some();
        match () {
            () if any(2.min(tensor.len()), &f32s) => Some("f32"),
            () if any(4, &cut) || any(4, &rounded) => Some("bf16"),
            () if tensor.iter().any(text) => Some("text"),
            () if self.holds_row(tensor, spec) => Some("int8-row"),
            () => None,
        }
    }

    fn holds_row(&self, tensor: &[f32], spec: &ModelSpec) -> bool {
        let extents = [Extent::Head, Extent::Backbone, Extent::Model];
        let Some(extent) = extents.into_iter().find(|e| e.len(spec) == tensor.len()) else { return false };
        let coded = wire::encode(Codec::Int8Row, spec, extent, tensor);
        coded.len() >= 16 && self.holds(&coded[..16])
    }

    /// Which of these tensors it holds, and in which form.
    pub fn found(&self, private: &Private, spec: &ModelSpec) -> Vec<String> {
        let told = |(at, tensor): &(String, Vec<f32>)| Some(format!("{at} as {}", self.leaks(tensor, spec)?));
        private.tensors.iter().filter_map(told).collect()
    }

    /// Whether these numbers stand in it one after the other, in any width of integer or as `f32`.
    pub fn counts(&self, numbers: &[u32]) -> bool {
        let forms: [Vec<u8>; 4] = [
            numbers.iter().map(|&n| n as u8).collect(),
            numbers.iter().flat_map(|&n| (n as u16).to_le_bytes()).collect(),
            numbers.iter().flat_map(|&n| n.to_le_bytes()).collect(),
            numbers.iter().flat_map(|&n| (n as f32).to_le_bytes()).collect(),
        ];
        forms.iter().any(|form| self.holds(form))
    }
}
