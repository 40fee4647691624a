//! CSV records as rows of a table.

use std::io::BufRead;

use onrush::{DefaultValue, Schema, Value};

use super::CsvOptions;
use super::reader::{CsvReader, Record};
use crate::error::TransferError;
use crate::import::{RowSource, SourceRow};

/// Rows from CSV.
#[derive(Debug)]
pub struct CsvRows<'s, R> {
    reader: CsvReader<R>,
    schema: &'s Schema,
    null: String,
    /// For each field of a record, its column.
    columns: Vec<usize>,
}

impl<'s, R: BufRead> CsvRows<'s, R> {
    /// Reads the header, if there is one.
    ///
    /// # Errors
    /// A header that names an unknown column, or one twice, or cannot be read.
    pub fn new(
        input: R,
        schema: &'s Schema,
        options: &CsvOptions,
    ) -> Result<CsvRows<'s, R>, TransferError> {
        let mut reader = CsvReader::new(input, options.delimiter);
        let columns = match options.header {
            true => header(&mut reader, schema)?,
            false => (0..schema.column_count()).collect(),
        };
        Ok(CsvRows { reader, schema, null: options.null.clone(), columns })
    }

    fn row(&self) -> Result<Vec<Value<'static>>, String> {
        if self.reader.len() != self.columns.len() {
            return Err(format!(
                "it has {} fields, and {} columns are expected",
                self.reader.len(),
                self.columns.len()
            ));
        }
        let mut row = vec![Value::Default; self.schema.column_count()];
        for (index, column) in self.columns.iter().enumerate() {
            let (text, is_quoted) = self.reader.field(index).ok_or("a field is missing")?;
            row[*column] = self.value(*column, text, is_quoted)?;
        }
        Ok(row)
    }

    fn value(&self, column: usize, text: &str, is_quoted: bool) -> Result<Value<'static>, String> {
        if !is_quoted && text == self.null {
            return Ok(self.nothing(column));
        }
        let value = self.schema.parse(column, text).map_err(|error| error.to_string())?;
        Ok(value.into_owned())
    }

    /// What no value means: NULL where the column may be; a generated key or the clock where it
    /// has one; an empty text where nothing else fits; else NULL again, which the engine refuses
    /// with the column's name.
    fn nothing(&self, column: usize) -> Value<'static> {
        let definition = &self.schema.definition().columns()[column];
        if definition.nullable {
            return Value::Null;
        }
        if definition.default != DefaultValue::None {
            return Value::Default;
        }
        if definition.data_type.is_text() && self.null.is_empty() {
            return Value::from("");
        }
        Value::Null
    }
}

impl<R: BufRead> RowSource for CsvRows<'_, R> {
    fn next_row(&mut self) -> Result<Option<SourceRow>, TransferError> {
        let values = match self.reader.read()? {
            Record::End => return Ok(None),
            Record::Bad(reason) => Err(reason.to_owned()),
            Record::Fields => self.row(),
        };
        Ok(Some(SourceRow { line: self.reader.line(), raw: self.reader.raw(), values }))
    }

    fn next_line(&self) -> u64 {
        self.reader.next_line()
    }

    fn skip_to(&mut self, line: u64) -> Result<(), TransferError> {
        self.reader.skip_to(line)
    }

    fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }
}

fn header<R: BufRead>(
    reader: &mut CsvReader<R>,
    schema: &Schema,
) -> Result<Vec<usize>, TransferError> {
    match reader.read()? {
        Record::Fields => {}
        Record::End => {
            return Err(TransferError::Input(
                "the input is empty; its first line must name the columns".into(),
            ));
        }
        Record::Bad(reason) => {
            return Err(TransferError::Input(format!("the header cannot be read: {reason}")));
        }
    }
    let mut columns = Vec::with_capacity(reader.len());
    for index in 0..reader.len() {
        let (name, _) = reader.field(index).unwrap_or_default();
        let column = schema.definition().column_index(name.trim()).map_err(|error| {
            TransferError::Input(format!(
                "the header: {error}. A file without a header needs --no-header"
            ))
        })?;
        if columns.contains(&column) {
            return Err(TransferError::Input(format!("the header names column {name:?} twice")));
        }
        columns.push(column);
    }
    Ok(columns)
}
