//! Rows to the lines of a copy.

use bytes::{BufMut, BytesMut};
use onrush::{Row, Value};
use onrush_query::style::client_encoding;

use crate::error::Result;
use crate::sql::{LineFormat, OutputColumn};
use crate::values;

/// The line that names the columns.
pub(super) fn header(
    columns: &[OutputColumn],
    format: &LineFormat,
    output: &mut BytesMut,
) -> Result<()> {
    let names = columns.iter().map(|column| Some(column.name.as_bytes().to_vec()));
    line(format, names, output)
}

/// One row, as a message of its own.
pub(super) fn row(
    columns: &[OutputColumn],
    format: &LineFormat,
    row: &Row,
    output: &mut BytesMut,
) -> Result<()> {
    let field = |column: &OutputColumn| match &row[column.source] {
        Value::Null | Value::Default => None,
        value => {
            let mut text = BytesMut::new();
            // Memory takes what there is.
            let _ = values::write_text_of(value, column.column_type, &mut text);
            Some(text.to_vec())
        }
    };
    line(format, columns.iter().map(field), output)
}

fn line(
    format: &LineFormat,
    fields: impl Iterator<Item = Option<Vec<u8>>>,
    output: &mut BytesMut,
) -> Result<()> {
    let mut encoded = Ok(());
    super::message(output, |output| {
        let start = output.len();
        line_bytes(format, fields, output);
        encoded = values::as_of_client(output, start, client_encoding());
    });
    encoded
}

fn line_bytes(
    format: &LineFormat,
    fields: impl Iterator<Item = Option<Vec<u8>>>,
    output: &mut BytesMut,
) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            output.put_u8(format.delimiter);
        }
        match field {
            None => output.put_slice(format.null.as_bytes()),
            Some(text) if format.is_csv => csv(&text, format, output),
            Some(text) => escaped(&text, format, output),
        }
    }
    output.put_u8(b'\n');
}

fn escaped(text: &[u8], format: &LineFormat, output: &mut BytesMut) {
    for byte in text {
        match byte {
            b'\\' => output.put_slice(b"\\\\"),
            b'\n' => output.put_slice(b"\\n"),
            b'\r' => output.put_slice(b"\\r"),
            b'\t' => output.put_slice(b"\\t"),
            byte if *byte == format.delimiter => output.put_slice(&[b'\\', *byte]),
            byte => output.put_u8(*byte),
        }
    }
}

fn csv(text: &[u8], format: &LineFormat, output: &mut BytesMut) {
    let special = [format.delimiter, format.quote, b'\n', b'\r'];
    let needs_quotes = text == format.null.as_bytes()
        || text == b"\\."
        || text.iter().any(|byte| special.contains(byte));
    if !needs_quotes {
        output.put_slice(text);
        return;
    }
    output.put_u8(format.quote);
    for byte in text {
        if *byte == format.quote || *byte == format.escape {
            output.put_u8(format.escape);
        }
        output.put_u8(*byte);
    }
    output.put_u8(format.quote);
}
