//! CSV records, each with the number of its first line and its text as it stood there.
//!
//! Invariants
//! 1. A record never swallows others: when a quote is opened and not closed within
//!    [`QUOTED_BYTES_MAX`] or the input, only its first line is bad, and reading goes on behind it.

use std::io::BufRead;
use std::ops::Range;

use crate::error::TransferError;
use crate::lines::{LineEnd, Lines, without_end};

/// A record of several lines that takes more is not waited for: a quote may be missing.
const QUOTED_BYTES_MAX: usize = 64 << 20;

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    text: Range<usize>,
    is_quoted: bool,
}

/// Reads records one after the other.
#[derive(Debug)]
pub struct CsvReader<R> {
    lines: Lines<R>,
    delimiter: u8,
    raw: Vec<u8>,
    text: Vec<u8>, // the fields one after the other, without quotes
    fields: Vec<Field>,
    line: u64,
}

/// What a record turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Fields, to be had from the reader.
    Fields,
    /// No record, for this reason.
    Bad(&'static str),
    /// The input is at its end.
    End,
}

impl<R: BufRead> CsvReader<R> {
    /// Starts at the beginning of the input.
    pub fn new(input: R, delimiter: u8) -> CsvReader<R> {
        CsvReader {
            lines: Lines::new(input),
            delimiter,
            raw: Vec::new(),
            text: Vec::new(),
            fields: Vec::new(),
            line: 0,
        }
    }

    /// The first line of the record read last.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The line behind the record read last.
    pub fn next_line(&self) -> u64 {
        self.lines.line_number() + 1
    }

    /// Passes over lines until the next one has this number. A record must begin there.
    ///
    /// # Errors
    /// What the input reports.
    pub fn skip_to(&mut self, line: u64) -> Result<(), TransferError> {
        let skipped = self.lines.skip_to(line);
        skipped.map_err(|source| TransferError::Read { line: self.lines.line_number() + 1, source })
    }

    /// Bytes of input read so far.
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// The record read last as it stood in the input, without its end of line.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(without_end(&self.raw)).into_owned()
    }

    /// Fields of the record read last.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the record read last has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field of the record read last, and whether it stood in quotes.
    pub fn field(&self, index: usize) -> Option<(&str, bool)> {
        let field = self.fields.get(index)?;
        let text = std::str::from_utf8(self.text.get(field.text.clone())?).ok()?;
        Some((text, field.is_quoted))
    }

    /// Reads the next record; lines with nothing on them are none.
    ///
    /// # Errors
    /// What the input reports.
    pub fn read(&mut self) -> Result<Record, TransferError> {
        loop {
            self.raw.clear();
            let end = self.append_line()?;
            self.line = self.lines.line_number();
            match end {
                LineEnd::End => return Ok(Record::End),
                LineEnd::TooLong => return Ok(Record::Bad("the line is too long for a row")),
                LineEnd::Line if without_end(&self.raw).is_empty() => {}
                LineEnd::Line => return self.read_record(),
            }
        }
    }

    fn append_line(&mut self) -> Result<LineEnd, TransferError> {
        self.lines
            .append_line(&mut self.raw)
            .map_err(|source| TransferError::Read { line: self.lines.line_number() + 1, source })
    }

    /// The first line is in `raw`; more are read while a quote is open.
    fn read_record(&mut self) -> Result<Record, TransferError> {
        let first_line_bytes = self.raw.len();
        loop {
            match self.split() {
                Split::Done => return Ok(self.check_text()),
                Split::Bad(reason) => {
                    self.keep_first_line(first_line_bytes);
                    return Ok(Record::Bad(reason));
                }
                Split::QuoteOpen => {}
            }
            // A line with an even number of quotes leaves the quote open.
            loop {
                let before = self.raw.len();
                if before > QUOTED_BYTES_MAX || self.append_line()? != LineEnd::Line {
                    self.keep_first_line(first_line_bytes);
                    return Ok(Record::Bad("a quote is opened and not closed"));
                }
                if self.raw[before..].split(|byte| *byte == b'"').count() % 2 == 0 {
                    break;
                }
            }
        }
    }

    fn keep_first_line(&mut self, first_line_bytes: usize) {
        let rest = self.raw.split_off(first_line_bytes);
        if !rest.is_empty() {
            self.lines.put_back(&rest);
        }
    }

    fn check_text(&self) -> Record {
        // Quotes and delimiters are ASCII, so the whole is UTF-8 when and only when each part is.
        match std::str::from_utf8(&self.text) {
            Ok(_) => Record::Fields,
            Err(_) => Record::Bad("it is not UTF-8"),
        }
    }

    /// Splits `raw` into fields.
    fn split(&mut self) -> Split {
        self.text.clear();
        self.fields.clear();
        let record = without_end(&self.raw);
        let mut at = 0;
        loop {
            let start = self.text.len();
            let is_quoted = record.get(at) == Some(&b'"');
            if is_quoted {
                at += 1;
                loop {
                    // Inside quotes line ends count as they stand, so look at all of `raw`.
                    let Some(length) = self.raw[at..].iter().position(|byte| *byte == b'"') else {
                        return Split::QuoteOpen;
                    };
                    self.text.extend_from_slice(&self.raw[at..at + length]);
                    at += length + 1;
                    if self.raw.get(at) != Some(&b'"') {
                        break;
                    }
                    self.text.push(b'"');
                    at += 1;
                }
            } else {
                let rest = &record[at..];
                let length = rest.iter().position(|byte| *byte == self.delimiter);
                let length = length.unwrap_or(rest.len());
                self.text.extend_from_slice(&rest[..length]);
                at += length;
            }
            self.fields.push(Field { text: start..self.text.len(), is_quoted });
            match record.get(at) {
                None => return Split::Done,
                Some(byte) if *byte == self.delimiter => at += 1,
                Some(_) => return Split::Bad("there is text behind a closing quote"),
            }
        }
    }
}

