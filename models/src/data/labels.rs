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
