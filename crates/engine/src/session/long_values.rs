//! Rows with values that stand elsewhere: what a change of such a row writes beside it, and how it is read as a whole.
//!
//! Everything above the session has whole rows. What is stored of them is told here from what they are
//! ([`catalog`](crate::catalog)): pieces go into the write set with the row, and are looked for by the view that has
//! found the row.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::long_values::PIECE_BYTES;
use onrush_types::{
    ColumnName, DataType, EncodedRow, KeyGenerator, KeyStrategy, LongValue, ROW_BYTES_MAX, Schema,
    TypeError, Uuid, Value,
};

use super::batch::Batch;
use super::entries::RowBytes;
use super::row_record::{framed_row, row_body};
use super::session::Session;
use super::snapshot::{OwnChanges, Snapshot};
use super::transaction::Transaction;
use super::write_set::{RowKey, Write};
use crate::catalog::{Table, encode_piece, piece_count, piece_key, whole_row};
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::RecordKind;
use crate::tree::{Look, View};
use crate::units::ObjectId;

impl Transaction<'_> {
    /// The whole of a row that this transaction sees.
    pub(super) fn whole(&mut self, table: &Table, stored: Vec<u8>) -> Result<Vec<u8>> {
        if !table.entry.points_elsewhere(&stored) {
            return Ok(stored);
        }
        let pieces = self.pieces_of(table)?;
        let schema = &table.entry.schema;
        whole_row(
            schema,
            pieces.schema(),
            &stored,
            |_| true,
            |key| {
                let (look, row) = self.look_stored(&pieces, key)?;
                Ok(look.is_there.then_some(row))
            },
        )
    }

    /// The table of the long values of another.
    fn pieces_of(&self, table: &Table) -> Result<Table> {
        let pieces = table.entry.long_values(|id| self.as_seen(id))?;
        Ok(self.handle(Arc::clone(pieces)))
    }

    /// Whether a row of the table may point elsewhere. One that does and that others have changed since is a conflict
    /// whatever it was.
    pub(super) fn may_point_elsewhere(&self, table: &Table) -> Result<bool> {
        if !table.entry.has_long_values() {
            return Ok(false);
        }
        Ok(self.pieces_of(table)?.entry.has_pieces())
    }

    /// The pieces of a table's rows that the transaction has written, as a view has them.
    pub(super) fn own_pieces(&self, table: &Table) -> Result<OwnChanges> {
        if !table.entry.has_long_values() {
            return Ok(OwnChanges::new());
        }
        let object = self.pieces_of(table)?.entry.object()?;
        let own = self.writes.iter().filter(|((own, _), _)| *own == object);
        Ok(own.map(|(row, write)| (row.clone(), write.value.clone())).collect())
    }

    /// What is at `key` as it is stored: the own change, else what the snapshot has.
    fn look_stored(&mut self, table: &Table, key: &[u8]) -> Result<(Look, Vec<u8>)> {
        match self.writes.look(&(table.entry.object()?, key.to_vec())) {
            Some(own) => Ok(own),
            None => self.seen(table, key),
        }
    }

    /// Writes the encoded row, which is a wide one or takes the place of a wide one, and the pieces of its values.
    #[cold]
    pub(super) fn write_long(
        &mut self,
        table: &Table,
        at: RowKey,
        must_be_absent: bool,
        before: Option<RowBytes<'_>>,
    ) -> Result<()> {
        let encoded = std::mem::take(&mut self.session.encoded);
        let written = self.write_long_row(table, at, must_be_absent, before, &encoded);
        self.session.encoded = encoded;
        written?;
        self.spill_if_large()
    }

    fn write_long_row(
        &mut self,
        table: &Table,
        at: RowKey,
        must_be_absent: bool,
        before: Option<RowBytes<'_>>,
        encoded: &EncodedRow,
    ) -> Result<()> {
        let schema = &table.entry.schema;
        let stored_before = match before {
            Some((key, whole)) if Schema::is_wide(whole) => {
                Some((self.look_stored(table, key)?.1, whole))
            }
            _ => None,
        };
        let before = stored_before.as_ref().map(|(stored, whole)| (stored.as_slice(), *whole));
        let old = before.map_or(Ok(Vec::new()), |(stored, _)| schema.long_values(stored))?;
        let (kind, body) = row_body(self.engine(), schema, encoded);
        let (row, new, record) = if Schema::is_wide(&encoded.row) {
            let whole = (encoded.key.as_slice(), encoded.row.as_slice());
            let (row, new) = schema.move_out(whole, before, || self.session.long_value_id())?;
            let record = framed_row(table, RecordKind::Put, at.0, &at.1, &row);
            (row, new, record)
        } else {
            let record = framed_row(table, kind, at.0, &at.1, body);
            (encoded.row.clone(), Vec::new(), record)
        };
        let (value, unchanged_since) = (Some(row), self.rests_on());
        let write = Write { table: table.clone(), value, must_be_absent, unchanged_since, record };
        self.put(at, write);
        let pieces = self.pieces_of(table)?;
        let is_in = |values: &[LongValue], value: &LongValue| {
            values.iter().any(|other| other.id == value.id)
        };
        for value in new.iter().filter(|value| !is_in(&old, value)) {
            self.put_pieces(&pieces, value, schema.long_value(value, &encoded.row))?;
        }
        let gone = old.iter().filter(|value| !is_in(&new, value));
        gone.into_iter().try_for_each(|value| self.remove_pieces(&pieces, value))
    }

    fn put_pieces(&mut self, pieces: &Table, value: &LongValue, bytes: &[u8]) -> Result<()> {
        let object = pieces.entry.object()?;
        pieces.entry.expect_pieces();
        let mut encoded = EncodedRow::new();
        let left_out = usize::from(planted(Fault::PieceLeftOut));
        for (number, piece) in (0..).zip(bytes.chunks(PIECE_BYTES)).skip(left_out) {
            encode_piece(pieces.schema(), (value.id, number), piece, &mut encoded)?;
            let (kind, body) = row_body(self.engine(), pieces.schema(), &encoded);
            let record = framed_row(pieces, kind, object, &encoded.key, body);
            let write = Write {
                table: pieces.clone(),
                value: Some(std::mem::take(&mut encoded.row)),
                must_be_absent: true,
                unchanged_since: self.rests_on(),
                record,
            };
            self.put((object, encoded.key.clone()), write);
            self.spill_if_large()?;
        }
        Ok(())
    }

    fn remove_pieces(&mut self, pieces: &Table, value: &LongValue) -> Result<()> {
        if planted(Fault::PieceKept) {
            return Ok(());
        }
        for number in 0..piece_count(value) {
            let key = piece_key(pieces.schema(), value.id, number)?;
            self.put_removal(pieces, &key)?;
            self.spill_if_large()?;
        }
        Ok(())
    }

    /// A row goes, and what it points to with it. `row` is the whole one.
    pub(super) fn remove_long_values(
        &mut self,
        table: &Table,
        (key, row): RowBytes<'_>,
    ) -> Result<()> {
        if !table.entry.points_elsewhere(row) {
            return Ok(());
        }
        let stored = self.look_stored(table, key)?.1;
        self.remove_values_of(table, &stored)
    }

    /// Puts what is stored of a whole row that another table has, and that this one gets, into the write set.
    pub(super) fn put_long(&mut self, table: &Table, (key, row): RowBytes<'_>) -> Result<()> {
        let encoded = EncodedRow { key: key.to_vec(), row: row.to_vec(), elided: Vec::new() };
        if !table.entry.has_long_values() {
            let (bytes, limit) = (key.len() + row.len(), ROW_BYTES_MAX);
            let table = table.name().into();
            return Err(TypeError::RowTooLarge { table, bytes, limit }.into());
        }
        let at = (table.entry.object()?, key.to_vec());
        self.write_long_row(table, at, true, None, &encoded)
    }

    fn remove_values_of(&mut self, table: &Table, stored: &[u8]) -> Result<()> {
        let pieces = self.pieces_of(table)?;
        let values = table.entry.schema.long_values(stored)?;
        values.iter().try_for_each(|value| self.remove_pieces(&pieces, value))
    }

    /// As [`remove_long_values`](Self::remove_long_values) of the newest row of a key, whatever the transaction reads.
    /// Whether there was something to be removed: then nobody may change the row any more.
    pub(super) fn remove_newest_long_values(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        if !table.entry.has_long_values() {
            return Ok(false);
        }
        let at = (table.entry.object()?, key.to_vec());
        let stored = match self.writes.get(&at) {
            Some(write) => write.value.clone().unwrap_or_default(),
            None => {
                self.session.newest(table, key)?;
                self.session.value.clone()
            }
        };
        let points_elsewhere = table.entry.points_elsewhere(&stored);
        if points_elsewhere {
            self.remove_values_of(table, &stored)?;
        }
        Ok(points_elsewhere)
    }

    /// Takes the rows of a batch that were encoded before one that is wide.
    fn take_batch(&mut self, table: &Table, object: ObjectId, batch: &Batch) -> Result<()> {
        let is_logged = table.entry.tree.is_logged();
        for index in 0..batch.count() {
            let (key, value) = batch.row(index);
            let at = (object, key.to_vec());
            if self.writes.get(&at).is_some() {
                return Err(table.duplicate_key(key));
            }
            let record = if is_logged { batch.record_of(index).to_vec() } else { Vec::new() };
            let (value, unchanged_since) = (Some(value.to_vec()), self.rests_on());
            let table = table.clone();
            let write = Write { table, value, must_be_absent: true, unchanged_since, record };
            self.put(at, write);
        }
        Ok(())
    }
}

