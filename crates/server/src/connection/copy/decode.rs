//! A stream of lines to the fields of its rows.

use crate::error::{Result, SqlError, state};
use crate::sql::LineFormat;

/// Longest line: longer than any row.
const LINE_BYTES_MAX: usize = 1 << 20;

/// None is NULL.
pub(super) type Field = Option<Vec<u8>>;

/// Cuts rows out of what has arrived.
pub(super) struct Decoder {
    format: LineFormat,
    input: Vec<u8>,
    /// Where the next row begins in `input`.
    at: usize,
    fields: Vec<Field>,
    line: u64,
    has_header: bool,
    is_over: bool,
}

impl Decoder {
    pub(super) fn new(format: &LineFormat) -> Decoder {
        Decoder {
            format: format.clone(),
            input: Vec::new(),
            at: 0,
            fields: Vec::new(),
            line: 0,
            has_header: format.has_header,
            is_over: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Rows and the header, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next row, if all of it is there; at the end of the stream the last line need not end.
    pub(super) fn next(&mut self, is_end: bool) -> Result<Option<&[Field]>> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            let rest = &self.input[self.at..];
            let Some(length) = self.record_length(rest, is_end)? else { return Ok(None) };
            let record = &rest[..length];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            self.line += 1;
            self.fields.clear();
            if record == b"\\." {
                self.is_over = true;
            } else if self.format.is_csv {
                split_csv(record, &self.format, &mut self.fields);
            } else {
                split_text(record, &self.format, &mut self.fields);
            }
            self.at += length;
            if std::mem::take(&mut self.has_header) {
                continue;
            }
            return Ok((!self.is_over).then_some(self.fields.as_slice()));
        }
    }

    /// Bytes of the next record with its end of line; none if it is not all there.
    fn record_length(&self, rest: &[u8], is_end: bool) -> Result<Option<usize>> {
        let LineFormat { is_csv, quote, escape, .. } = self.format;
        let mut is_quoted = false;
        if is_csv {
            let mut is_escaped = false;
            for (position, byte) in rest.iter().copied().enumerate() {
                if std::mem::take(&mut is_escaped) {
                    continue;
                }
                is_escaped = is_quoted && byte == escape && escape != quote;
                is_quoted ^= byte == quote;
                if byte == b'\n' && !is_quoted {
                    return Ok(Some(position + 1));
                }
            }
        } else if let Some(position) = not_escaped(b'\n', rest) {
            return Ok(Some(position + 1));
        }
        if rest.len() > LINE_BYTES_MAX {
            return Err(SqlError::new(state::LIMIT_EXCEEDED, "a line is longer than any row"));
        }
        match (is_end && !rest.is_empty(), is_quoted) {
            (true, true) => {
                Err(SqlError::new(state::BAD_COPY_FORMAT, "a quoted field does not end"))
            }
            (true, false) => Ok(Some(rest.len())),
            (false, _) => Ok(None),
        }
    }
}

/// Where `wanted` stands first without a backslash before it, which makes it part of a field.
fn not_escaped(wanted: u8, bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let position = from + memchr::memchr2(wanted, b'\\', bytes.get(from..)?)?;
        if bytes[position] == wanted {
            return Some(position);
        }
        from = position + 2;
    }
}

fn split_text(mut record: &[u8], format: &LineFormat, fields: &mut Vec<Field>) {
    loop {
        let end = not_escaped(format.delimiter, record);
        let raw = &record[..end.unwrap_or(record.len())];
        let is_null = raw == format.null.as_bytes();
        fields.push((!is_null).then(|| unescaped(raw)));
        let Some(end) = end else { return };
        record = &record[end + 1..];
    }
}

fn unescaped(raw: &[u8]) -> Vec<u8> {
    if memchr::memchr(b'\\', raw).is_none() {
        return raw.to_vec();
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'b') => text.push(8),
            Some(b'f') => text.push(12),
            Some(b'n') => text.push(b'\n'),
            Some(b'r') => text.push(b'\r'),
            Some(b't') => text.push(b'\t'),
            Some(b'v') => text.push(11),
            Some(b'x') if bytes.peek().is_some_and(u8::is_ascii_hexdigit) => {
                text.push(number(&mut bytes, None, 16, 2));
            }
            Some(digit @ b'0'..=b'7') => text.push(number(&mut bytes, Some(digit), 8, 3)),
            Some(other) => text.push(other),
            None => text.push(b'\\'),
        }
    }
    text
}

