//! Tables for people, JSON and CSV for programs: one set of rows, three forms.
use clap::ValueEnum;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// How to print.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// One JSON array.
    Json,
    /// Comma-separated, with a header.
    Csv,
}

/// A row: named values, in the order of the columns.
pub(super) type Row = Vec<(&'static str, Value)>;

/// Prints rows to standard output.
pub(super) fn print(format: Format, rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Table => table(&mut out, rows)?,
        Format::Json => writeln!(out, "{}", Value::Array(rows.iter().map(object).collect()))?,
        Format::Csv => delimited(rows, &mut out)?,
    }
    out.flush()
}

/// Prints one thing as lines of `name value`, or as one JSON object.
pub(super) fn print_facts(format: Format, facts: &Row) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Table => {
            let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            facts.iter().try_for_each(|(name, value)| writeln!(out, "{name:width$}  {}", plain(value)))?;
        }
        Format::Json => writeln!(out, "{}", object(facts))?,
        Format::Csv => delimited(std::slice::from_ref(facts), &mut out)?,
    }
    out.flush()
}

fn object(row: &Row) -> Value {
    Value::Object(row.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>())
}

/// A value as people read it. Control characters can't reach the terminal.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => format!("{:.3}", n.as_f64().unwrap_or_default()),
        Value::Object(parts) => parts.values().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let header: Vec<String> = first.iter().map(|(name, _)| name.replace('_', " ")).collect();
    let body = rows.iter().map(|row| row.iter().map(|(_, v)| plain(v)).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> = std::iter::once(header).chain(body).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..first.len()).map(width).collect();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

fn delimited(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let Some(first) = rows.first() else { return Ok(()) };
    writer.write_record(
        first.iter().flat_map(|(name, value)| columns(name, value).into_iter().map(|(n, _)| n)),
    )?;
    for row in rows {
        writer.write_record(
            row.iter().flat_map(|(name, value)| columns(name, value).into_iter().map(|(_, v)| v)),
        )?;
    }
    writer.flush()
}

/// A value's columns: an object has one for each of its parts.
fn columns(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(parts) => parts.iter().map(|(part, v)| (format!("{name}_{part}"), raw(v))).collect(),
        other => vec![(name.to_owned(), raw(other))],
    }
}

fn raw(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
