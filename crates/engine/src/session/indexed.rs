//! Changes that a session commits by themselves, of a table with indexes or foreign keys: a row, its entries and what
//! becomes of rows that reference it are one transaction.
//!
//! One row is inserted with its entries as a group ([`write_group`](crate::tree::write_group)), from buffers that the
//! session keeps, and nothing is read before. Where that cannot be done its intents are placed, as a transaction's.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::{EncodedRow, Schema, Value};
use onrush_waits::Counter;

use super::row_record::row_body;
use super::session::Session;
use super::transaction::Transaction;
use crate::catalog::{Index, Table};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::logging::{TICK, group_header, push_varint, row_header};
use crate::tree::{GroupRow, GroupRows};
use crate::units::ObjectId;

/// Buffers for the entries of a row, kept by the session and used again.
#[derive(Default)]
pub(super) struct IndexedRow {
    /// One for each index that has one of the row.
    entries: Vec<EncodedRow>,
    /// The positions of these indexes among those of the table.
    positions: Vec<usize>,
    objects: Vec<ObjectId>,
    /// The records of the row and of its entries, each with its length in front.
    record: Vec<u8>,
    header: Vec<u8>,
}

impl IndexedRow {
    /// Makes the entries of an encoded row.
    fn encode(&mut self, table: &Table, indexes: &[Index], row: &EncodedRow) -> Result<()> {
        self.entries.resize_with(indexes.len(), EncodedRow::new);
        self.positions.clear();
        self.objects.clear();
        for (position, index) in indexes.iter().enumerate() {
            let entry = &mut self.entries[self.positions.len()];
            if index.encode(&table.entry.schema, (&row.key, &row.row), entry)? {
                self.positions.push(position);
                self.objects.push(index.entries.object()?);
            }
        }
        Ok(())
    }

    /// Makes the records of the row and of its entries, and returns what stands in front of them.
    fn record(
        &mut self,
        engine: &Engine,
        table: &Table,
        object: ObjectId,
        indexes: &[Index],
        row: &EncodedRow,
    ) -> Vec<u8> {
        let IndexedRow { entries, positions, objects, record, header } = self;
        record.clear();
        let mut push = |schema: &Schema, object: ObjectId, row: &EncodedRow| {
            let (kind, body) = row_body(engine, schema, row);
            row_header(kind, object, row.key.len(), header);
            push_varint((header.len() + row.key.len() + body.len()) as u64, record);
            record.extend_from_slice(header);
            record.extend_from_slice(&row.key);
            record.extend_from_slice(body);
        };
        push(&table.entry.schema, object, row);
        for ((position, object), entry) in positions.iter().zip(&*objects).zip(&*entries) {
            push(&indexes[*position].entries.schema, *object, entry);
        }
        group_header(1 + positions.len(), record)
    }
}

/// A row and its entries on their way to their trees.
struct RowAndEntries<'r> {
    table: &'r Table,
    object: ObjectId,
    row: &'r EncodedRow,
    indexes: &'r [Index],
    entries: &'r IndexedRow,
}

impl GroupRows for RowAndEntries<'_> {
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

impl Session {
    /// Inserts a row; the end of its record.
    pub(super) fn insert_linked(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Lsn> {
        if table.entry.has_foreign_keys() {
            let inserted = self.insert_all_linked(table, [values])?;
            return inserted.ok_or_else(|| Error::Internal("a row was lost".into()));
        }
        let entry = Arc::clone(&table.entry);
        let _strict = entry.strict_order(&self.worker.recorder);
        let context = self.context(table)?;
        // Where its key is drawn the leaf for it was asked for before.
        self.contexts[context].prefetch_key(&mut self.worker, values)?;
        self.encode(table, values)?;
        let mut indexed = std::mem::take(&mut self.indexed);
        let inserted = self.insert_encoded(table, &mut indexed);
        self.indexed = indexed;
        inserted
    }

    /// Inserts the encoded row.
    fn insert_encoded(&mut self, table: &Table, indexed: &mut IndexedRow) -> Result<Lsn> {
        let engine = Arc::clone(&self.worker.engine);
        let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
        let object = table.entry.object()?;
        indexed.encode(table, indexes, &self.encoded)?;
        let row = std::mem::take(&mut self.encoded);
        let logged = table.entry.tree.is_logged();
        let header = indexed.record(&engine, table, object, indexes, &row);
        let record: [&[u8]; 2] = if logged { [&header, &indexed.record] } else { [TICK, &[]] };
        let rows = RowAndEntries { table, object, row: &row, indexes, entries: indexed };
        let written = self.write_group(table, &rows, record, false);
        self.encoded = row;
        match written? {
            Ok(Some(end)) => {
                self.worker.recorder.count(Counter::RowsInserted, 1);
                Ok(end)
            }
            // What is in the way the general way tells, or waits for.
            Ok(None) => Transaction::new(self, None).commit_row(table, object),
            Err(refusal) => Err(self.explain(table, refusal)),
        }
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
    fn commit_row(mut self, table: &Table, object: ObjectId) -> Result<Lsn> {
        let at = (object, self.session.encoded.key.clone());
        self.write_encoded(table, at, true, None)?;
        let committed = self.commit_writes()?;
        let committed = committed.ok_or_else(|| Error::Internal("a row was lost".into()))?;
        Ok(committed.end)
    }
}
