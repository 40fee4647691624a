//! Where the engine and its log meet: records and their bytes. Byte by byte: `docs/log-format.md`.
//!
//! Records are logical: they name an object and a key, never a leaf or a place. Replaying one
//! twice, or onto an image that has it already, changes nothing.

use crate::node::leaf::LargeOwner;
use crate::units::ObjectId;

/// What a record says; its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// A row by the columns that differ from their constant defaults.
    PutElided = 1,
    /// A row with all its value bytes.
    Put = 2,
    /// A key that is gone.
    Remove = 3,
    /// The definitions and rows of one transaction: all or none.
    Group = 4,
    /// A new table.
    CreateTable = 5,
    /// A table that is gone.
    DropTable = 6,
    /// A table emptied: its rows are now those of a new object.
    TruncateTable = 7,
    /// Up to where generated keys may have been handed out.
    Sequence = 8,
    /// Nothing: the place in the commit order of changes whose rows are not logged.
    Tick = 9,
    /// As `PutElided`, of a table that was altered: the version of the row comes first.
    PutElidedVersion = 10,
    /// A table with another definition: name and columns.
    AlterTable = 11,
    /// Some of the rows of a large transaction, which are nothing without its commit.
    Piece = 12,
    /// The commit of a large transaction.
    LargeCommit = 13,
    /// A key on which a large transaction takes back what its pieces before have said.
    TakeBack = 14,
    /// A large transaction writes to an object that it has made: its commit makes it a table's.
    PrivateObject = 15,
}

/// The record of a change whose rows are not logged.
pub(crate) const TICK: &[u8] = &[RecordKind::Tick as u8];

impl RecordKind {
    fn from_byte(byte: u8) -> Option<RecordKind> {
        use RecordKind::PrivateObject;
        use RecordKind::{AlterTable, CreateTable, DropTable, LargeCommit, Piece, TruncateTable};
        use RecordKind::{
            Group, Put, PutElided, PutElidedVersion, Remove, Sequence, TakeBack, Tick,
        };
        let rows = [PutElided, PutElidedVersion, Put, Remove, TakeBack, Group, Piece, LargeCommit];
        let others = [CreateTable, DropTable, TruncateTable, AlterTable, Sequence, Tick];
        let others = others.into_iter().chain([PrivateObject]);
        rows.into_iter().chain(others).find(|kind| *kind as u8 == byte)
    }
}

/// Appends an unsigned number, seven bits a byte, lowest first.
pub(crate) fn push_varint(number: u64, out: &mut Vec<u8>) {
    each_varint_byte(number, |byte| out.push(byte));
}

#[inline]
fn each_varint_byte(mut number: u64, mut push: impl FnMut(u8)) {
    while number >= 0x80 {
        push(number as u8 | 0x80);
        number >>= 7;
    }
    push(number as u8);
}

