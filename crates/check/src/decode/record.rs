//! Records: what the log says about rows, tables and counters.

use super::input::Input;

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record<'b> {
    Row(Row<'b>),
    /// The definitions and rows of one transaction; see [`group_records`].
    Group(&'b [u8]),
    CreateTable {
        object: u32,
        definition: &'b [u8],
    },
    AlterTable {
        object: u32,
        definition: &'b [u8],
    },
    DropTable {
        object: u32,
    },
    TruncateTable {
        object: u32,
        new_object: u32,
    },
    Sequence {
        table: u32,
        column: u32,
        mark: u64,
    },
    /// A change whose rows are not logged.
    Tick,
    /// A piece of a large transaction; its rows as in a group.
    Piece {
        id: u64,
        rows: &'b [u8],
    },
    /// A large transaction writes to an object that it has made.
    PrivateObject {
        object: u32,
        definition: &'b [u8],
    },
    /// The commit of a large transaction.
    LargeCommit {
        id: u64,
    },
}

/// Numbers of large transactions are below it.
pub(crate) const LARGE_IDS: u64 = 1 << 36;
/// Numbers of their pieces are below it.
pub(crate) const LARGE_PIECES: u64 = 1 << 25;

/// What one record says about one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row<'b> {
    pub(crate) object: u32,
    pub(crate) key: &'b [u8],
    pub(crate) change: Change<'b>,
}

/// What becomes of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'b> {
    /// It has this row, as an elided one.
    PutElided {
        /// The elided row.
        row: &'b [u8],
        /// Whether it begins with its version; else it is of the table's first.
        names_version: bool,
    },
    /// It has this row.
    Put(&'b [u8]),
    /// It has none any more.
    Remove,
    /// What the pieces before have said of it does not count.
    TakeBack,
}

/// Reads the payload of a record.
pub(crate) fn read_record(payload: &[u8]) -> Option<Record<'_>> {
    let mut input = Input::new(payload);
    let number = |input: &mut Input<'_>| u32::try_from(input.varint()?).ok();
    let record = match input.u8()? {
        1..=3 | 10 | 14 => return read_row(payload).map(Record::Row),
        4 => return Some(Record::Group(input.rest())),
        5 => {
            let object = number(&mut input)?;
            return Some(Record::CreateTable { object, definition: input.rest() });
        }
        11 => {
            let object = number(&mut input)?;
            return Some(Record::AlterTable { object, definition: input.rest() });
        }
        15 => {
            let object = number(&mut input)?;
            return Some(Record::PrivateObject { object, definition: input.rest() });
        }
        6 => Record::DropTable { object: number(&mut input)? },
        7 => Record::TruncateTable { object: number(&mut input)?, new_object: number(&mut input)? },
        8 => Record::Sequence {
            table: number(&mut input)?,
            column: number(&mut input)?,
            mark: input.varint()?,
        },
        9 => Record::Tick,
        12 => {
            let id = input.varint().filter(|id| (1..LARGE_IDS).contains(id))?;
            input.varint().filter(|piece| *piece < LARGE_PIECES)?;
            return Some(Record::Piece { id, rows: input.rest() });
        }
        13 => {
            let id = input.varint().filter(|id| (1..LARGE_IDS).contains(id))?;
            while !input.is_empty() {
                number(&mut input)?;
            }
            Record::LargeCommit { id }
        }
        _ => return None,
    };
    input.is_empty().then_some(record)
}

fn read_row(payload: &[u8]) -> Option<Row<'_>> {
    let mut input = Input::new(payload);
    let kind = input.u8()?;
    let object = u32::try_from(input.varint()?).ok()?;
    let key = input.counted()?;
    let change = match kind {
        1 => Change::PutElided { row: input.rest(), names_version: false },
        10 => Change::PutElided { row: input.rest(), names_version: true },
        2 => Change::Put(input.rest()),
        3 if input.is_empty() => Change::Remove,
        14 if input.is_empty() => Change::TakeBack,
        _ => return None,
    };
    Some(Row { object, key, change })
}

/// Hands over the records of a group: definitions, then rows. The error says what is wrong with it.
pub(crate) fn group_records<'b>(
    body: &'b [u8],
    mut record: impl FnMut(Record<'b>),
) -> Result<(), &'static str> {
    const SHORT: &str = "the group ends inside a record";
    let mut input = Input::new(body);
    let count = input.varint().ok_or(SHORT)?;
    let checksum = input.u32().ok_or(SHORT)?;
    if crc32c::crc32c(input.rest()) != checksum {
        return Err("the group fails its checksum");
    }
    let (mut found, mut rows) = (0, 0);
    while !input.is_empty() {
        let payload = input.counted().ok_or(SHORT)?;
        match read_record(payload).ok_or("a record of the group does not decode")? {
            Record::Group(_) | Record::Piece { .. } => return Err("the group holds a group"),
            Record::PrivateObject { .. } => return Err("the group holds what is in none"),
            row @ Record::Row(_) => {
                rows += 1;
                record(row);
            }
            _ if rows > 0 => return Err("the group holds a definition behind a row"),
            definition => record(definition),
        }
        found += 1;
    }
    if found == count { Ok(()) } else { Err("the group has more or fewer records than it says") }
}