enum Split {
    Done,
    QuoteOpen,
    Bad(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = (u64, Result<Vec<(String, bool)>, &'static str>);

    fn records(input: &str) -> Vec<Found> {
        let mut reader = CsvReader::new(input.as_bytes(), b',');
        let mut found = Vec::new();
        loop {
            let record = match reader.read().unwrap() {
                Record::End => return found,
                Record::Bad(reason) => Err(reason),
                Record::Fields => Ok((0..reader.len())
                    .map(|index| reader.field(index).unwrap())
                    .map(|(text, is_quoted)| (text.to_owned(), is_quoted))
                    .collect()),
            };
            found.push((reader.line(), record));
        }
    }

    fn texts(found: &Found) -> Vec<&str> {
        found.1.as_ref().unwrap().iter().map(|(text, _)| text.as_str()).collect()
    }

    #[test]
    fn fields_are_separated_and_unquoted() {
        let found = records("a,b,c\r\n1,\"two, \"\"2\"\"\",\n,\"\",x\n");
        assert_eq!(texts(&found[0]), ["a", "b", "c"]);
        assert_eq!(texts(&found[1]), ["1", "two, \"2\"", ""]);
        assert_eq!(found[2].1.as_ref().unwrap()[0], (String::new(), false));
        assert_eq!(found[2].1.as_ref().unwrap()[1], (String::new(), true));
    }

    #[test]
    fn a_record_may_span_lines_and_is_named_by_its_first() {
        let found = records("1,\"a\nb\r\nc\"\n\n2,x");
        assert_eq!(found[0].0, 1);
        assert_eq!(texts(&found[0]), ["1", "a\nb\r\nc"]);
        assert_eq!(found[1].0, 5);
        assert_eq!(texts(&found[1]), ["2", "x"]);
    }

    #[test]
    fn an_open_quote_spoils_its_own_line_only() {
        let found = records("1,a\n2,\"b\n3,c\n4,d\n");
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], (2, Err("a quote is opened and not closed")));
        assert_eq!((found[2].0, texts(&found[2])), (3, vec!["3", "c"]));
        assert_eq!((found[3].0, texts(&found[3])), (4, vec!["4", "d"]));
    }

    #[test]
    fn text_behind_a_quote_is_bad_and_a_quote_inside_plain_text_is_not() {
        let found = records("1,\"a\"b\n2,5\" pipe\n");
        assert_eq!(found[0].1, Err("there is text behind a closing quote"));
        assert_eq!(texts(&found[1]), ["2", "5\" pipe"]);
    }

    #[test]
    fn the_text_of_a_bad_record_is_kept_as_it_stood() {
        let mut reader = CsvReader::new(&b"1,\"a\"b\r\n"[..], b',');
        assert!(matches!(reader.read().unwrap(), Record::Bad(_)));
        assert_eq!(reader.raw(), "1,\"a\"b");
        let mut reader = CsvReader::new(&b"1,\xFF\n"[..], b',');
        assert_eq!(reader.read().unwrap(), Record::Bad("it is not UTF-8"));
    }
}
