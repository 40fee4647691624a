//! The entries that a change of a row makes, changes and removes in the indexes of its table.
//!
//! Nothing is written before all of it is known to be allowed as far as the transaction can see, so a change that a
//! unique index refuses leaves nothing behind. What others commit meanwhile the commit finds, by the same rules as
//! for rows: two transactions that take one key of a unique index place an intent at one key.

use std::sync::Arc;

use onrush_types::{EncodedRow, Schema};

use super::row_record::{framed_row, row_body};
use super::transaction::Transaction;
use super::write_set::{RowKey, Write};
use crate::Row;
use crate::catalog::{Index, Table, TableEntry};
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::units::ObjectId;

/// Key bytes and value bytes of a row.
pub(super) type RowBytes<'r> = (&'r [u8], &'r [u8]);

/// What becomes of one entry.
pub(super) struct EntryChange {
    entries: Arc<TableEntry>,
    object: ObjectId,
    /// The key of an entry that goes.
    gone: Option<Vec<u8>>,
    /// What the row had in a unique index that is being built: its key and the entry.
    former: Option<(Vec<u8>, Vec<u8>)>,
    /// An entry that comes, and whether it takes the place of one with the same key.
    new: Option<(EncodedRow, bool)>,
}

impl Transaction<'_> {
    /// The primary key of the row that has the values in the columns of a unique index, by its position among the
    /// table's, which the row has that this transaction encoded last: after an insert that was refused, the row that
    /// was to be inserted. None if they are free, as far as the transaction can see.
    ///
    /// # Errors
    /// [`TableChanged`](Error::TableChanged); an index that the table does not have.
    pub fn row_in_the_way(&mut self, table: &Table, index: usize) -> Result<Option<Row>> {
        let engine = Arc::clone(self.engine());
        let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
        let index = indexes.get(index).ok_or_else(|| Error::UnknownIndex {
            name: format!("number {index} of table {}", table.name()),
        })?;
        let (mut entry, row) = (EncodedRow::new(), self.session.encoded.clone());
        if !index.encode(&table.entry.schema, (&row.key, &row.row), &mut entry)? {
            self.session.encoded = row;
            return Ok(None);
        }
        let (look, value) = self.look(&self.handle(Arc::clone(&index.entries)), &entry.key)?;
        self.session.encoded = row;
        let found = look.is_there.then(|| index.row_key(&table.entry.schema, (&entry.key, &value)));
        found.transpose()
    }

    /// What becomes of the entries of a row that was `before` and will be `after`.
    ///
    /// # Errors
    /// [`UniqueViolated`](Error::UniqueViolated) by a row that this transaction can see; a key that is too large.
    pub(super) fn entry_changes(
        &mut self,
        table: &Table,
        before: Option<RowBytes<'_>>,
        after: Option<RowBytes<'_>>,
    ) -> Result<Vec<EntryChange>> {
        self.check_form(table)?;
        if !table.entry.is_indexed() {
            return Ok(Vec::new());
        }
        let engine = Arc::clone(self.engine());
        let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
        let mut changes = Vec::with_capacity(indexes.len());
        for index in indexes {
            let change = self.entry_change(table, index, before, after)?;
            if let Some(EntryChange { new: Some((new, false)), .. }) = &change {
                self.note_taken_key(table, index, new)?;
            }
            changes.extend(change);
        }
        Ok(changes)
    }

    /// Whether the row is written in the form that the transaction has given the table, if it has.
    fn check_form(&self, table: &Table) -> Result<()> {
        let own = self.definitions.as_ref().and_then(|own| own.by_id(table.id()));
        let is_another = |own: &Arc<TableEntry>| !Arc::ptr_eq(own, &table.entry);
        match own.filter(is_another).is_some_and(|own| own.is_linked() || table.entry.is_linked()) {
            true => Err(Error::TableChanged { name: table.name().to_owned() }),
            false => Ok(()),
        }
    }

    pub(super) fn entry_change(
        &mut self,
        table: &Table,
        index: &Index,
        before: Option<RowBytes<'_>>,
        after: Option<RowBytes<'_>>,
    ) -> Result<Option<EntryChange>> {
        let encode = |row: Option<RowBytes<'_>>| -> Result<Option<EncodedRow>> {
            let Some(row) = row else { return Ok(None) };
            let mut encoded = EncodedRow::new();
            let has_entry = index.encode(&table.entry.schema, row, &mut encoded)?;
            Ok(has_entry.then_some(encoded))
        };
        let (before, after) = (encode(before)?, encode(after)?);
        let entries = Arc::clone(&index.entries);
        let object = entries.object()?;
        let is_watched = index.is_building() && index.is_unique();
        let former = before.as_ref().filter(|_| is_watched);
        let former = former.map(|before| (before.key.clone(), before.row.clone()));
        let (gone, new) = match (before, after) {
            (Some(before), Some(after)) if before.key == after.key => {
                if before.row == after.row {
                    return Ok(None);
                }
                (None, Some((after, true)))
            }
            (None, None) => return Ok(None),
            (before, after) => (before.map(|before| before.key), after.map(|after| (after, false))),
        };
        if let Some((new, false)) = &new
            && index.is_unique()
        {
            self.check_unique(&self.handle(Arc::clone(&entries)), &new.key)?;
        }
        Ok(Some(EntryChange { entries, object, gone, former, new }))
    }

    /// Whether the key of a unique index is free, as far as the transaction can see.
    fn check_unique(&mut self, entries: &Table, key: &[u8]) -> Result<()> {
        let at = (entries.entry.object()?, key.to_vec());
        let taken_at = match self.writes.get(&at) {
            Some(Write { value: Some(_), .. }) => None,
            Some(_) => return Ok(()),
            None => match self.seen(entries, key)?.0 {
                look if look.is_there => look.lsn,
                _ => return Ok(()),
            },
        };
        self.session.rest_on(taken_at)?;
        Err(self.session.unique_violated(entries, key))
    }

    /// The row of this entry changes. Where something else stands for it already, in what the transaction has changed
    /// before, two rows had the key at once.
    fn note_former_entry(&mut self, table: &Table, at: RowKey, entry: Vec<u8>) {
        let own = self.writes.get(&at).and_then(|write| write.value.as_ref());
        if own.is_some_and(|own| !Schema::is_same_row(own, &entry)) {
            table.entry.tree.note_doubled(&at.1);
        }
        self.former_entries.entry(at).or_insert(entry);
    }

    /// Writes the changes to the write set.
    pub(super) fn put_entries(&mut self, changes: Vec<EntryChange>) -> Result<()> {
        for EntryChange { entries, object, gone, former, new } in changes {
            let table = self.handle(entries);
            if let Some((key, entry)) = former {
                self.note_former_entry(&table, (object, key), entry);
            }
            if let Some(key) = gone.filter(|_| !planted(Fault::OldEntryKept)) {
                self.put_removal(&table, &key)?;
                // Who has changed the row is found at the row. What has come to be here since is its entry still: one
                // that was put there while the index was built.
                self.writes.let_anyone_be_first(&(object, key));
            }
            let Some((encoded, replaces)) = new.filter(|_| !planted(Fault::EntryLeftOut)) else {
                continue;
            };
            let (kind, body) = row_body(&self.session.worker.engine, &table.entry.schema, &encoded);
            let record = framed_row(&table, kind, object, &encoded.key, body);
            let at = (object, encoded.key);
            let known = self.writes.get(&at).map(|write| write.must_be_absent);
            let must_be_absent = known.unwrap_or(!replaces);
            let value = Some(encoded.row);
            let unchanged_since = self.rests_on().filter(|_| must_be_absent);
            let write = Write { table, value, must_be_absent, unchanged_since, record };
            self.put(at, write);
        }
        Ok(())
    }
}
