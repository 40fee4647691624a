//! The input in lines, with their numbers, in bounded memory.
//!
//! Invariants
//! 1. A line is never longer in memory than it may be, whatever the input holds.
//! 2. [`Lines::line_number`] is that of the line that was returned last, the first being 1; lines
//!    that were put back are counted again.

use std::io::{self, BufRead, Read};

use onrush::WHOLE_ROW_BYTES_MAX;

/// No row of a table is that long, whose bytes may be written as two characters each.
const LINE_BYTES_MAX: usize = 2 * WHOLE_ROW_BYTES_MAX + (1 << 20);

/// The input in lines.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    put_back: Vec<u8>,
    put_back_at: usize,
    line_number: u64,
    bytes_read: u64,
    line_bytes_max: usize,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// A line, its end of line included where it has one.
    Line,
    /// The beginning of a line that is too long; the rest was skipped.
    TooLong,
    /// Nothing: the input is at its end.
    End,
}

impl<R: BufRead> Lines<R> {
    /// Starts at the beginning.
    pub fn new(input: R) -> Lines<R> {
        let (put_back, line_bytes_max) = (Vec::new(), LINE_BYTES_MAX);
        Lines { input, put_back, put_back_at: 0, line_number: 0, bytes_read: 0, line_bytes_max }
    }

    /// The number of the line returned last; 0 before the first.
    pub fn line_number(&self) -> u64 {
        self.line_number
    }

    /// Bytes taken from the input so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Appends the next line to `line`.
    ///
    /// # Errors
    /// What the input reports.
    pub fn append_line(&mut self, line: &mut Vec<u8>) -> io::Result<LineEnd> {
        if self.put_back_at < self.put_back.len() {
            let rest = &self.put_back[self.put_back_at..];
            let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |n| n + 1);
            line.extend_from_slice(&rest[..length]);
            self.put_back_at += length;
            self.line_number += 1;
            return Ok(LineEnd::Line);
        }
        let before = line.len();
        let limit = self.line_bytes_max;
        let count = self.input.by_ref().take(limit as u64).read_until(b'\n', line)?;
        self.bytes_read += count as u64;
        if count == 0 {
            return Ok(LineEnd::End);
        }
        self.line_number += 1;
        if count < limit || line.ends_with(b"\n") {
            if self.line_number == 1 && line[before..].starts_with(b"\xEF\xBB\xBF") {
                line.drain(before..before + 3); // a byte order mark is no content
            }
            return Ok(LineEnd::Line);
        }
        self.skip_line()?;
        Ok(LineEnd::TooLong)
    }

    /// Passes over lines until the next one has this number, or the input is at its end.
    ///
    /// # Errors
    /// What the input reports.
    pub fn skip_to(&mut self, line_number: u64) -> io::Result<()> {
        let mut skipped = Vec::new();
        while self.line_number + 1 < line_number {
            skipped.clear();
            if self.append_line(&mut skipped)? == LineEnd::End {
                break;
            }
        }
        Ok(())
    }

    /// Gives back whole lines that were read last, to be read again.
    pub fn put_back(&mut self, lines: &[u8]) {
        let rest = self.put_back.split_off(self.put_back_at.min(self.put_back.len()));
        self.put_back.clear();
        self.put_back.extend_from_slice(lines);
        self.put_back.extend_from_slice(&rest);
        self.put_back_at = 0;
        let count = lines.split_inclusive(|byte| *byte == b'\n').count();
        self.line_number -= count as u64;
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |n| n + 1);
            self.input.consume(length);
            self.bytes_read += length as u64;
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// A line without its end of line.
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    fn all(input: &[u8]) -> Vec<(u64, LineEnd, usize)> {
        let mut lines = Lines { line_bytes_max: LIMIT, ..Lines::new(input) };
        let mut found = Vec::new();
        loop {
            let mut line = Vec::new();
            let end = lines.append_line(&mut line).unwrap();
            if end == LineEnd::End {
                return found;
            }
            found.push((lines.line_number(), end, without_end(&line).len()));
        }
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let found = all(b"ab\r\n\nc");
        assert_eq!(found, [(1, LineEnd::Line, 2), (2, LineEnd::Line, 0), (3, LineEnd::Line, 1)]);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut input = vec![b'x'; 3 * LIMIT];
        input.extend_from_slice(b"\nshort\n");
        let found = all(&input);
        assert_eq!(found[0], (1, LineEnd::TooLong, LIMIT));
        assert_eq!(found[1], (2, LineEnd::Line, 5));
    }

    #[test]
    fn lines_are_passed_over_up_to_a_number() {
        for (number, left) in [(0, "a"), (1, "a"), (3, "c"), (4, ""), (9, "")] {
            let mut lines = Lines::new(&b"a\nb\nc\n"[..]);
            lines.skip_to(number).unwrap();
            let mut line = Vec::new();
            lines.append_line(&mut line).unwrap();
            assert_eq!(without_end(&line), left.as_bytes(), "{number}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_left_out() {
        assert_eq!(all("\u{feff}id\n".as_bytes()), [(1, LineEnd::Line, 2)]);
    }

    #[test]
    fn lines_put_back_come_again_under_their_numbers() {
        let mut lines = Lines::new(&b"1\n2\n3\n4\n"[..]);
        let mut read = Vec::new();
        for _ in 0..3 {
            lines.append_line(&mut read).unwrap();
        }
        lines.put_back(b"2\n3\n");
        let mut again = Vec::new();
        lines.append_line(&mut again).unwrap();
        assert_eq!((again.as_slice(), lines.line_number()), (&b"2\n"[..], 2));
        lines.put_back(b"2\n");
        let mut rest = Vec::new();
        while lines.append_line(&mut rest).unwrap() != LineEnd::End {}
        assert_eq!((rest.as_slice(), lines.line_number()), (&b"2\n3\n4\n"[..], 4));
    }
}
