//! Changes that a session commits by themselves, of a table with indexes or foreign keys: a row, its entries and what
//! becomes of rows that reference it are one transaction.
//!
//! One row is inserted with its entries from buffers that the session keeps, and nothing is read before
//! ([`write_with_entries`]). Where leaves have to be made for that it is a group
//! ([`write_group`](crate::tree::write_group)); where that cannot be done its intents are placed, as a transaction's.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::{EncodedRow, Schema, Value};
use onrush_waits::Counter;

use super::row_record::row_body;
use super::session::Session;
use super::transaction::Transaction;
use super::worker::Worker;
use crate::catalog::{Index, Table};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{TICK, begin_group, end_group, push_row};
use crate::tree::{GroupRow, GroupRows, Hint, Refusal, RowAndEntries, write_with_entries};
use crate::units::ObjectId;

/// Buffers for the entries of a row, kept by the session and used again.
#[derive(Default)]
pub(super) struct IndexedRow {
    /// One for each index that has one of the row.
    entries: Vec<EncodedRow>,
    /// The positions of these indexes among those of the table.
    positions: Vec<usize>,
    objects: Vec<ObjectId>,
    /// Where each entry belonged when it was made.
    hints: Vec<Hint>,
    /// The record of the row and its entries.
    record: Vec<u8>,
}

impl IndexedRow {
    /// Makes the entries of an encoded row, and asks for the leaves where they belong.
    fn encode(
        &mut self,
        worker: &Worker,
        table: &Table,
        indexes: &[Index],
        row: &EncodedRow,
    ) -> Result<()> {
        let IndexedRow { entries, positions, objects, hints, .. } = self;
        if entries.len() < indexes.len() {
            entries.resize_with(indexes.len(), EncodedRow::new);
        }
        positions.clear();
        objects.clear();
        hints.clear();
        for (position, index) in indexes.iter().enumerate() {
            let entry = &mut entries[positions.len()];
            let is_missed = index.is_building() && planted(Fault::BuiltIndexMissed);
            if is_missed || !index.encode(&table.entry.schema, (&row.key, &row.row), entry)? {
                continue;
            }
            let tree = &index.entries.tree;
            hints.push(tree.prefetch_header(&worker.engine, &worker.recorder, &entry.key));
            objects.push(index.entries.object()?);
            positions.push(position);
        }
        Ok(())
    }

    /// Makes the record of the row and its entries.
    fn make_record(
        &mut self,
        engine: &Engine,
        table: &Table,
        object: ObjectId,
        indexes: &[Index],
        row: &EncodedRow,
    ) {
        let IndexedRow { entries, positions, objects, record, .. } = self;
        record.clear();
        if !table.entry.tree.is_logged() {
            record.extend_from_slice(TICK);
            return;
        }
        let records = begin_group(1 + positions.len(), record);
        let mut push = |schema: &Schema, object: ObjectId, row: &EncodedRow| {
            let (kind, body) = row_body(engine, schema, row);
            push_row(kind, object, &row.key, body, record);
        };
        push(&table.entry.schema, object, row);
        for ((position, object), entry) in positions.iter().zip(&*objects).zip(&*entries) {
            push(&indexes[*position].entries.schema, *object, entry);
        }
        end_group(record, records);
    }
}

/// A row and its entries on their way to their trees.
struct LinkedRow<'r> {
    table: &'r Table,
    object: ObjectId,
    row: &'r EncodedRow,
    indexes: &'r [Index],
    entries: &'r IndexedRow,
}

impl GroupRows for LinkedRow<'_> {
    fn count(&self) -> usize {
        1 + self.entries.positions.len()
    }

    fn row(&self, index: usize) -> GroupRow<'_> {
        let (tree, object, row) = match index.checked_sub(1) {
            None => (&self.table.entry.tree, self.object, self.row),
            Some(at) => (
                &self.indexes[self.entries.positions[at]].entries.tree,
                self.entries.objects[at],
                &self.entries.entries[at],
            ),
        };
        GroupRow { tree, object, key: &row.key, value: &row.row }
    }

    fn bytes(&self) -> usize {
        let entries = self.entries.entries.iter().take(self.entries.positions.len());
        entries.chain([self.row]).map(|row| row.key.len() + row.row.len()).sum()
    }
}

