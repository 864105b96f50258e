//! Plain text tables: the first column to the left, numbers to the right.

/// A table that is being written.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this first row; a line break in a heading starts another line of it.
    pub fn headed<S: AsRef<str>>(heading: impl IntoIterator<Item = S>) -> Self {
        let cells: Vec<Vec<String>> =
            heading.into_iter().map(|cell| cell.as_ref().split('\n').map(str::to_owned).collect()).collect();
        let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            cells
                .iter()
                .map(|c| (at + c.len()).checked_sub(lines).map_or(String::new(), |i| c[i].clone()))
                .collect()
        };
        let mut table = Self { rows: (0..lines).map(line).collect() };
        table.rule();
        table
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a line across.
    pub fn rule(&mut self) {
        self.rows.push(Vec::new());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |c: usize| {
            self.rows.iter().filter_map(|row| row.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        let whole: usize = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
        for row in &self.rows {
            if row.is_empty() {
                writeln!(f, "{}", "─".repeat(whole))?;
                continue;
            }
            let cells = row.iter().zip(&widths).enumerate().map(|(c, (cell, &width))| match c {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A share as a percentage with one digit, or a dash where there is none.
///
/// ```
/// assert_eq!((lab::table::percent(Some(0.9137)), lab::table::percent(None)), ("91.4".into(), "–".into()));
/// ```
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |s| format!("{:.1}", 100.0 * s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other() {
        let mut table = Table::headed(["board", "local\n×3", "fedavg"]);
        table.row(["0", "9.5", "81.0"]);
        table.row(["mean", "100.0", "7.0"]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "       local",
                "board     ×3  fedavg",
                "────────────────────",
                "0        9.5    81.0",
                "mean   100.0     7.0"
            ]
        );
    }
}
