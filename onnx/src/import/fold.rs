//! What a graph computes from constants and from extents alone: exporters write extents of reshapes and the like out as nodes.
use super::constant::{Constant, Elements};
use super::{ImportError, Reader, Source};

/// Most elements of an array that the graph computes.
const MAX_FOLDED: usize = 1 << 22;

/// What a node computes, if it is a constant.
pub(super) fn fold<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Option<Constant>, ImportError> {
    if !source.standard() {
        return Ok(None);
    }
    match source.op() {
        "Constant" => return stated(source).map(Some),
        "Shape" => return extents(reader, source),
        "CastLike" => return Ok(reader.constant(source, 0).ok().cloned()),
        // One for every sample is no constant: a dropout begins with it.
        "Expand" if reader.counts(source, 1).is_ok_and(|extents| extents.contains(&None)) => return Ok(None),
        _ => {}
    }
    let Some(inputs) = reader.all_constants(source).filter(|inputs| !inputs.is_empty()) else {
        return Ok(None);
    };
    let Some(rule) = RULES.iter().find(|(op, _)| *op == source.op()) else { return Ok(None) };
    let folded = (rule.1)(source, &inputs);
    let unread = || source.refuse("it computes a constant in a way that is not read".into(), REMEDY);
    folded.filter(|c| c.elements.len() <= MAX_FOLDED).map(Some).ok_or_else(unread)
}

const REMEDY: &str = "export the network again with constant folding (`optimize=True`)";

/// A constant of a node.
type Rule = fn(&Source<'_>, &[&Constant]) -> Option<Constant>;

const RULES: [(&str, Rule); 17] = [
    ("Add", |_, i| arithmetic(i, i64::checked_add, |a, b| a + b)),
    ("Cast", cast),
    ("Concat", concat),
    ("ConstantOfShape", |source, i| filled(&value(source)?, i[0])),
    ("Div", |_, i| arithmetic(i, |a, b| (a >= 0 && b > 0).then(|| a / b), |a, b| a / b)),
    ("Expand", |_, i| filled(i[0], i.get(1)?)),
    ("Gather", gather),
    ("Identity", |_, i| Some(i[0].clone())),
    ("Mul", |_, i| arithmetic(i, i64::checked_mul, |a, b| a * b)),
    ("Range", range),
    ("Reshape", reshape),
    ("Slice", slice),
    ("Squeeze", |source, i| squeeze(i[0], &axes(source, i)?)),
    ("Sub", |_, i| arithmetic(i, i64::checked_sub, |a, b| a - b)),
    ("Sqrt", |_, i| floats(i[0], f32::sqrt)),
    ("Transpose", transpose),
    ("Unsqueeze", |source, i| unsqueeze(i[0], &axes(source, i)?)),
];

fn stated(source: &Source<'_>) -> Result<Constant, ImportError> {
    let known = ["value", "value_int", "value_ints", "value_float", "value_floats"];
    let tensor = source.attributes(&known)?.constant();
    let tensor = tensor.ok_or_else(|| source.refuse("it has no value".into(), "repair the file"))?;
    Constant::read(&tensor).map_err(|error| source.refuse(error.to_string(), "export the network again"))
}

/// Extents of a value, the number of samples first, or of a constant.
fn extents<'a>(reader: &Reader<'a>, source: &Source<'a>) -> Result<Option<Constant>, ImportError> {
    let attributes = source.attributes(&["start", "end"])?;
    let (start, end) = (attributes.int("start", 0)?, attributes.int("end", i64::MAX)?);
    let all: Vec<Option<i64>> = match reader.known(source.input(0)?) {
        Some(value) => {
            std::iter::once(None).chain(reader.axes(value).into_iter().map(|e| Some(e as i64))).collect()
        }
        None => reader.constant(source, 0)?.extents.iter().map(|&e| Some(e as i64)).collect(),
    };
    let (start, end) = bounds(all.len(), start, end);
    Ok(Some(Constant::of_counts(all[start..end.max(start)].to_vec(), false)))
}

/// A range that counts from the end where it is negative.
fn bounds(len: usize, start: i64, end: i64) -> (usize, usize) {
    let len = len as i64;
    let at = |place: i64| (if place < 0 { place.saturating_add(len) } else { place }).clamp(0, len) as usize;
    (at(start), at(end))
}