/// How many bytes [`push_varint`] takes for a number.
fn varint_bytes(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// Reads what [`push_varint`] wrote and takes it off the front.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A record about tables: object numbers, then whatever belongs to its kind.
pub(crate) fn definition_record(kind: RecordKind, objects: &[ObjectId], rest: &[u8]) -> Vec<u8> {
    let mut record = vec![kind as u8];
    for object in objects {
        push_varint(u64::from(object.number()), &mut record);
    }
    record.extend_from_slice(rest);
    record
}

/// The record of the mark of a generated column.
pub(crate) fn sequence_record(table: u32, column: usize, reserved: u64) -> Vec<u8> {
    let mut record = vec![RecordKind::Sequence as u8];
    push_varint(u64::from(table), &mut record);
    push_varint(column as u64, &mut record);
    push_varint(reserved, &mut record);
    record
}

/// The start of a row record: kind, object and key length; key and body follow.
///
/// Where it is used, not on the heap: there it may share its cache line with what other sessions read.
#[derive(Clone, Copy)]
pub(crate) struct RowHeader {
    bytes: [u8; RowHeader::BYTES_MAX],
    len: usize,
}

impl RowHeader {
    /// A kind, and two numbers of five and ten bytes.
    const BYTES_MAX: usize = 16;

    #[inline]
    pub(crate) fn new(kind: RecordKind, object: ObjectId, key_bytes: usize) -> Self {
        let mut header = Self { bytes: [0; Self::BYTES_MAX], len: 0 };
        header.push(kind as u8);
        header.push_varint(u64::from(object.number()));
        header.push_varint(key_bytes as u64);
        header
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn push_varint(&mut self, number: u64) {
        each_varint_byte(number, |byte| self.push(byte));
    }
}

/// Appends a row record with its length in front, as a group holds it.
pub(crate) fn push_row(
    kind: RecordKind,
    object: ObjectId,
    key: &[u8],
    body: &[u8],
    out: &mut Vec<u8>,
) {
    let (number, key_bytes) = (u64::from(object.number()), key.len() as u64);
    let bytes = 1 + varint_bytes(number) + varint_bytes(key_bytes) + key.len() + body.len();
    push_varint(bytes as u64, out);
    out.push(kind as u8);
    push_varint(number, out);
    push_varint(key_bytes, out);
    out.extend_from_slice(key);
    out.extend_from_slice(body);
}

/// A record as replay sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    Row(RowRecord<'a>),
    /// The records of one transaction, to be taken apart with [`group_records`].
    Group(&'a [u8]),
    CreateTable {
        definition: &'a [u8],
        object: ObjectId,
    },
    AlterTable {
        definition: &'a [u8],
        object: ObjectId,
    },
    PrivateObject {
        definition: &'a [u8],
        object: ObjectId,
    },
    DropTable {
        object: ObjectId,
    },
    TruncateTable {
        object: ObjectId,
        new_object: ObjectId,
    },
    Sequence {
        table: u32,
        column: u32,
        reserved: u64,
    },
    Tick,
    /// A piece of a large transaction: `rows` as in a group.
    Piece {
        id: u64,
        piece: u32,
        rows: &'a [u8],
    },
    /// `objects`: each a varint, of [`commit_objects`].
    LargeCommit {
        id: u64,
        objects: &'a [u8],
    },
}

/// One row of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowRecord<'a> {
    pub(crate) object: ObjectId,
    pub(crate) key: &'a [u8],
    pub(crate) change: RowChange<'a>,
}

/// What happens to the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowChange<'a> {
    PutElided(&'a [u8]),
    PutElidedVersion(&'a [u8]),
    Put(&'a [u8]),
    Remove,
    TakeBack,
}

/// Reads a record; `None` if it is not one.
pub(crate) fn read_record(payload: &[u8]) -> Option<Record<'_>> {
    let (first, mut rest) = payload.split_first()?;
    let object = |rest: &mut &[u8]| u32::try_from(take_varint(rest)?).ok().and_then(ObjectId::new);
    Some(match RecordKind::from_byte(*first)? {
        RecordKind::PutElided
        | RecordKind::PutElidedVersion
        | RecordKind::Put
        | RecordKind::Remove
        | RecordKind::TakeBack => Record::Row(read_row(payload)?),
        RecordKind::Piece => {
            let id = take_varint(&mut rest).filter(|id| *id < LargeOwner::IDS)?;
            let piece = u32::try_from(take_varint(&mut rest)?).ok()?;
            let piece = Some(piece).filter(|piece| *piece < LargeOwner::PIECES)?;
            Record::Piece { id, piece, rows: rest }
        }
        RecordKind::LargeCommit => {
            let id = take_varint(&mut rest).filter(|id| *id < LargeOwner::IDS)?;
            commit_objects(rest)?;
            Record::LargeCommit { id, objects: rest }
        }
        RecordKind::Group => Record::Group(rest),
        RecordKind::CreateTable => {
            let object = object(&mut rest)?;
            Record::CreateTable { definition: rest, object }
        }
        RecordKind::AlterTable => {
            let object = object(&mut rest)?;
            Record::AlterTable { definition: rest, object }
        }
        RecordKind::PrivateObject => {
            let object = object(&mut rest)?;
            Record::PrivateObject { definition: rest, object }
        }
        RecordKind::DropTable => Record::DropTable { object: object(&mut rest)? },
        RecordKind::TruncateTable => {
            let (object, new_object) = (object(&mut rest)?, object(&mut rest)?);
            Record::TruncateTable { object, new_object }
        }
        RecordKind::Sequence => {
            let table = u32::try_from(take_varint(&mut rest)?).ok()?;
            let column = u32::try_from(take_varint(&mut rest)?).ok()?;
            Record::Sequence { table, column, reserved: take_varint(&mut rest)? }
        }
        RecordKind::Tick if rest.is_empty() => Record::Tick,
        RecordKind::Tick => return None,
    })
}

fn read_row(payload: &[u8]) -> Option<RowRecord<'_>> {
    let (first, mut rest) = payload.split_first()?;
    let object = ObjectId::new(u32::try_from(take_varint(&mut rest)?).ok()?)?;
    let key_bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
    let (key, body) = rest.split_at_checked(key_bytes)?;
    let change = match RecordKind::from_byte(*first)? {
        RecordKind::PutElided => RowChange::PutElided(body),
        RecordKind::PutElidedVersion => RowChange::PutElidedVersion(body),
        RecordKind::Put => RowChange::Put(body),
        RecordKind::Remove if body.is_empty() => RowChange::Remove,
        RecordKind::TakeBack if body.is_empty() => RowChange::TakeBack,
        _ => return None,
    };
    Some(RowRecord { object, key, change })
}

/// Starts a group: `records` are finished, each behind its length, definitions in front of rows. The
/// group states how many there are and a checksum over all of them.
pub(crate) fn group_header(count: usize, records: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(GROUP_HEADER_BYTES_MAX);
    begin_group(count, &mut header);
    let checksum = header.len() - GROUP_CHECKSUM_BYTES;
    header[checksum..].copy_from_slice(&crc32c::crc32c(records).to_le_bytes());
    header
}

const GROUP_CHECKSUM_BYTES: usize = 4;
/// Kind, the longest count, checksum.
const GROUP_HEADER_BYTES_MAX: usize = 1 + 10 + GROUP_CHECKSUM_BYTES;

/// Starts a group of `count` records that will stand behind it, with space for their checksum, which
/// [`end_group`] fills in. Returns where they begin.
pub(crate) fn begin_group(count: usize, out: &mut Vec<u8>) -> usize {
    out.push(RecordKind::Group as u8);
    push_varint(count as u64, out);
    out.extend_from_slice(&[0; GROUP_CHECKSUM_BYTES]);
    out.len()
}

/// The records that begin at `records` are all there.
pub(crate) fn end_group(group: &mut [u8], records: usize) {
    let (header, records) = group.split_at_mut(records);
    let checksum = header.len() - GROUP_CHECKSUM_BYTES;
    header[checksum..].copy_from_slice(&crc32c::crc32c(records).to_le_bytes());
}

/// The records of a group, none of which is a group, if count and checksum are right.
pub(crate) fn group_records(mut body: &[u8]) -> Option<Vec<Record<'_>>> {
    let count = take_varint(&mut body)?;
    let (checksum, mut records) = body.split_first_chunk::<4>()?;
    if crc32c::crc32c(records).to_le_bytes() != *checksum {
        return None;
    }
    let mut found = Vec::new();
    while !records.is_empty() {
        let bytes = usize::try_from(take_varint(&mut records)?).ok()?;
        let (record, rest) = records.split_at_checked(bytes)?;
        let is_single =
            |record: &Record<'_>| !matches!(record, Record::Group(_) | Record::Piece { .. });
        found.push(read_record(record).filter(is_single)?);
        records = rest;
    }
    (found.len() as u64 == count).then_some(found)
}

