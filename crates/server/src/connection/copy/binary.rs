//! PostgreSQL's binary format of a copy, both ways: a header, rows whose values stand behind their
//! lengths, and an end.

use bytes::{BufMut, BytesMut};
use onrush::{Row, Value};

use super::decode::LINE_BYTES_MAX;
use super::fields::Fields;
use crate::error::{Result, SqlError, state};
use crate::sql::OutputColumn;
use crate::values;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Behind the signature: flags, and the length of what else stands in the header.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// Flags of this part change the format in ways that a reader must know. None of them is known.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// Longer than any header.
const HEADER_MORE_MAX: usize = 1 << 20;
const NULL_LENGTH: i32 = -1;
const END: i16 = -1;

/// Cuts rows out of what has arrived.
#[derive(Default)]
pub(super) struct Decoder {
    input: Vec<u8>,
    /// Where the next row begins in `input`.
    at: usize,
    row: u64,
    has_header: bool,
    is_over: bool,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Counted from 1.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// Cuts the next row, if all of it is there. The stream has an end of its own.
    pub(super) fn next(&mut self, is_end: bool, fields: &mut Fields) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let mut rest = Rest(&self.input[self.at..]);
        let taken = if self.has_header { Some(()) } else { take_header(&mut rest)? };
        let taken = match taken {
            Some(()) => {
                self.has_header = true;
                self.at = self.input.len() - rest.0.len();
                take_row(&mut rest, fields, self.row + 1)?
            }
            None => None,
        };
        match taken {
            Some(is_row) => {
                self.at = self.input.len() - rest.0.len();
                self.is_over = !is_row;
                self.row += u64::from(is_row);
                Ok(is_row)
            }
            None if self.input.len() - self.at > LINE_BYTES_MAX => {
                Err(SqlError::new(state::LIMIT_EXCEEDED, "a row is longer than any can be"))
            }
            // As in PostgreSQL, the end of the stream behind a row is one, too: pgx sends no marker.
            None if is_end && self.has_header && self.at == self.input.len() => {
                self.is_over = true;
                Ok(false)
            }
            None if is_end => Err(bad("the stream ends within a row")),
            None => Ok(false),
        }
    }
}

fn take_header(rest: &mut Rest<'_>) -> Result<Option<()>> {
    let Some(header) = rest.take(HEADER_BYTES) else { return Ok(None) };
    let (signature, numbers) = header.split_at(SIGNATURE.len());
    if signature != SIGNATURE {
        return Err(bad("the stream does not begin as a binary copy does"));
    }
    let mut numbers = Rest(numbers);
    let flags = numbers.number().map_or(0, u32::from_be_bytes);
    let more = numbers.number().map_or(0, u32::from_be_bytes) as usize;
    if flags & CRITICAL_FLAGS != 0 {
        return Err(bad("the header has flags that are not known here"));
    }
    if more > HEADER_MORE_MAX {
        return Err(bad("the header says that it goes on for longer than it can"));
    }
    Ok(rest.take(more).map(|_| ()))
}

/// Whether it was a row, or the end; none if it is not all there.
fn take_row(rest: &mut Rest<'_>, fields: &mut Fields, row: u64) -> Result<Option<bool>> {
    let Some(count) = rest.number().map(i16::from_be_bytes) else { return Ok(None) };
    if count == END {
        return Ok(Some(false));
    }
    if count < 0 {
        return Err(bad(&format!("row {row} has {count} columns")));
    }
    for _ in 0..count {
        let Some(field) = take_field(rest, row)? else {
            fields.drop_row();
            return Ok(None);
        };
        fields.push(field);
    }
    fields.end_row();
    Ok(Some(true))
}

/// A field, which is none if it is NULL; none if it is not all there.
fn take_field<'b>(rest: &mut Rest<'b>, row: u64) -> Result<Option<Option<&'b [u8]>>> {
    match rest.number().map(i32::from_be_bytes) {
        None => Ok(None),
        Some(NULL_LENGTH) => Ok(Some(None)),
        Some(length) => {
            let length = usize::try_from(length)
                .map_err(|_| bad(&format!("row {row} has a value of {length} bytes")))?;
            Ok(rest.take(length).map(Some))
        }
    }
}

/// What has not been read yet.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

fn bad(message: &str) -> SqlError {
    SqlError::new(state::BAD_COPY_FORMAT, message.to_owned())
}

/// What a stream begins with.
pub(super) fn header(output: &mut BytesMut) {
    output.put_slice(SIGNATURE);
    output.put_u32(0);
    output.put_u32(0);
}

/// One row.
pub(super) fn row(columns: &[OutputColumn], row: &Row, output: &mut BytesMut) -> Result<()> {
    // An answer has fewer columns.
    output.put_i16(i16::try_from(columns.len()).unwrap_or(i16::MAX));
    for column in columns {
        let value = &row[column.source];
        if matches!(value, Value::Null | Value::Default) {
            output.put_i32(NULL_LENGTH);
            continue;
        }
        let start = output.len();
        output.put_i32(0);
        values::binary(value, column.column_type, output)?;
        let length = i32::try_from(output.len() - start - 4).unwrap_or(i32::MAX);
        output[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// What a stream ends with.
pub(super) fn end(output: &mut BytesMut) {
    output.put_i16(END);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A stream with a header, rows, an end, and something behind it.
    fn stream(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
        let mut stream = BytesMut::new();
        header(&mut stream);
        for row in rows {
            stream.put_i16(row.len() as i16);
            for field in row {
                stream.put_i32(field.as_ref().map_or(NULL_LENGTH, |field| field.len() as i32));
                stream.put_slice(field.as_deref().unwrap_or_default());
            }
        }
        end(&mut stream);
        stream.put_slice(b"not read");
        stream.to_vec()
    }

    proptest! {
        #[test]
        fn rows_in_any_pieces_are_the_same_rows(
            rows in proptest::collection::vec(
                proptest::collection::vec(proptest::option::of(any::<Vec<u8>>()), 0..4), 0..4),
            piece in 1usize..40,
        ) {
            let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
            for bytes in stream(&rows).chunks(piece) {
                decoder.push(bytes);
                while decoder.next(false, &mut fields).expect("well-formed") {}
            }
            prop_assert!(!decoder.next(true, &mut fields).expect("well-formed"));
            prop_assert_eq!(fields.rows(), rows);
        }

        #[test]
        fn no_bytes_are_more_than_an_error(bytes in any::<Vec<u8>>(), with_header: bool) {
            let mut decoder = Decoder::default();
            if with_header {
                let mut stream = BytesMut::new();
                header(&mut stream);
                decoder.push(&stream);
            }
            decoder.push(&bytes);
            let mut fields = Fields::default();
            while let Ok(true) = decoder.next(true, &mut fields) {}
        }
    }

    #[test]
    fn a_stream_that_is_no_binary_copy_or_has_no_end_is_refused() {
        let (mut lines, mut fields) = (Decoder::default(), Fields::default());
        lines.push(b"1\tone\n2\ttwo\n3\tthree\n");
        assert_eq!(lines.next(false, &mut fields).unwrap_err().state, state::BAD_COPY_FORMAT);
        let mut cut = Decoder::default();
        let whole = stream(&[vec![Some(vec![1, 2, 3])]]);
        cut.push(&whole[..HEADER_BYTES + 7]);
        assert!(!cut.next(false, &mut fields).expect("not yet"));
        assert_eq!(cut.next(true, &mut fields).unwrap_err().state, state::BAD_COPY_FORMAT);
    }
}
