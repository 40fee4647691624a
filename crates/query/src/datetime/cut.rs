//! Text as fields, by the characters that they are made of.

use super::{Bad, Decoded};

/// More of them are no date.
const FIELDS_MAX: usize = 25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Date,
    Time,
    Offset,
    Word,
}

/// A field, in lower case.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

struct Cutter<'t> {
    rest: &'t [u8],
    text: String,
}

impl Cutter<'_> {
    fn next(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn take(&mut self) {
        if let [first, rest @ ..] = self.rest {
            self.text.push(char::from(first.to_ascii_lowercase()));
            self.rest = rest;
        }
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while !self.rest.is_empty() && wanted(self.next()) {
            self.take();
        }
    }

    /// What begins with a digit.
    fn number(&mut self) -> Kind {
        self.take_while(|byte| byte.is_ascii_digit());
        match self.next() {
            b':' => {
                self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
                Kind::Time
            }
            between @ (b'-' | b'/' | b'.') => {
                self.take();
                if !self.next().is_ascii_digit() {
                    self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == between);
                    return Kind::Date;
                }
                self.take_while(|byte| byte.is_ascii_digit());
                if self.next() == between {
                    self.take_while(|byte| byte.is_ascii_digit() || byte == between);
                    return Kind::Date;
                }
                // One point makes a fraction.
                if between == b'.' { Kind::Number } else { Kind::Date }
            }
            _ => Kind::Number,
        }
    }

    /// What begins with a letter: a name may have signs in it.
    fn word(&mut self) -> Kind {
        self.take_while(|byte| byte.is_ascii_alphabetic());
        let is_name = match self.next() {
            b'-' | b'/' | b'.' => true,
            b'+' | b'0'..=b'9' => !super::words::is_known(&self.text),
            _ => false,
        };
        if !is_name {
            return Kind::Word;
        }
        self.take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        });
        Kind::Date
    }
}

pub(crate) fn fields(written: &str) -> Decoded<Vec<Field>> {
    let mut fields = Vec::new();
    let mut cutter = Cutter { rest: written.as_bytes(), text: String::new() };
    loop {
        let kind = match cutter.next() {
            0 if cutter.rest.is_empty() => return Ok(fields),
            space if space.is_ascii_whitespace() || space == b'\x0b' => {
                cutter.rest = &cutter.rest[1..];
                continue;
            }
            b'0'..=b'9' => cutter.number(),
            b'.' => {
                cutter.take();
                cutter.take_while(|byte| byte.is_ascii_digit());
                Kind::Number
            }
            letter if letter.is_ascii_alphabetic() => cutter.word(),
            b'+' | b'-' => {
                cutter.take();
                while cutter.next().is_ascii_whitespace() {
                    cutter.rest = &cutter.rest[1..];
                }
                match cutter.next() {
                    b'0'..=b'9' => {
                        cutter.take_while(|byte| {
                            byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-')
                        });
                        Kind::Offset
                    }
                    letter if letter.is_ascii_alphabetic() => {
                        cutter.take_while(|byte| byte.is_ascii_alphabetic());
                        Kind::Word
                    }
                    _ => return Err(Bad::Format),
                }
            }
            other if other.is_ascii_punctuation() => {
                cutter.rest = &cutter.rest[1..];
                continue;
            }
            _ => return Err(Bad::Format),
        };
        let text = std::mem::take(&mut cutter.text);
        fields.push(Field { kind, text });
        if fields.len() > FIELDS_MAX {
            return Err(Bad::Format);
        }
    }
}