fn value(source: &Source<'_>) -> Option<Constant> {
    let tensor = source.attributes(&["value"]).ok()?.constant()?;
    Constant::read(&tensor).ok()
}

fn axes(source: &Source<'_>, inputs: &[&Constant]) -> Option<Vec<i64>> {
    match inputs.get(1) {
        Some(axes) => axes.wholes(),
        None => Some(source.attributes(&["axes"]).ok()?.wholes("axes").unwrap_or_default().to_vec()),
    }
}

fn cast(source: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let to = source.attributes(&["to", "saturate"]).ok()?.int("to", 0).ok()?;
    let input = inputs[0];
    let elements = match (&input.elements, to) {
        (Elements::Whole(_), 6 | 7 | 9) | (Elements::Float(_), 1 | 11) => input.elements.clone(),
        (Elements::Whole(values), 1 | 11) => {
            Elements::Float(values.iter().map(|v| v.map(|v| v as f32)).collect::<Option<_>>()?)
        }
        (Elements::Float(values), 6 | 7) => {
            Elements::Whole(values.iter().map(|v| Some(v.trunc() as i64)).collect())
        }
        _ => return None,
    };
    Some(Constant { elements, ..input.clone() })
}

/// Vectors of whole numbers one after the other.
fn concat(source: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let axis = source.attributes(&["axis"]).ok()?.int("axis", 0).ok()?;
    let vectors = inputs.iter().all(|c| c.extents.len() == 1);
    (vectors && (axis == 0 || axis == -1)).then_some(())?;
    let parts = inputs.iter().map(|c| c.counts()).collect::<Option<Vec<_>>>()?;
    Some(Constant::of_counts(parts.concat(), false))
}

/// One number, or one axis of extent 1 of an array, again and again; extents that are there already change nothing.
fn filled(of: &Constant, target: &Constant) -> Option<Constant> {
    let target = target.wholes()?;
    let extents = target.iter().map(|&e| usize::try_from(e).ok()).collect::<Option<Vec<_>>>()?;
    let count = extents.iter().try_fold(1_usize, |n, &e| n.checked_mul(e)).filter(|&n| n <= MAX_FOLDED)?;
    let kept = of.elements.len() == count && of.extents.len() >= extents.len();
    let stretched = extents.iter().all(|&e| e == 1) && of.extents.len() >= extents.len();
    if kept || stretched {
        return Some(of.clone());
    }
    let elements = match &of.elements {
        Elements::Float(values) => Elements::Float(vec![*single(values)?; count]),
        Elements::Whole(values) => Elements::Whole(vec![*single(values)?; count]),
    };
    Some(Constant { name: of.name.clone(), extents, elements, filled: true })
}

fn single<T>(values: &[T]) -> Option<&T> {
    match values {
        [only] => Some(only),
        _ => None,
    }
}

fn gather(source: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let axis = source.attributes(&["axis"]).ok()?.int("axis", 0).ok()?;
    let (of, places) = (inputs[0].counts()?, inputs.get(1)?);
    (axis == 0 && inputs[0].extents.len() == 1 && places.extents.len() < 2).then_some(())?;
    let pick = |place: i64| {
        let place = if place < 0 { place.checked_add(of.len() as i64)? } else { place };
        of.get(usize::try_from(place).ok()?).copied()
    };
    let picked = places.wholes()?.into_iter().map(pick).collect::<Option<Vec<_>>>()?;
    Some(Constant::of_counts(picked, places.extents.is_empty()))
}

/// A stretch of a vector of whole numbers, or all rows of an array in reverse: so are the sides of a padding turned round.
fn slice(_: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let number = |which: usize, default: i64| match inputs.get(which) {
        Some(constant) => constant.wholes().as_deref().and_then(single).copied(),
        None => Some(default),
    };
    let (start, end, axis, step) = (number(1, 0)?, number(2, i64::MAX)?, number(3, 0)?, number(4, 1)?);
    let (of, rows) = (inputs[0].counts()?, *inputs[0].extents.first()?);
    match (axis, step, inputs[0].extents.len()) {
        (0, 1, 1) => {
            let (start, end) = bounds(of.len(), start, end);
            Some(Constant::of_counts(of[start..end.max(start)].to_vec(), false))
        }
        (0, -1, _) if start == -1 && end.checked_add(rows as i64).is_none_or(|end| end < 0) => {
            let turned = of.chunks(of.len().checked_div(rows)?.max(1)).rev().flatten().copied().collect();
            Some(Constant { elements: Elements::Whole(turned), ..inputs[0].clone() })
        }
        _ => None,
    }
}

