//! What objects hold, byte by byte: `docs/backup.md`.
//!
//! Invariants
//! 1. Every byte of an object is under its checksum, and the object says of which history it is and where it belongs.
//! 2. An object with log blocks has nothing in it but what the log says: of the same log the same bytes.

use bytes::Bytes;
use onrush::LogPosition;
use onrush_log::{LogPart, follow_blocks};

use crate::error::ArchiveError;

const MAGIC: &[u8; 8] = b"ONRUSHOB";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 40;
const LOG_HEADER_BYTES: usize = 16 + 2 * LogPosition::BYTES + 16;
/// Longer than every object of the log that has no blocks, and shorter than each that has.
pub(crate) const MARKER_BYTES_MAX: u64 = 4096;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Blocks of the log.
    Log = 1,
    /// The log goes on elsewhere: what is between was not archived.
    GoesOn = 2,
    /// Nothing of this history follows.
    Closed = 3,
    /// Pages of a backup.
    Pages = 4,
    /// What a backup is made of.
    Manifest = 5,
}

impl Kind {
    fn of(number: u32) -> Option<Kind> {
        let all = [Kind::Log, Kind::GoesOn, Kind::Closed, Kind::Pages, Kind::Manifest];
        all.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Where no position in a log is: the archive begins with what is named by it.
pub(crate) const BEGINNING: LogPosition = LogPosition {
    lsn: onrush::Lsn::ZERO,
    segment: 0,
    offset: 0,
    incarnation: 0,
    previous_checksum: None,
};

/// The name of the object of the log that begins where another one has ended.
pub(crate) fn log_name(from: &LogPosition) -> String {
    format!("log/{:016}-{:012}", from.segment, from.offset)
}

/// An object of the given body.
pub(crate) fn seal(kind: Kind, history: u128, parts: &[&[u8]]) -> Bytes {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut object = Vec::with_capacity(HEADER_BYTES + length);
    object.extend_from_slice(MAGIC);
    object.extend_from_slice(&VERSION.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&history.to_le_bytes());
    object.extend_from_slice(&(kind as u32).to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    parts.iter().for_each(|part| object.extend_from_slice(part));
    let checksum = checksum(&object);
    object[12..16].copy_from_slice(&checksum.to_le_bytes());
    object.into()
}

fn checksum(object: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&object[..12]), &object[16..])
}

/// The kind and the body of an object.
pub(crate) fn open<'o>(
    name: &str,
    history: u128,
    object: &'o [u8],
) -> Result<(Kind, &'o [u8]), ArchiveError> {
    let damaged = |what: &str| Err(damaged(name, what));
    if object.len() < HEADER_BYTES || !object.starts_with(MAGIC) {
        return damaged("it does not begin as an object of an archive");
    }
    let number = |at: usize| {
        u32::from_le_bytes([object[at], object[at + 1], object[at + 2], object[at + 3]])
    };
    if number(12) != checksum(object) {
        return damaged("its checksum differs");
    }
    if number(8) != VERSION {
        return damaged("it was written by a newer version of Onrush");
    }
    if object[16..32] != history.to_le_bytes() {
        return damaged("it is of another history");
    }
    match Kind::of(number(32)) {
        Some(kind) => Ok((kind, &object[HEADER_BYTES..])),
        None => damaged("it is of a kind that this version does not know"),
    }
}

pub(crate) fn damaged(name: &str, what: &str) -> ArchiveError {
    ArchiveError::Damaged { object: name.to_owned(), what: what.to_owned() }
}

/// An object in `log/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogObject {
    pub(crate) kind: Kind,
    pub(crate) database_id: u128,
    pub(crate) from: LogPosition,
    /// Where the next object begins.
    pub(crate) to: LogPosition,
    /// The segment in which the blocks lie, and the bytes of its file.
    pub(crate) segment: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) blocks: Bytes,
}

impl LogObject {
    pub(crate) fn of_part(database_id: u128, part: LogPart) -> LogObject {
        let LogPart { from, to, segment, segment_bytes, bytes } = part;
        LogObject {
            kind: Kind::Log,
            database_id,
            from,
            to,
            segment,
            segment_bytes,
            blocks: bytes.into(),
        }
    }

    /// An object without blocks.
    pub(crate) fn marker(
        kind: Kind,
        database_id: u128,
        from: LogPosition,
        to: LogPosition,
    ) -> LogObject {
        let (segment, segment_bytes, blocks) = (to.segment, 0, Bytes::new());
        LogObject { kind, database_id, from, to, segment, segment_bytes, blocks }
    }

    pub(crate) fn name(&self) -> String {
        log_name(&self.from)
    }

    pub(crate) fn seal(&self, history: u128) -> Bytes {
        let mut header = Vec::with_capacity(LOG_HEADER_BYTES);
        header.extend_from_slice(&self.database_id.to_le_bytes());
        header.extend_from_slice(&self.from.encode());
        header.extend_from_slice(&self.to.encode());
        header.extend_from_slice(&self.segment.to_le_bytes());
        header.extend_from_slice(&self.segment_bytes.to_le_bytes());
        seal(self.kind, history, &[&header, &self.blocks])
    }

    /// Reads an object, and proves that its blocks are whole and follow each other.
    pub(crate) fn open(
        name: &str,
        history: u128,
        object: &Bytes,
    ) -> Result<LogObject, ArchiveError> {
        let (kind, body) = open(name, history, object)?;
        let Some((header, blocks)) = body.split_at_checked(LOG_HEADER_BYTES) else {
            return Err(damaged(name, "it ends too early"));
        };
        let position = |at: usize| {
            let mut bytes = [0; LogPosition::BYTES];
            bytes.copy_from_slice(&header[at..at + LogPosition::BYTES]);
            LogPosition::decode(&bytes)
        };
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let mut id = [0; 16];
        id.copy_from_slice(&header[..16]);
        let found = LogObject {
            kind,
            database_id: u128::from_le_bytes(id),
            from: position(16),
            to: position(16 + LogPosition::BYTES),
            segment: number(LOG_HEADER_BYTES - 16),
            segment_bytes: number(LOG_HEADER_BYTES - 8),
            blocks: object.slice_ref(blocks),
        };
        if found.name() != name {
            return Err(damaged(name, "it belongs to another place"));
        }
        if kind == Kind::Log {
            let followed = follow_blocks(found.database_id, found.segment, &found.from, blocks);
            let (to, used) = followed.map_err(|fault| damaged(name, &fault.to_string()))?;
            if to != found.to || used != blocks.len() {
                return Err(damaged(name, "its blocks end elsewhere than it says"));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_is_seen() {
        let to = LogPosition { lsn: onrush::Lsn(77), segment: 3, offset: 8192, ..BEGINNING };
        let marker = LogObject::marker(Kind::GoesOn, 5, BEGINNING, to);
        let (name, bytes) = (marker.name(), marker.seal(9));
        assert_eq!(LogObject::open(&name, 9, &bytes).ok(), Some(marker));
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            assert!(LogObject::open(&name, 9, &flipped.into()).is_err(), "byte {at}");
        }
        assert!(LogObject::open(&name, 8, &bytes).is_err());
        assert!(LogObject::open("log/elsewhere", 9, &bytes).is_err());
    }

    #[test]
    fn names_stand_in_the_order_of_the_log() {
        let at = |segment, offset| log_name(&LogPosition { segment, offset, ..BEGINNING });
        let names =
            [at(0, 0), at(1, 4096), at(1, 65_536), at(2, 4096), at(10, 4096), at(100, 1 << 33)];
        assert!(names.is_sorted(), "{names:?}");
    }
}