/// Up to `most` digits, `first` among them.
fn number(
    bytes: &mut std::iter::Peekable<impl Iterator<Item = u8>>,
    first: Option<u8>,
    radix: u32,
    most: usize,
) -> u8 {
    let digit = |byte: u8| char::from(byte).to_digit(radix);
    let mut value = first.and_then(digit).unwrap_or(0);
    for _ in usize::from(first.is_some())..most {
        let Some(next) = bytes.peek().copied().and_then(digit) else { break };
        value = value * radix + next;
        bytes.next();
    }
    // Three octal digits may be more than a byte; the upper bit is dropped, as in PostgreSQL.
    (value & 0xff) as u8
}

fn split_csv(record: &[u8], format: &LineFormat, fields: &mut Vec<Field>) {
    let mut field = Vec::new();
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut position = 0;
    while position <= record.len() {
        let byte = record.get(position).copied();
        let next = record.get(position + 1).copied();
        match byte {
            Some(byte) if is_quoted && byte == format.escape && is_escapable(next, format) => {
                field.extend(next);
                position += 1;
            }
            Some(byte) if byte == format.quote => {
                is_quoted = !is_quoted;
                was_quoted = true;
            }
            Some(byte) if is_quoted || byte != format.delimiter => field.push(byte),
            _ => {
                let is_null = !was_quoted && field == format.null.as_bytes();
                let text = std::mem::take(&mut field);
                fields.push((!is_null).then_some(text));
                was_quoted = false;
            }
        }
        position += 1;
    }
}

fn is_escapable(next: Option<u8>, format: &LineFormat) -> bool {
    next.is_some_and(|next| next == format.quote || next == format.escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(is_csv: bool) -> LineFormat {
        LineFormat {
            is_csv,
            delimiter: if is_csv { b',' } else { b'\t' },
            null: if is_csv { "" } else { "\\N" }.to_owned(),
            has_header: false,
            quote: b'"',
            escape: b'"',
        }
    }

    /// The rows of a stream that arrives in pieces of `piece` bytes; NULL is `∅`.
    fn rows(format: &LineFormat, stream: &str, piece: usize) -> Vec<Vec<String>> {
        let mut decoder = Decoder::new(format);
        let mut rows = Vec::new();
        let mut take = |decoder: &mut Decoder, is_end| {
            while let Some(fields) = decoder.next(is_end).expect("well-formed") {
                let text = |field: &Field| match field {
                    None => "∅".to_owned(),
                    Some(bytes) => String::from_utf8(bytes.clone()).expect("text"),
                };
                rows.push(fields.iter().map(text).collect());
            }
        };
        for bytes in stream.as_bytes().chunks(piece) {
            decoder.push(bytes);
            take(&mut decoder, false);
        }
        take(&mut decoder, true);
        rows
    }

    #[test]
    fn text_in_any_pieces_is_the_same_rows() {
        let stream = "1\ta\\tb\\\\\n2\t\\N\n3\tline\\\nend\\x41\\101\n\\.\nnot read\n";
        let expected = [vec!["1", "a\tb\\"], vec!["2", "∅"], vec!["3", "line\nendAA"]];
        for piece in 1..stream.len() {
            assert_eq!(rows(&format(false), stream, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn csv_in_any_pieces_is_the_same_rows() {
        let stream = "1,\"a,\"\"b\"\"\nc\",\"\"\r\n2,,x";
        let expected = [vec!["1", "a,\"b\"\nc", ""], vec!["2", "∅", "x"]];
        for piece in 1..stream.len() {
            assert_eq!(rows(&format(true), stream, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn a_quote_that_does_not_end_is_an_error() {
        let mut decoder = Decoder::new(&format(true));
        decoder.push(b"1,\"open\n2,x\n");
        assert!(decoder.next(false).expect("not yet").is_none());
        assert_eq!(decoder.next(true).unwrap_err().state, state::BAD_COPY_FORMAT);
    }
}