fn range(_: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let number = |which: usize| inputs.get(which)?.wholes().as_deref().and_then(single).copied();
    let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
    (step == 1 && limit.checked_sub(start)? <= 1 << 10).then_some(())?;
    Some(Constant::of_counts((start..limit).map(Some).collect(), false))
}

fn reshape(_: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let (of, target) = (inputs[0], inputs.get(1)?.wholes()?);
    let open = target.iter().filter(|&&e| e == -1).count();
    let known = target
        .iter()
        .filter(|&&e| e != -1)
        .try_fold(1_usize, |n, &e| n.checked_mul(usize::try_from(e).ok()?))?;
    (open < 2).then_some(())?;
    let rest = of.elements.len().checked_div(known).unwrap_or(0);
    of.reshaped(target.iter().map(|&e| if e == -1 { rest } else { e as usize }).collect())
}

fn squeeze(of: &Constant, axes: &[i64]) -> Option<Constant> {
    let gone = places(axes, of.extents.len())?;
    let drops = |(axis, &extent): (usize, &usize)| extent == 1 && (gone.is_empty() || gone.contains(&axis));
    let kept = of.extents.iter().enumerate().filter(|axis| !drops(*axis)).map(|(_, &e)| e).collect();
    of.reshaped(kept)
}

fn unsqueeze(of: &Constant, axes: &[i64]) -> Option<Constant> {
    let new = places(axes, of.extents.len() + axes.len())?;
    let mut old = of.extents.iter().copied();
    let extents = (0..of.extents.len() + axes.len())
        .map(|axis| if new.contains(&axis) { Some(1) } else { old.next() })
        .collect::<Option<Vec<_>>>()?;
    of.reshaped(extents)
}

/// Axes counted from the front.
fn places(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let at = |axis: i64| usize::try_from(if axis < 0 { axis.checked_add(rank as i64)? } else { axis }).ok();
    axes.iter().map(|&axis| at(axis).filter(|&axis| axis < rank)).collect()
}

/// A matrix turned round.
fn transpose(source: &Source<'_>, inputs: &[&Constant]) -> Option<Constant> {
    let (of, perm) = (inputs[0], source.attributes(&["perm"]).ok()?.wholes("perm"));
    let (&[_, columns], None | Some([1, 0])) = (of.extents.as_slice(), perm) else { return None };
    let elements = match &of.elements {
        Elements::Float(values) => Elements::Float(turned(values, columns)),
        Elements::Whole(values) => Elements::Whole(turned(values, columns)),
    };
    Some(Constant { extents: of.extents.iter().rev().copied().collect(), elements, ..of.clone() })
}

fn turned<T: Copy>(values: &[T], columns: usize) -> Vec<T> {
    (0..columns).flat_map(|c| values.iter().skip(c).step_by(columns).copied()).collect()
}

fn floats(of: &Constant, f: fn(f32) -> f32) -> Option<Constant> {
    Some(Constant { elements: Elements::Float(of.floats()?.iter().map(|&v| f(v)).collect()), ..of.clone() })
}

/// Element by element, where both have the same extents or one is a single number.
fn arithmetic(
    inputs: &[&Constant],
    whole: fn(i64, i64) -> Option<i64>,
    float: fn(f32, f32) -> f32,
) -> Option<Constant> {
    let &[a, b] = inputs else { return None };
    let (n, m) = (a.elements.len(), b.elements.len());
    (n == m && a.extents == b.extents || n == 1 || m == 1).then_some(())?;
    let (count, longer) = if n >= m { (n, a) } else { (m, b) };
    let elements = match (&a.elements, &b.elements) {
        (Elements::Whole(x), Elements::Whole(y)) => {
            let both = (0..count).map(|i| whole(x[i % n]?, y[i % m]?).map(Some));
            Elements::Whole(both.collect::<Option<_>>()?)
        }
        (Elements::Float(x), Elements::Float(y)) => {
            Elements::Float((0..count).map(|i| float(x[i % n], y[i % m])).collect())
        }
        _ => return None,
    };
    Some(Constant { name: String::new(), extents: longer.extents.clone(), elements, filled: false })
}
