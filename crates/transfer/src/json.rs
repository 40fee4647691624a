//! Newline-JSON: one object a line, its names the columns.
//!
//! Numbers are written with all their digits and read from their text, so none is rounded. What
//! JSON has no form for is text: dates, times, uuids, bytes (`"\\x00ff"`), NaN and infinities. A text is
//! read for a column of any type, as in CSV; numbers and booleans only for columns of their own kind.

use std::fmt;
use std::io::{BufRead, Write};

use onrush::{DataType, Schema, TableDefinition, Value};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value as Json};

use crate::error::TransferError;
use crate::import::{RowSource, SourceRow};
use crate::lines::{LineEnd, Lines, without_end};

/// One value.
pub fn value(value: &Value<'_>) -> Json {
    match value {
        Value::Null | Value::Default => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::Text(text) => Json::String(text.to_string()),
        Value::Int16(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Decimal(_)
        | Value::Numeric(_) => number(&value.to_string()),
        Value::Float32(float) if float.is_finite() => number(&value.to_string()),
        Value::Float64(float) if float.is_finite() => number(&value.to_string()),
        other => Json::String(other.to_string()),
    }
}

fn number(text: &str) -> Json {
    text.parse::<Number>().map_or_else(|_| Json::String(text.to_owned()), Json::Number)
}

/// Makes lines; keeps its buffer.
#[derive(Debug)]
pub struct RowWriter {
    /// `"name":` for each column.
    names: Vec<Vec<u8>>,
    is_char: Vec<bool>,
    line: Vec<u8>,
}

impl RowWriter {
    /// For rows of a table.
    pub fn new(definition: &TableDefinition) -> RowWriter {
        let columns = definition.columns();
        let name = |name: &str| format!("{}:", Json::String(name.to_owned())).into_bytes();
        RowWriter {
            names: columns.iter().map(|column| name(&column.name)).collect(),
            is_char: columns
                .iter()
                .map(|column| crate::export::is_char(column.data_type))
                .collect(),
            line: Vec::new(),
        }
    }

    /// One row as a line, its end included.
    pub fn line(&mut self, row: &[Value<'_>]) -> &[u8] {
        let line = &mut self.line;
        line.clear();
        for (index, one) in row.iter().enumerate() {
            line.push(if index == 0 { b'{' } else { b',' });
            line.extend_from_slice(&self.names[index]);
            let json = match one {
                Value::Text(text) if self.is_char[index] => {
                    Json::String(text.trim_end_matches(' ').to_owned())
                }
                other => value(other),
            };
            // Writing to memory does not fail.
            let _ = write!(line, "{json}");
        }
        line.extend_from_slice(b"}\n");
        line
    }
}

/// Rows from newline-JSON.
#[derive(Debug)]
pub struct JsonRows<'s, R> {
    lines: Lines<R>,
    schema: &'s Schema,
    line: Vec<u8>,
}

impl<'s, R: BufRead> JsonRows<'s, R> {
    /// Starts at the beginning of the input.
    pub fn new(input: R, schema: &'s Schema) -> JsonRows<'s, R> {
        JsonRows { lines: Lines::new(input), schema, line: Vec::new() }
    }

    fn row(&self) -> Result<Vec<Value<'static>>, String> {
        let Members(members) =
            serde_json::from_slice(without_end(&self.line)).map_err(|error| {
                format!("it is no JSON object: {}", without_place(&error.to_string()))
            })?;
        let mut row = vec![Value::Default; self.schema.column_count()];
        let mut given = vec![false; row.len()];
        for (name, json) in members {
            let column =
                self.schema.definition().column_index(&name).map_err(|error| error.to_string())?;
            if std::mem::replace(&mut given[column], true) {
                return Err(format!("column {name} is there twice"));
            }
            row[column] = self.column(column, json)?;
        }
        Ok(row)
    }

    fn column(&self, column: usize, json: Json) -> Result<Value<'static>, String> {
        let data_type = self.schema.definition().columns()[column].data_type;
        let refuse = |what: &str| {
            let name = self.schema.definition().column_name(column);
            Err(format!("column {name}: {what}"))
        };
        let text = match json {
            Json::Null => return Ok(Value::Null),
            Json::String(text) => text,
            Json::Number(number) if data_type.is_number() => number.to_string(),
            Json::Bool(value) if data_type == DataType::Boolean => value.to_string(),
            Json::Number(number) => {
                return refuse(&format!("{number} is a number, and the column is {data_type}"));
            }
            Json::Bool(value) => {
                return refuse(&format!("{value} is a boolean, and the column is {data_type}"));
            }
            Json::Array(_) | Json::Object(_) => {
                return refuse("an array or object is no value of a column");
            }
        };
        let value = self.schema.parse(column, &text).map_err(|error| error.to_string())?;
        Ok(value.into_owned())
    }
}

/// The members of an object in their order, those of the same name each for itself: a map would keep
/// the last of them and say nothing.
struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = object.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// The message of the JSON parser without its line number, which would be 1 always.
fn without_place(message: &str) -> String {
    match message.split_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at column {column}"),
        None => message.to_owned(),
    }
}

impl<R: BufRead> RowSource for JsonRows<'_, R> {
    fn next_row(&mut self) -> Result<Option<SourceRow>, TransferError> {
        loop {
            self.line.clear();
            let end = self.lines.append_line(&mut self.line).map_err(|source| {
                TransferError::Read { line: self.lines.line_number() + 1, source }
            })?;
            let line = self.lines.line_number();
            let is_blank = self.line.trim_ascii().is_empty();
            let values = match end {
                LineEnd::End => return Ok(None),
                LineEnd::TooLong => Err("the line is too long for a row".to_owned()),
                LineEnd::Line if is_blank => continue,
                LineEnd::Line if line == 1 && self.line.trim_ascii().starts_with(b"[") => {
                    return Err(TransferError::Input(
                        "the input is a JSON array; one object a line is expected, which \
                         \"jq -c '.[]'\" makes of it"
                            .into(),
                    ));
                }
                LineEnd::Line => self.row(),
            };
            let raw = String::from_utf8_lossy(without_end(&self.line)).into_owned();
            return Ok(Some(SourceRow { line, raw, values }));
        }
    }

    fn next_line(&self) -> u64 {
        self.lines.line_number() + 1
    }

    fn skip_to(&mut self, line: u64) -> Result<(), TransferError> {
        let skipped = self.lines.skip_to(line);
        skipped.map_err(|source| TransferError::Read { line: self.lines.line_number() + 1, source })
    }

    fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }
}