impl RowAndEntries for LinkedRow<'_> {
    fn is_blind(&self, index: usize) -> bool {
        let position = index.checked_sub(1).and_then(|at| self.entries.positions.get(at));
        position.is_some_and(|position| !self.indexes[*position].is_unique())
    }

    fn entry_hint(&self, index: usize) -> Option<Hint> {
        self.entries.hints.get(index.checked_sub(1)?).copied()
    }
}

impl Session {
    /// Inserts a row; the end of its record.
    pub(super) fn insert_linked(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Lsn> {
        if table.entry.has_late_looks() {
            let inserted = self.insert_all_linked(table, [values])?;
            return inserted.ok_or_else(|| Error::Internal("a row was lost".into()));
        }
        let _strict = table.entry.strict_order(&self.worker.recorder);
        let context = self.context(table)?;
        // Where its key is drawn the leaf for it was asked for before.
        self.contexts[context].prefetch_key(&mut self.worker, values)?;
        let indexes = table.entry.indexes(|id| self.worker.engine.catalog.by_id(id))?;
        self.encode(table, values)?;
        if Schema::is_wide(&self.encoded.row) {
            let object = table.entry.object()?;
            return Transaction::new(self, None).commit_row(table, object);
        }
        let end = match self.insert_encoded(table, context, indexes)? {
            Some(end) => end,
            None => match self.insert_as_group(table)? {
                Ok(Some(end)) => end,
                // What is in the way the general way tells, or waits for.
                Ok(None) => {
                    let object = table.entry.object()?;
                    return Transaction::new(self, None).commit_row(table, object);
                }
                Err(refusal) => return Err(self.explain(table, refusal)),
            },
        };
        self.worker.recorder.count(Counter::RowsInserted, 1);
        Ok(end)
    }

    /// Inserts the encoded row and its entries where nothing has to be made for them; none if that cannot be done.
    fn insert_encoded(
        &mut self,
        table: &Table,
        context: usize,
        indexes: &[Index],
    ) -> Result<Option<Lsn>> {
        let Session { worker, contexts, encoded: row, indexed, .. } = self;
        let object = table.entry.object()?;
        indexed.encode(worker, table, indexes, row)?;
        indexed.make_record(&worker.engine, table, object, indexes, row);
        let record = indexed.record.as_slice();
        let rows = LinkedRow { table, object, row, indexes, entries: indexed };
        let hint = &mut contexts[context].hint;
        let mut end = None;
        let written = worker.inside_with_log_space(record.len(), |engine, seat| {
            table.entry.check_version()?;
            end = write_with_entries(engine, seat, hint, &rows, record);
            Ok(())
        })?;
        // Another try tells of the refusal.
        Ok(end.filter(|_| written.is_ok()))
    }

    /// As [`insert_encoded`](Self::insert_encoded) did not: with what it has made.
    #[cold]
    fn insert_as_group(
        &mut self,
        table: &Table,
    ) -> Result<std::result::Result<Option<Lsn>, Refusal>> {
        let indexes = table.entry.indexes(|id| self.worker.engine.catalog.by_id(id))?;
        let object = table.entry.object()?;
        let (indexed, row) = (std::mem::take(&mut self.indexed), std::mem::take(&mut self.encoded));
        let rows = LinkedRow { table, object, row: &row, indexes, entries: &indexed };
        let written = self.write_group(table, &rows, [&indexed.record, &[]], false);
        (self.indexed, self.encoded) = (indexed, row);
        written
    }

    /// Inserts rows as one transaction; the end of its record, none without rows. Nothing is read before: whether keys
    /// are free the commit finds out.
    pub(super) fn insert_all_linked<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<Option<Lsn>> {
        let entry = Arc::clone(&table.entry);
        let _strict = entry.strict_order(&self.worker.recorder);
        let mut transaction = Transaction::new(self, None);
        for values in rows {
            transaction.insert_row(table, values)?;
        }
        let committed = transaction.commit_writes()?;
        Ok(committed.map(|commit| commit.end))
    }
}

impl Transaction<'_> {
    /// Commits the row that the session encoded last, and its entries; the end of the record.
    pub(super) fn commit_row(mut self, table: &Table, object: ObjectId) -> Result<Lsn> {
        let at = (object, self.session.encoded.key.clone());
        self.is_one_row = true;
        self.write_encoded(table, at, true, None)?;
        let committed = self.commit_writes()?;
        let committed = committed.ok_or_else(|| Error::Internal("a row was lost".into()))?;
        Ok(committed.end)
    }
}
