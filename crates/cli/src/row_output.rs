//! Rows for people (columns below each other) or for machines (one JSON object a line).

use std::io::Write;

use onrush::{Row, TableDefinition, Value};
use onrush_terminal::failure::Outcome;
use onrush_terminal::output;
use onrush_transfer::json;

/// So many rows are looked at for the widths of the columns; the others use the same widths.
const ROWS_MEASURED: usize = 200;

/// Prints rows as they come.
pub struct RowOutput<'d> {
    definition: &'d TableDefinition,
    out: std::io::BufWriter<std::io::StdoutLock<'static>>,
    json: Option<json::RowWriter>,
    measured: Vec<Row>, // until the widths are known
    widths: Option<Vec<usize>>,
}

impl<'d> RowOutput<'d> {
    /// For rows of a table.
    pub fn new(definition: &'d TableDefinition, as_json: bool) -> RowOutput<'d> {
        RowOutput {
            definition,
            out: output::writer(),
            json: as_json.then(|| json::RowWriter::new(definition)),
            measured: Vec::new(),
            widths: None,
        }
    }

    /// Prints one row.
    pub fn row(&mut self, row: Row) -> Outcome {
        if let Some(json) = &mut self.json {
            self.out.write_all(json.line(&row))?;
            return Ok(());
        }
        if self.widths.is_some() {
            return self.print(&row);
        }
        self.measured.push(row);
        if self.measured.len() == ROWS_MEASURED { self.print_measured() } else { Ok(()) }
    }

    /// Prints what is left.
    pub fn finish(mut self) -> Outcome {
        if self.json.is_none() && self.widths.is_none() {
            self.print_measured()?;
        }
        Ok(self.out.flush()?)
    }

    fn print_measured(&mut self) -> Outcome {
        let rows = std::mem::take(&mut self.measured);
        let names: Vec<_> = self.definition.columns().iter().map(|c| c.name.clone()).collect();
        let mut widths: Vec<usize> = names.iter().map(|name| name.chars().count()).collect();
        for row in &rows {
            for (column, value) in row.iter().enumerate() {
                widths[column] = widths[column].max(cell(value).chars().count());
            }
        }
        self.widths = Some(widths);
        self.line(&names)?;
        rows.iter().try_for_each(|row| self.print(row))
    }

    fn print(&mut self, row: &Row) -> Outcome {
        let cells: Vec<_> = row.iter().map(cell).collect();
        self.line(&cells)
    }

    fn line(&mut self, cells: &[String]) -> Outcome {
        let widths = self.widths.as_deref().unwrap_or_default();
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            if self.definition.columns()[column].data_type.is_number() {
                line.push_str(&blanks);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&blanks);
            }
        }
        writeln!(self.out, "{}", line.trim_end())?;
        Ok(())
    }
}

/// A value in one line, whatever control characters it holds; `char` without its padding.
fn cell(value: &Value<'_>) -> String {
    let text = value.to_string();
    let text = text.trim_end_matches(' ');
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text.to_owned()
    }
}
