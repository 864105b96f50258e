//! Rows for people and for programs.
use clap::ValueEnum;
use serde_json::{Map, Value};
use std::io::Write;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// One JSON object a line.
    Json,
    /// Comma-separated, with a header.
    Csv,
}

/// The arguments contradict each other or the world.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// Rows that have these columns.
#[derive(Debug)]
pub(super) struct Rows {
    columns: &'static [&'static str],
    rows: Vec<Vec<Value>>,
}

impl Rows {
    pub(super) fn new(columns: &'static [&'static str], rows: Vec<Vec<Value>>) -> Self {
        Self { columns, rows }
    }

    /// Prints them to standard output.
    pub(super) fn print(&self, format: Format) -> anyhow::Result<()> {
        let text = match format {
            Format::Table => self.table(),
            Format::Json => self.rows.iter().map(|row| format!("{}\n", self.object(row))).collect(),
            Format::Csv => self.csv()?,
        };
        say(&text)
    }

    fn object(&self, row: &[Value]) -> Value {
        let pairs = self.columns.iter().map(|c| (*c).to_owned()).zip(row.iter().cloned());
        Value::Object(pairs.collect::<Map<_, _>>())
    }

    fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(text))?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    fn table(&self) -> String {
        let head = self.columns.iter().map(|c| (*c).to_owned()).collect();
        let lines: Vec<Vec<String>> =
            std::iter::once(head).chain(self.rows.iter().map(|r| r.iter().map(text).collect())).collect();
        let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &Vec<String>| {
            let padded: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, &w)| format!("{cell:w$}")).collect();
            format!("{}\n", padded.join("  ").trim_end())
        };
        lines.iter().map(line).collect()
    }
}

/// Writes data to standard output.
pub(super) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush())?)
}

/// A cell without quotes and without anything that a terminal would obey.
fn text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    };
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_rows_in_three_forms() {
        let rows = Rows::new(
            &["id", "name"],
            vec![vec![1.into(), "a,\u{1b}b".into()], vec![20.into(), Value::Null]],
        );
        assert_eq!(rows.table(), "id  name\n1   a,?b\n20  -\n");
        assert_eq!(rows.csv().unwrap(), "id,name\n1,\"a,?b\"\n20,-\n");
        assert_eq!(rows.object(&rows.rows[1]).to_string(), r#"{"id":20,"name":null}"#);
    }
}