impl Session {
    /// Makes the name of a long value.
    fn long_value_id(&mut self) -> Result<Uuid> {
        let generator = match &mut self.long_value_ids {
            Some(generator) => generator,
            none => {
                let column = ColumnName::new("long values", onrush_types::long_values::ID);
                let generator = KeyGenerator::new(KeyStrategy::UuidV7, DataType::Uuid, column)?;
                none.insert(Box::new(generator))
            }
        };
        let no_numbers = |_| Err(Error::Internal("a UUID was to be leased".into()));
        match generator.next(&mut { no_numbers })? {
            Value::Uuid(id) => Ok(id),
            _ => Err(Error::Internal("a UUID is none".into())),
        }
    }

    /// Inserts rows of which the first is encoded and wide, behind those of a batch; the end of their record.
    #[cold]
    pub(super) fn insert_long_batch<'v>(
        &mut self,
        table: &Table,
        (object, batch): (ObjectId, &Batch),
        others: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Option<Lsn>> {
        let mut transaction = Transaction::new(self, None);
        transaction.take_batch(table, object, batch)?;
        transaction.insert_encoded(table)?;
        for values in others {
            transaction.insert_row(table, values)?;
        }
        Ok(transaction.commit_writes()?.map(|commit| commit.end))
    }

    /// Reads the whole of the row that was read last, which points elsewhere. Its values may be gone, since it may be
    /// another one by now; then that is read. Whether there is a row still.
    #[cold]
    pub(super) fn read_whole(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        let engine = Arc::clone(&self.worker.engine);
        loop {
            let stored = std::mem::take(&mut self.value);
            let pieces = table.entry.long_values(|id| engine.catalog.by_id(id))?;
            let pieces = Table { entry: Arc::clone(pieces), database_id: table.database_id };
            let schema = &table.entry.schema;
            let whole = whole_row(
                schema,
                pieces.schema(),
                &stored,
                |_| true,
                |key| {
                    let look = self.look_by(&pieces, key, View::Newest)?;
                    Ok(look.is_there.then(|| std::mem::take(&mut self.value)))
                },
            );
            if let Ok(whole) = whole {
                self.value = whole;
                return Ok(true);
            }
            let look = self.newest(table, key)?;
            if !look.is_there || !Schema::is_wide(&self.value) {
                return Ok(look.is_there);
            }
            if self.value == stored {
                whole?;
            }
        }
    }
}

impl Snapshot {
    /// The whole of a row that this sees; of `wanted` columns alone, if they are given.
    pub(super) fn whole(
        &mut self,
        table: &Table,
        stored: &[u8],
        wanted: Option<&[bool]>,
    ) -> Result<Vec<u8>> {
        let engine = Arc::clone(&self.worker.engine);
        let pieces = table.entry.long_values(|id| engine.catalog.by_id(id))?;
        let pieces = Table { entry: Arc::clone(pieces), database_id: table.database_id };
        let is_wanted =
            |column: usize| wanted.is_none_or(|wanted| wanted.get(column).copied().unwrap_or(true));
        whole_row(&table.entry.schema, pieces.schema(), stored, is_wanted, |key| {
            self.get_stored(&pieces, key)
        })
    }
}