/// Starts a piece of a large transaction: `rows` are finished, each behind its length.
pub(crate) fn piece_header(owner: LargeOwner, count: usize, rows: &[u8]) -> Vec<u8> {
    let mut header = vec![RecordKind::Piece as u8];
    push_varint(owner.id, &mut header);
    push_varint(u64::from(owner.piece), &mut header);
    header.extend_from_slice(&group_header(count, rows)[1..]);
    header
}

/// The commit of a large transaction that has changed rows of these objects.
pub(crate) fn large_commit_record(id: u64, objects: &[ObjectId]) -> Vec<u8> {
    let mut record = vec![RecordKind::LargeCommit as u8];
    push_varint(id, &mut record);
    objects.iter().for_each(|object| push_varint(u64::from(object.number()), &mut record));
    record
}

/// The objects of a [`LargeCommit`](Record::LargeCommit).
pub(crate) fn commit_objects(mut bytes: &[u8]) -> Option<Vec<ObjectId>> {
    let mut objects = Vec::new();
    while !bytes.is_empty() {
        objects.push(ObjectId::new(u32::try_from(take_varint(&mut bytes)?).ok()?)?);
    }
    Some(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row_bytes(kind: RecordKind, object: ObjectId, key: &[u8], body: &[u8]) -> Vec<u8> {
        [RowHeader::new(kind, object, key.len()).as_bytes(), key, body].concat()
    }

    proptest! {
        #[test]
        fn a_row_comes_back(object in 1..=u32::MAX, key in proptest::collection::vec(any::<u8>(), 0..300),
                            body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let object = ObjectId::new(object).unwrap();
            let bytes = row_bytes(RecordKind::Put, object, &key, &body);
            let expected = RowRecord {
                object, key: &key, change: RowChange::Put(&body),
            };
            prop_assert_eq!(read_record(&bytes), Some(Record::Row(expected)));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(Record::Group(body)) = read_record(&bytes) {
                let _ = group_records(body);
            }
        }
    }

    #[test]
    fn a_group_with_a_row_less_is_refused() {
        let row = row_bytes(RecordKind::Put, ObjectId::new(1).unwrap(), b"k", b"v");
        let mut rows = vec![row.len() as u8];
        rows.extend_from_slice(&row);
        let whole = [group_header(1, &rows), rows.clone()].concat();
        assert_eq!(group_records(&whole[1..]).map(|rows| rows.len()), Some(1));
        let twice = [group_header(2, &rows), rows].concat();
        assert_eq!(group_records(&twice[1..]), None);
    }
}
