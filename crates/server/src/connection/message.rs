//! The messages of the extended protocol, read with every length checked. The protocol library's
//! decoders of these trust the counts inside a message and copy each parameter.

use std::ops::Range;

use crate::error::{Result, SqlError};
use crate::values::Formats;

/// Reads a message from its beginning.
struct Reader<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Reader<'m> {
    fn new(message: &'m [u8]) -> Reader<'m> {
        Reader { message, at: 0 }
    }

    fn bytes(&mut self, count: usize) -> Result<Range<usize>> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.message.len());
        let range = self.at..end.ok_or_else(too_short)?;
        self.at = range.end;
        Ok(range)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let range = self.bytes(N)?;
        self.message[range].try_into().map_err(|_| too_short())
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn int16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    fn int32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A count, each of whose things takes at least `bytes`.
    fn count(&mut self, bytes: usize) -> Result<usize> {
        let count = usize::from(u16::from_be_bytes(self.array()?));
        if count * bytes > self.message.len() - self.at { Err(too_short()) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<&'m str> {
        let rest = &self.message[self.at..];
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(too_short)?;
        self.at += end + 1;
        let not_utf8 = |_| {
            SqlError::new(
                crate::error::state::NOT_IN_REPERTOIRE,
                "a message has text that is not UTF-8",
            )
        };
        std::str::from_utf8(&rest[..end]).map_err(not_utf8)
    }

    /// Everything must have been read.
    fn end<T>(self, read: T) -> Result<T> {
        if self.at == self.message.len() {
            return Ok(read);
        }
        Err(SqlError::protocol("a message is longer than what it says"))
    }
}

fn too_short() -> SqlError {
    SqlError::protocol("a message is shorter than what it says")
}

/// Prepares a statement.
pub(super) struct Parse<'m> {
    pub(super) name: &'m str,
    pub(super) text: &'m str,
    pub(super) oids: Vec<u32>,
}

impl<'m> Parse<'m> {
    pub(super) fn read(message: &'m [u8]) -> Result<Parse<'m>> {
        let mut reader = Reader::new(message);
        let (name, text) = (reader.text()?, reader.text()?);
        let count = reader.count(4)?;
        let mut oids = Vec::with_capacity(count);
        for _ in 0..count {
            oids.push(u32::from_be_bytes(reader.array()?));
        }
        reader.end(Parse { name, text, oids })
    }
}

/// Gives a prepared statement its parameters.
pub(super) struct Bind<'m> {
    pub(super) portal: &'m str,
    pub(super) statement: &'m str,
    pub(super) formats: Formats,
    /// Where each parameter is in the message; none is NULL.
    pub(super) values: Vec<Option<Range<usize>>>,
    pub(super) result_formats: Vec<bool>,
}

impl<'m> Bind<'m> {
    pub(super) fn read(message: &'m [u8]) -> Result<Bind<'m>> {
        let mut reader = Reader::new(message);
        let (portal, statement) = (reader.text()?, reader.text()?);
        let given = formats(&mut reader)?;
        let count = reader.count(4)?;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(match reader.int32()? {
                -1 => None,
                length => Some(reader.bytes(usize::try_from(length).map_err(|_| too_short())?)?),
            });
        }
        let result_formats = formats(&mut reader)?;
        let formats = for_each(given, count)?;
        reader.end(Bind { portal, statement, formats, values, result_formats })
    }
}

fn formats(reader: &mut Reader<'_>) -> Result<Vec<bool>> {
    let count = reader.count(2)?;
    let mut formats = Vec::with_capacity(count);
    for _ in 0..count {
        formats.push(match reader.int16()? {
            0 => false,
            1 => true,
            other => return Err(SqlError::protocol(format!("there is no format {other}"))),
        });
    }
    Ok(formats)
}

/// None is text for all, one is for all.
pub(super) fn for_each(formats: Vec<bool>, count: usize) -> Result<Formats> {
    match formats.as_slice() {
        [] => Ok(Formats::TEXT),
        [all] => Ok(Formats::All { is_binary: *all }),
        each if each.len() == count => Ok(Formats::Each(formats.into())),
        each => Err(SqlError::new(
            crate::error::state::PROTOCOL_VIOLATION,
            format!("{} formats for {count} values", each.len()),
        )),
    }
}

/// A statement or a portal, by name: what Describe and Close name.
pub(super) enum Named<'m> {
    Statement(&'m str),
    Portal(&'m str),
}

impl<'m> Named<'m> {
    pub(super) fn read(message: &'m [u8]) -> Result<Named<'m>> {
        let mut reader = Reader::new(message);
        let kind = reader.byte()?;
        let name = reader.text()?;
        match kind {
            b'S' => reader.end(Named::Statement(name)),
            b'P' => reader.end(Named::Portal(name)),
            _ => Err(SqlError::protocol("neither a statement nor a portal is named")),
        }
    }
}

/// Runs a portal.
pub(super) struct Execute<'m> {
    pub(super) portal: &'m str,
    /// Most rows to send; none for all.
    pub(super) rows_max: Option<u64>,
}

impl<'m> Execute<'m> {
    pub(super) fn read(message: &'m [u8]) -> Result<Execute<'m>> {
        let mut reader = Reader::new(message);
        let portal = reader.text()?;
        let rows_max = u64::try_from(reader.int32()?).ok().filter(|rows| *rows > 0);
        reader.end(Execute { portal, rows_max })
    }
}

/// A text alone: that of a simple query.
pub(super) fn text(message: &[u8]) -> Result<&str> {
    let mut reader = Reader::new(message);
    let text = reader.text()?;
    reader.end(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_message_is_more_than_an_error(bytes in any::<Vec<u8>>()) {
            let _ = (Parse::read(&bytes).is_ok(), Execute::read(&bytes).is_ok());
            let _ = (Named::read(&bytes).is_ok(), text(&bytes).is_ok());
            if let Ok(bind) = Bind::read(&bytes) {
                for range in bind.values.into_iter().flatten() {
                    prop_assert!(bytes.get(range).is_some());
                }
            }
        }
    }

    #[test]
    fn counts_beyond_the_message_are_refused_before_space_is_made() {
        let message = b"\0\0\0\0\xff\xff";
        assert_eq!(Bind::read(message).err().map(|error| error.state), Some("08P01"));
    }
}
