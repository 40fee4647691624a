//! Long values of rows as those use them who read and write rows: where their pieces are.
//!
//! A row that does not fit into a leaf is stored with its longest values elsewhere ([`Schema::move_out`]), which are
//! kept in pieces, as rows of a table of their own ([`long_values`](onrush_types::long_values)). So pages, log,
//! checkpoints, recovery, snapshots and checks know them as they know any other.
//!
//! Invariants
//! 1. A change of a row and the changes of its pieces are one commit.
//! 2. A piece is never changed. It comes with the row that points to it and goes with it, so who sees a row sees its
//!    pieces by the same view.
//! 3. Whoever defines the table that keeps the pieces has locked the table of the rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onrush_types::long_values::PIECE_BYTES;
use onrush_types::{EncodedRow, LongValue, Schema, StoredBytes, Uuid, Value};

use super::TableEntry;
use crate::error::{Error, Result};

impl TableEntry {
    /// Whether values of its rows may stand elsewhere.
    #[inline]
    pub(crate) fn has_long_values(&self) -> bool {
        self.has_long_values
    }

    /// Whether values of this row stand elsewhere.
    #[inline]
    pub(crate) fn points_elsewhere(&self, row: &[u8]) -> bool {
        self.has_long_values && Schema::is_wide(row)
    }

    /// The table that keeps the long values, which is found by its number when it is first asked for.
    ///
    /// # Errors
    /// There is none; it is gone: the table was altered since.
    pub(crate) fn long_values(
        &self,
        find: impl Fn(u32) -> Option<Arc<TableEntry>>,
    ) -> Result<&Arc<TableEntry>> {
        if let Some(pieces) = self.long_values.get() {
            return Ok(pieces);
        }
        let pieces = self.schema.definition().long_values().and_then(find);
        let pieces = pieces.ok_or_else(|| Error::TableChanged { name: self.name().to_owned() })?;
        Ok(self.long_values.get_or_init(|| pieces))
    }
}

impl TableEntry {
    /// Whether there may be pieces in this table of them: whether somebody has written one since it was made, or the
    /// database was opened.
    pub(crate) fn has_pieces(&self) -> bool {
        self.may_have_pieces.load(Ordering::Relaxed)
    }

    /// Pieces are about to be written to this table of them.
    pub(crate) fn expect_pieces(&self) {
        if !self.may_have_pieces.load(Ordering::Relaxed) {
            self.may_have_pieces.store(true, Ordering::Relaxed);
        }
    }
}

/// How many pieces a value has.
pub(crate) fn piece_count(value: &LongValue) -> u32 {
    // Fewer than 2^32 bytes are in far fewer pieces.
    value.bytes.div_ceil(PIECE_BYTES) as u32
}

/// The key of a piece.
pub(crate) fn piece_key(pieces: &Schema, id: Uuid, number: u32) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    pieces.encode_key(&[Value::Uuid(id), Value::Int32(number.cast_signed())], &mut key)?;
    Ok(key)
}

/// A piece as a row.
pub(crate) fn encode_piece(
    pieces: &Schema,
    (id, number): (Uuid, u32),
    bytes: &[u8],
    out: &mut EncodedRow,
) -> Result<()> {
    let number = Value::Int32(number.cast_signed());
    let values = [Value::Uuid(id), number, Value::Bytes(bytes.into())];
    let computed = |_, _: &_| Err(Error::Internal("a piece has no defaults".into()));
    pieces.encode_row(&values, computed, out)
}

/// The whole of a row that points elsewhere. `wanted` tells by its position whether the value of a column is to be
/// read; `piece` finds the row of a piece by its key.
///
/// # Errors
/// A value of which pieces are missing; those of `piece`.
pub(crate) fn whole_row(
    schema: &Schema,
    pieces: &Schema,
    stored: &[u8],
    wanted: impl Fn(usize) -> bool,
    mut piece: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<u8>> {
    schema.move_in(stored, wanted, |value, out| {
        for number in 0..piece_count(value) {
            let key = piece_key(pieces, value.id, number)?;
            // That bytes are missing is found by who asked for them.
            let Some(row) = piece(&key)? else { break };
            if let StoredBytes::Here(bytes) = pieces.view(&key, &row)?.stored_bytes(2) {
                out.extend_from_slice(bytes);
            }
        }
        Ok(())
    })
}
