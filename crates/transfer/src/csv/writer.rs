//! Rows as CSV, to be read again as the same rows.

use std::io::Write;

use onrush::{TableDefinition, Value};

use super::CsvOptions;

/// Makes lines; keeps its buffer.
#[derive(Debug)]
pub struct CsvWriter {
    options: CsvOptions,
    names: Vec<String>,
    is_char: Vec<bool>,
    line: Vec<u8>,
}

impl CsvWriter {
    /// For rows of a table.
    pub fn new(definition: &TableDefinition, options: CsvOptions) -> CsvWriter {
        let columns = definition.columns();
        CsvWriter {
            options,
            names: columns.iter().map(|column| column.name.clone()).collect(),
            is_char: columns
                .iter()
                .map(|column| crate::export::is_char(column.data_type))
                .collect(),
            line: Vec::new(),
        }
    }

    /// The line that names the columns, its end included; nothing when there is to be none.
    pub fn header(&mut self) -> &[u8] {
        self.line.clear();
        if self.options.header {
            for index in 0..self.names.len() {
                let name = std::mem::take(&mut self.names[index]);
                self.separate(index);
                self.text(&name);
                self.names[index] = name;
            }
            self.line.push(b'\n');
        }
        &self.line
    }

    /// One row as a line, its end included.
    pub fn line(&mut self, row: &[Value<'_>]) -> &[u8] {
        self.line.clear();
        for (index, value) in row.iter().enumerate() {
            self.separate(index);
            match value {
                Value::Null | Value::Default => {
                    self.line.extend_from_slice(self.options.null.as_bytes());
                }
                Value::Text(text) if self.is_char[index] => self.text(text.trim_end_matches(' ')),
                Value::Text(text) => self.text(text),
                // Digits, letters, and signs that need no quotes, unless one separates fields.
                other => {
                    let start = self.line.len();
                    // Writing to memory does not fail.
                    let _ = write!(self.line, "{other}");
                    if self.line[start..].contains(&self.options.delimiter) {
                        self.line.insert(start, b'"');
                        self.line.push(b'"');
                    }
                }
            }
        }
        self.line.push(b'\n');
        &self.line
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.line.push(self.options.delimiter);
        }
    }

    fn text(&mut self, text: &str) {
        let needs_quotes = text == self.options.null
            || text.is_empty()
            || text.starts_with(' ')
            || text.ends_with(' ')
            || text
                .bytes()
                .any(|byte| matches!(byte, b'"' | b'\n' | b'\r') || byte == self.options.delimiter);
        if !needs_quotes {
            self.line.extend_from_slice(text.as_bytes());
            return;
        }
        self.line.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                self.line.push(b'"');
            }
            self.line.push(byte);
        }
        self.line.push(b'"');
    }
}

/// A field of a line that is made by hand, in quotes where it needs them.
pub fn quoted(text: &str) -> String {
    if text.bytes().any(|byte| matches!(byte, b'"' | b'\n' | b'\r' | b',')) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use onrush::{ColumnDefinition, DataType};

    use super::*;

    fn writer(options: CsvOptions) -> CsvWriter {
        let table = TableDefinition::builder("t")
            .column(ColumnDefinition::new("id", DataType::Int64))
            .column(ColumnDefinition::new("text, long", DataType::Text))
            .column(ColumnDefinition::new("fixed", DataType::Char(8)))
            .primary_key(["id"])
            .build()
            .unwrap();
        CsvWriter::new(&table, options)
    }

    fn line(options: CsvOptions, row: &[Value<'_>]) -> String {
        String::from_utf8(writer(options).line(row).to_vec()).unwrap()
    }

    #[test]
    fn null_and_empty_text_differ() {
        let row = [Value::Int64(-7), Value::Null, Value::from("")];
        assert_eq!(line(CsvOptions::default(), &row), "-7,,\"\"\n");
        let words = CsvOptions { null: "NULL".into(), ..CsvOptions::default() };
        let row = [Value::Int64(1), Value::Null, Value::from("NULL")];
        assert_eq!(line(words, &row), "1,NULL,\"NULL\"\n");
    }

    #[test]
    fn text_is_quoted_where_needed_and_char_loses_its_padding() {
        let row = [Value::Int64(1), Value::from("a \"b\",\nc"), Value::from("x       ")];
        assert_eq!(line(CsvOptions::default(), &row), "1,\"a \"\"b\"\",\nc\",x\n");
    }

    #[test]
    fn names_are_quoted_as_text_is() {
        let header = writer(CsvOptions::default()).header().to_vec();
        assert_eq!(String::from_utf8(header).unwrap(), "id,\"text, long\",fixed\n");
    }
}
