//! A stream of lines to the fields of its rows.

use onrush::WHOLE_ROW_BYTES_MAX;

use super::fields::Fields;
use crate::error::{Result, SqlError, state};
use crate::sql::LineFormat;

/// Longest line: longer than any row, whose bytes may be written as two characters each.
pub(super) const LINE_BYTES_MAX: usize = 2 * WHOLE_ROW_BYTES_MAX + (1 << 20);

/// Cuts rows out of what has arrived.
pub(super) struct Decoder {
    format: LineFormat,
    input: Vec<u8>,
    /// Where the next row begins in `input`.
    at: usize,
    /// So many bytes from there on hold no end of a row, and how quotes stand behind them.
    looked_at: LookedAt,
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
            looked_at: LookedAt::default(),
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

    /// Cuts the next row, if all of it is there; at the end of the stream the last line need not end.
    pub(super) fn next(&mut self, is_end: bool, fields: &mut Fields) -> Result<bool> {
        loop {
            if self.is_over {
                return Ok(false);
            }
            let Some(length) = self.record_length(is_end)? else { return Ok(false) };
            self.looked_at = LookedAt::default();
            let record = &self.input[self.at..self.at + length];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            self.at += length;
            if record == b"\\." {
                self.is_over = true;
                return Ok(false);
            }
            self.line += 1;
            if std::mem::take(&mut self.has_header) {
                continue;
            }
            if self.format.is_csv {
                split_csv(record, &self.format, fields);
            } else {
                split_text(record, &self.format, fields);
            }
            fields.end_row();
            return Ok(true);
        }
    }

    /// Bytes of the next record with its end of line; none if it is not all there.
    fn record_length(&mut self, is_end: bool) -> Result<Option<usize>> {
        let LineFormat { is_csv, quote, escape, .. } = self.format;
        let rest = &self.input[self.at..];
        let LookedAt { bytes, mut is_quoted, mut is_escaped } = self.looked_at;
        if is_csv {
            for (position, byte) in rest.iter().copied().enumerate().skip(bytes) {
                if std::mem::take(&mut is_escaped) {
                    continue;
                }
                is_escaped = is_quoted && byte == escape && escape != quote;
                is_quoted ^= byte == quote;
                if byte == b'\n' && !is_quoted {
                    return Ok(Some(position + 1));
                }
            }
        } else {
            // The last byte may be escaped by one that was looked at, and is so as often as it is looked at.
            let from = if is_escaped { bytes + 1 } else { bytes };
            let Search { found, is_open } =
                not_escaped(b'\n', rest.get(from..).unwrap_or_default());
            if let Some(position) = found {
                return Ok(Some(from + position + 1));
            }
            is_escaped = is_open || from > rest.len();
        }
        self.looked_at = LookedAt { bytes: rest.len(), is_quoted, is_escaped };
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

/// How far a record was looked at that has not ended.
#[derive(Clone, Copy, Default)]
struct LookedAt {
    bytes: usize,
    is_quoted: bool,
    is_escaped: bool,
}

/// Where `wanted` stands first without a backslash before it, which makes it part of a field.
fn not_escaped(wanted: u8, bytes: &[u8]) -> Search {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..).unwrap_or_default();
        let Some(next) = memchr::memchr2(wanted, b'\\', rest) else {
            return Search { found: None, is_open: from > bytes.len() };
        };
        let position = from + next;
        if bytes[position] == wanted {
            return Search { found: Some(position), is_open: false };
        }
        from = position + 2;
    }
}

/// Where something was found, and whether the bytes end behind a backslash that escapes the next one.
struct Search {
    found: Option<usize>,
    is_open: bool,
}

fn split_text(mut record: &[u8], format: &LineFormat, fields: &mut Fields) {
    loop {
        let end = not_escaped(format.delimiter, record).found;
        let raw = &record[..end.unwrap_or(record.len())];
        if raw == format.null.as_bytes() {
            fields.push(None);
        } else if memchr::memchr(b'\\', raw).is_none() {
            fields.push(Some(raw));
        } else {
            fields.push_with(|text| {
                unescape(raw, text);
                true
            });
        }
        let Some(end) = end else { return };
        record = &record[end + 1..];
    }
}

fn unescape(raw: &[u8], text: &mut Vec<u8>) {
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

fn split_csv(record: &[u8], format: &LineFormat, fields: &mut Fields) {
    let mut rest = Some(record);
    while let Some(text) = rest {
        fields.push_with(|field| {
            let start = field.len();
            let was_quoted;
            (was_quoted, rest) = take_csv(text, format, field);
            was_quoted || field[start..] != *format.null.as_bytes()
        });
    }
}

/// Appends the first field to `field`; whether it was quoted, and what stands behind its delimiter.
fn take_csv<'t>(
    text: &'t [u8],
    format: &LineFormat,
    field: &mut Vec<u8>,
) -> (bool, Option<&'t [u8]>) {
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut position = 0;
    while let Some(byte) = text.get(position).copied() {
        let next = text.get(position + 1).copied();
        if is_quoted && byte == format.escape && is_escapable(next, format) {
            field.extend(next);
            position += 1;
        } else if byte == format.quote {
            is_quoted = !is_quoted;
            was_quoted = true;
        } else if is_quoted || byte != format.delimiter {
            field.push(byte);
        } else {
            return (was_quoted, Some(&text[position + 1..]));
        }
        position += 1;
    }
    (was_quoted, None)
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
        let (mut decoder, mut fields) = (Decoder::new(format), Fields::default());
        for bytes in stream.as_bytes().chunks(piece) {
            decoder.push(bytes);
            while decoder.next(false, &mut fields).expect("well-formed") {}
        }
        while decoder.next(true, &mut fields).expect("well-formed") {}
        let text = |field: Option<Vec<u8>>| {
            field.map_or("∅".to_owned(), |bytes| String::from_utf8(bytes).expect("text"))
        };
        fields.rows().into_iter().map(|row| row.into_iter().map(text).collect()).collect()
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
        let (mut decoder, mut fields) = (Decoder::new(&format(true)), Fields::default());
        decoder.push(b"1,\"open\n2,x\n");
        assert!(!decoder.next(false, &mut fields).expect("not yet"));
        let refused = decoder.next(true, &mut fields).unwrap_err();
        assert_eq!(refused.state, state::BAD_COPY_FORMAT);
    }
}
