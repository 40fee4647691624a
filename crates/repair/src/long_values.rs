//! Rows whose values stand elsewhere, while a database is repaired: they are kept aside until all pieces of values are
//! there, and then written as a whole.
//!
//! The pieces are on the disk meanwhile, in tables of the new database that are dropped in the end. What such rows
//! have in their own place, some thousand bytes at most, is in memory.

use std::collections::BTreeMap;

use onrush::long_values::{ID, NUMBER, PIECE};
use onrush::{
    ColumnDefinition, DataType, Database, Error, Schema, Session, Table, TableDefinition, Value,
};
use onrush_check::{Finding, Invariant};

/// A table among those that are written, and the key of a row.
type Place = (usize, Vec<u8>);

/// See the module.
#[derive(Default)]
pub(crate) struct LongValues {
    /// Where the pieces are, by the number of their table in the damaged database.
    pieces: BTreeMap<u32, Table>,
    /// Rows as they were stored, by their table in the order of those that are written, and their keys.
    rows: BTreeMap<Place, Vec<u8>>,
}

impl LongValues {
    /// Makes a place for the pieces of a table of them.
    pub(crate) fn add_pieces(&mut self, database: &Database, number: u32) -> Result<(), Error> {
        let definition = TableDefinition::builder(format!("onrush_salvaged_pieces_{number}"))
            .column(ColumnDefinition::new(ID, DataType::Uuid).not_null())
            .column(ColumnDefinition::new(NUMBER, DataType::Int32).not_null())
            .column(ColumnDefinition::new(PIECE, DataType::Bytes).not_null())
            .primary_key([ID, NUMBER]);
        self.pieces.insert(number, database.create_table(definition.build()?)?);
        Ok(())
    }

    /// Where the pieces of this table of them are.
    pub(crate) fn pieces(&self, number: u32) -> Option<&Table> {
        self.pieces.get(&number)
    }

    /// Keeps a row aside. It takes the place of one with its key.
    pub(crate) fn keep(&mut self, table: usize, key: &[u8], row: &[u8]) {
        self.rows.insert((table, key.to_vec()), row.to_vec());
    }

    /// Whether there was a row with this key, which does not count any more.
    pub(crate) fn forget(&mut self, table: usize, key: &[u8]) -> bool {
        !self.rows.is_empty() && self.rows.remove(&(table, key.to_vec())).is_some()
    }

    /// The next row that was kept aside.
    pub(crate) fn next(&mut self) -> Option<(Place, Vec<u8>)> {
        self.rows.pop_first()
    }

    /// The whole of a row; none if some of it is lost.
    pub(crate) fn whole(
        &self,
        session: &mut Session,
        schema: &Schema,
        row: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let number = schema.definition().long_values();
        let Some(pieces) = number.and_then(|number| self.pieces(number)) else { return Ok(None) };
        let mut failed = None;
        let whole = schema.move_in::<onrush::TypeError>(
            row,
            |_| true,
            |value, out| {
                let end = out.len() + value.bytes;
                for number in 0.. {
                    let key = [Value::Uuid(value.id), Value::Int32(number)];
                    let piece = match session.get(pieces, &key) {
                        Ok(piece) => piece,
                        Err(error) => {
                            failed = Some(error);
                            None
                        }
                    };
                    let piece = piece.and_then(|row| row.into_iter().nth(2));
                    let Some(Value::Bytes(bytes)) = piece else { break };
                    out.extend_from_slice(&bytes);
                    if out.len() >= end {
                        break;
                    }
                }
                Ok(())
            },
        );
        match failed {
            Some(error) => Err(error),
            None => Ok(whole.ok()),
        }
    }

    /// Drops what was kept for the time of the repair.
    pub(crate) fn drop_pieces(&mut self, database: &Database) -> Result<(), Error> {
        let pieces = std::mem::take(&mut self.pieces);
        pieces.values().try_for_each(|table| database.drop_table(table.name()))
    }
}

/// A row of which a long value is lost.
pub(crate) fn lost(database: &Database, table: &Table, key: &[u8]) -> Finding {
    let found = "a row whose long values are not there as a whole";
    let finding = Finding::new(Invariant::LongValuesWhole, database.folder(), 0, found);
    let words = match table.schema().decode_key(key) {
        Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(_) => format!("{key:02x?}"),
    };
    finding.of_table(table.name()).with_keys(format!("key {words}"))
}
