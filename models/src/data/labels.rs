//! Class names: one a line, in the order of the model's outputs.
use super::DataError;

/// Most classes a model may have: labels are `u16` and every class costs a column of the head.
pub const MOST_CLASSES: usize = 4096;
/// Longest name, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Parses a labels file. Blank lines at the end are ignored, spaces around a name too.
///
/// ```
/// assert_eq!(models::data::labels::parse(b"cat\ndog\n").unwrap(), ["cat", "dog"]);
/// ```
///
/// # Errors
/// [`DataError::NotText`], [`DataError::ClassName`], [`DataError::ClassCount`].
pub fn parse(bytes: &[u8]) -> Result<Vec<String>, DataError> {
    let mut names: Vec<String> = Vec::new();
    for (index, line) in bytes.trim_ascii_end().split(|&b| b == b'\n').enumerate() {
        let text = str::from_utf8(line).map_err(|_| DataError::NotText { line: index + 1 })?;
        let name = text.trim().trim_start_matches('\u{feff}');
        if index >= MOST_CLASSES {
            return Err(DataError::ClassCount {
                got: bytes.split(|&b| b == b'\n').count(),
                most: MOST_CLASSES,
            });
        }
        check_name(name, &names).map_err(|why| class_name(index, name, why))?;
        names.push(name.to_owned());
    }
    Ok(names)
}

/// The class that a folder of this name holds: the class of exactly this name; or else the only one that reads the same when only
/// letters and digits count and case doesn't, so that `T-shirt/top`, which can't name a folder, is found as `t-shirt_top`; or else,
/// where no class is itself called by a number, the class of this number.
///
/// ```
/// let labels = ["T-shirt/top", "a b", "a-b"].map(String::from);
/// let of = |name| models::data::labels::class_of(name, &labels);
/// assert_eq!((of("t-shirt_top"), of("a-b"), of("1")), (Some(0), Some(2), Some(1)));
/// assert_eq!(of("A_B"), None, "it could mean two of them");
/// ```
pub fn class_of(name: &str, labels: &[String]) -> Option<u16> {
    let exact = labels.iter().position(|label| label == name);
    let found = exact.or_else(|| only_alike(name, labels)).or_else(|| by_number(name, labels));
    found.and_then(|class| u16::try_from(class).ok())
}

fn only_alike(name: &str, labels: &[String]) -> Option<usize> {
    let wanted = plain(name);
    let mut alike = labels.iter().enumerate().filter(|(_, label)| plain(label) == wanted);
    match (alike.next(), alike.next()) {
        (Some((class, _)), None) => Some(class),
        _ => None,
    }
}

fn by_number(name: &str, labels: &[String]) -> Option<usize> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match is_number(name) && !labels.iter().any(|label| is_number(label)) {
        true => name.parse().ok().filter(|&class| class < labels.len()),
        false => None,
    }
}

fn plain(name: &str) -> String {
    name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

fn class_name(index: usize, name: &str, why: &'static str) -> DataError {
    DataError::ClassName { line: index + 1, name: name.chars().take(LONGEST_NAME).collect(), why }
}

/// Refuses what can't be a class name beside those before it.
fn check_name(name: &str, before: &[String]) -> Result<(), &'static str> {
    match name {
        "" => Err("is empty"),
        _ if name.len() > LONGEST_NAME => Err("is longer than 128 bytes"),
        _ if name.chars().any(char::is_control) => Err("holds a control character"),
        _ if before.iter().any(|other| other == name) => Err("stands there twice"),
        _ => Ok(()),
    }
}
