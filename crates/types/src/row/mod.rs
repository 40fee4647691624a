//! The stored row: what a table keeps for each key.
//!
//! Step 1 of an insert ends here: [`Schema::encode_row`](crate::Schema::encode_row) fills an
//! [`EncodedRow`]; the tree places `key` and `row`, the log takes `key` and `elided`.
//!
//! Row bytes, all numbers little-endian (n = columns outside the key, in declared order):
//!
//! ```text
//! 0     u16  schema version
//! 2     ceil(n/8) bytes: bit i (lowest bit of the first byte first) set: column i is NULL
//! ...   the columns of fixed width, one after the other, without gaps
//! ...   u16 for each column of variable width: where its bytes end, counted from the next line
//! ...   the bytes of the columns of variable width
//! ```
//!
//! boolean: 0 or 1. Integers, floats, dates and times: their bytes. decimal: the number times
//! 10^scale as a signed integer of 8 bytes (precision up to 18) or 12. char(n): n bytes, filled up
//! with blanks; n counts bytes of UTF-8. numeric: see [`Numeric`](crate::Numeric::write).
//! uuid: 16 bytes as written. A NULL column of fixed width is
//! all zero bytes; one of variable width is empty.
//!
//! The elided form (for the log): which columns differ from their constant default, and only those.
//!
//! ```text
//! 0     ceil((n+1)/8) bytes: bit 0 set: a NULL bitmap follows; bit i+1 set: column i is present
//! ...   if bit 0 is set: the row's NULL bitmap
//! ...   the present columns that are not NULL, in order: fixed width as in the row, except
//!       char(n): length (one byte for n up to 255, else u16) and the text without trailing blanks;
//!       variable width: u16 length and bytes
//! ```
//!
//! Columns with a computed default, or with none, are always present. The schema version is not in it:
//! it is the table's first, or, once the table was altered, it stands in front as a u16, and the log
//! record says so. Without bit 0 every present column is not NULL, and the
//! others are as in the row of defaults.
//!
//! A row that is too large for that is *wide* (n and columns as above):
//!
//! ```text
//! 0     u16  schema version, bit 15 set
//! 2     ceil(n/8) bytes: which columns are NULL
//! ...   ceil(n/8) bytes: which columns of variable width stand elsewhere
//! ...   the columns of fixed width
//! ...   u32 for each column of variable width: where its bytes end, counted from the next line
//! ...   the bytes of the columns of variable width; of one that stands elsewhere its id (16 bytes) and
//!       a u32, how many bytes it has
//! ```
//!
//! A *whole* row has nothing elsewhere: rows are whole when they are encoded, and when they are read. What is stored
//! has its longest columns [elsewhere](crate::Schema::move_out), so that key and row fit into a leaf. A wide row has no
//! elided form.

mod decode;
mod elide;
mod encode;
pub(crate) mod field;
mod wide;

pub use decode::{RowView, StoredBytes};
pub use wide::LongValue;

/// Most bytes of key and row together, as they are stored.
pub const ROW_BYTES_MAX: usize = 8000;

/// Most bytes of a whole row.
pub const WHOLE_ROW_BYTES_MAX: usize = 256 << 20;

/// The bytes of one row. Keep one for each session and use it again: its buffers are only cleared.
#[derive(Debug, Clone, Default)]
pub struct EncodedRow {
    /// The key, ordered as its values are.
    pub key: Vec<u8>,
    /// All other columns.
    pub row: Vec<u8>,
    /// All other columns without those at their constant default.
    pub elided: Vec<u8>,
}

impl EncodedRow {
    /// Empty buffers.
    pub fn new() -> EncodedRow {
        EncodedRow::default()
    }

    #[inline]
    fn clear(&mut self) {
        self.key.clear();
        self.row.clear();
        self.elided.clear();
    }
}
