//! Several rows as one: private until commit, then all or none.
//!
//! | state | how it ends |
//! |---|---|
//! | open: changes are in the write set of the session alone | `commit`, or dropped: forgotten |
//! | open and large: changes are intents in the leaves and pieces in the log (`large.rs`) | the same |
//! | committing: intents stand in the leaves | an outcome: committed at an LSN, or aborted |
//!
//! Isolation is snapshot isolation and the first committer wins. Write skew is possible: two
//! transactions that each read what the other writes may both commit, unless they are serializable.

use std::collections::BTreeMap;

use onrush_log::Lsn;
use onrush_types::{Schema, Value};
use onrush_waits::Phase;

use super::batch::Batch;
use super::commit::group_record;
use super::definitions::OwnDefinitions;
use super::entries::RowBytes;
use super::large::Large;
use super::references::References;
use super::row_locks::HeldRowLocks;
use super::row_record::{framed_row, row_body};
use super::serializable::Serializable;
use super::session::{Session, assigns};
use super::snapshot::HeldLsn;
use super::write_set::{RowKey, Write, WriteSet};
use super::{CommitToken, Scan, ScanOptions};
use crate::Row;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::logging::RecordKind;
use crate::options::Durability;
use crate::tree::Look;
use crate::units::ObjectId;

/// Several rows of one or more tables as one transaction. Dropping it rolls it back.
///
/// Isolation is snapshot isolation: it reads what was committed when it began, and its own changes.
/// Of two transactions that change the same row, the first to commit wins. Write skew is possible:
/// two transactions that each read what the other writes may both commit, unless both are
/// [serializable](Self::make_serializable).
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let note = ColumnDefinition::new("note", DataType::Text);
/// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// use onrush::Error;
///
/// let (mut one, mut two) = (db.session()?, db.session()?);
/// let mut transaction = one.begin()?;
/// transaction.insert(&notes, &[1i64.into(), "first".into()])?;
/// transaction.insert(&notes, &[2i64.into(), "second".into()])?;
/// assert!(transaction.get(&notes, &[1i64.into()])?.is_some());
/// assert!(two.get(&notes, &[1i64.into()])?.is_none()); // not committed yet
/// transaction.commit()?;
///
/// let mut loser = two.begin()?;
/// loser.update(&notes, &[1i64.into()], &[("note", "two".into())])?;
/// one.update(&notes, &[1i64.into()], &[("note", "one".into())])?;
/// match loser.commit() {
///     Err(Error::Conflict { .. }) => {} // begin again
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction<'s> {
    pub(super) session: &'s mut Session,
    /// What it reads; none for a transaction that only inserts.
    pub(super) held: Option<HeldLsn>,
    pub(super) writes: WriteSet,
    /// Whether anything was read by `held`.
    pub(super) has_read: bool,
    /// What it defines and keeps others from defining, if anything.
    pub(super) definitions: Option<Box<OwnDefinitions>>,
    /// What it has written to the leaves and the log already, if it is a large one.
    pub(super) large: Option<Box<Large>>,
    /// What rows had in unique indexes that are being built, by the places of these entries, as far as it has changed
    /// them since it last spilled.
    pub(super) former_entries: BTreeMap<RowKey, Vec<u8>>,
    /// What foreign keys have to look at.
    pub(super) references: References,
    /// What it has read, if it is serializable.
    pub(super) serializable: Option<Box<Serializable>>,
    /// Rows that it has locked.
    pub(super) row_locks: Option<Box<HeldRowLocks>>,
    /// Whether it inserts one row and looks at nothing.
    pub(super) is_one_row: bool,
    /// The savepoint of a statement, which gives no locks back.
    pub(super) statement: Option<u64>,
    /// What it has counted of the memory that its changes take.
    pub(super) counted_bytes: usize,
    /// What they took when it was last looked whether the commit can still hold those that are kept for it.
    pub(super) kept_looked_at: usize,
}

impl<'s> Transaction<'s> {
    pub(super) fn new(session: &'s mut Session, held: Option<HeldLsn>) -> Transaction<'s> {
        Transaction {
            session,
            held,
            writes: WriteSet::default(),
            has_read: false,
            definitions: None,
            large: None,
            former_entries: BTreeMap::new(),
            references: References::default(),
            serializable: None,
            row_locks: None,
            is_one_row: false,
            statement: None,
            counted_bytes: 0,
            kept_looked_at: 0,
        }
    }

    /// Inserts a row; see [`Session::insert`].
    ///
    /// # Errors
    /// A duplicate that this transaction can see now; others are found at commit. A value that
    /// does not fit. The transaction goes on without the row.
    pub fn insert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.call(Phase::Statement, |transaction| transaction.insert_row(table, values))
    }

    pub(super) fn insert_row(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.session.encode(table, values)?;
        self.insert_encoded(table)
    }

    /// Inserts the row that the session has encoded.
    pub(super) fn insert_encoded(&mut self, table: &Table) -> Result<()> {
        let key = self.session.encoded.key.clone();
        let at = (table.entry.object()?, key);
        let must_be_absent = match self.writes.get(&at) {
            Some(Write { value: Some(_), .. }) => return Err(table.duplicate_key(&at.1)),
            Some(Write { must_be_absent, .. }) => *must_be_absent,
            None => {
                // That a key is free is told by the commit, which lies behind whoever freed it.
                let (look, _) = self.seen(table, &at.1)?;
                if look.is_there {
                    self.session.rest_on(look.lsn)?;
                    return Err(table.duplicate_key(&at.1));
                }
                true
            }
        };
        self.write_encoded(table, at, must_be_absent, None)
    }

    /// The row at `key` that was there when the transaction began, or that it has spilled since.
    pub(super) fn seen(&mut self, table: &Table, key: &[u8]) -> Result<(Look, Vec<u8>)> {
        let Some(held) = &self.held else {
            return Ok((Look { is_there: false, lsn: None }, Vec::new()));
        };
        let own = self.large.as_ref().map(|large| large.view());
        let view = own.as_ref().map_or_else(|| held.view(), |own| own.over(held.lsn()));
        held.get_bytes(&mut self.session.worker, table, key, view)
    }

    /// Key bytes and value bytes of the row that this transaction encoded last: after an insert, the
    /// inserted row with its generated key; see [`Session::last_row`].
    #[must_use]
    pub fn last_row(&self) -> (&[u8], &[u8]) {
        self.session.last_row()
    }

    /// Inserts a row, or replaces the one with the same key.
    ///
    /// # Errors
    /// A value that does not fit.
    pub fn upsert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.call(Phase::Statement, |transaction| transaction.put_row(table, values))
    }

    pub(super) fn put_row(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        table.check_changeable()?;
        self.session.encode(table, values)?;
        let key = self.session.encoded.key.clone();
        let mut before = None;
        if table.entry.is_linked() || self.may_point_elsewhere(table)? {
            let encoded = self.session.encoded.clone();
            let (look, value) = self.look(table, &key)?;
            before = look.is_there.then_some((key.clone(), value));
            self.session.encoded = encoded;
        }
        let before = before.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice()));
        self.write_encoded(table, (table.entry.object()?, key), false, before)
    }

    /// The row with this primary key, as this transaction sees it.
    ///
    /// # Errors
    /// A key that does not fit the table; a table truncated or dropped meanwhile.
    pub fn get(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        self.call(Phase::Read, |transaction| {
            let mut bytes = Vec::new();
            table.entry.schema.encode_key(key, &mut bytes)?;
            let (look, value) = transaction.look(table, &bytes)?;
            let row = look.is_there.then(|| table.entry.schema.decode_row(&bytes, &value));
            Ok(row.transpose()?)
        })
    }

    /// Sets columns, by name, of the row with this primary key. False if there is no such row.
    ///
    /// # Errors
    /// A value that does not fit; a new key that is taken.
    pub fn update(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        assignments: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        self.call(Phase::Statement, |transaction| {
            let assignments = table.resolve(assignments)?;
            let mut bytes = Vec::new();
            table.entry.schema.encode_key(key, &mut bytes)?;
            transaction.update_resolved(table, &bytes, &assignments)
        })
    }

    pub(super) fn update_resolved(
        &mut self,
        table: &Table,
        key: &[u8],
        assignments: &[(usize, Value<'_>)],
    ) -> Result<bool> {
        table.check_changeable()?;
        let (look, value) = self.look(table, key)?;
        if !look.is_there {
            return self.session.nothing_there(look);
        }
        let schema = &table.entry.schema;
        let moved = schema.update_row(key, &value, assignments, &mut self.session.encoded)?;
        self.session.complete_encoded(table, assigns(assignments))?;
        let object = table.entry.object()?;
        let new_key = self.session.encoded.key.clone();
        if !moved {
            let fresh = self.writes.get(&(object, new_key.clone()));
            let must_be_absent = fresh.is_some_and(|write| write.must_be_absent);
            let before = Some((key, value.as_slice()));
            self.write_encoded(table, (object, new_key), must_be_absent, before)?;
            return Ok(true);
        }
        let encoded = self.session.encoded.clone();
        let (taken, _) = self.look(table, &new_key)?;
        if taken.is_there {
            self.session.rest_on(taken.lsn)?;
            return Err(table.duplicate_key(&new_key));
        }
        self.session.encoded = encoded;
        let removed = self.writes.get(&(object, new_key.clone()));
        let must_be_absent = removed.is_none_or(|write| write.must_be_absent);
        self.write_encoded(table, (object, new_key), must_be_absent, Some((key, &value)))?;
        self.remove(table, key)?;
        Ok(true)
    }

    /// Deletes the row with this primary key. False if there is no such row.
    ///
    /// # Errors
    /// A key that does not fit the table; a table truncated or dropped meanwhile.
    pub fn delete(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        self.call(Phase::Statement, |transaction| transaction.delete_row(table, key))
    }

    pub(super) fn delete_row(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        table.check_changeable()?;
        let mut bytes = Vec::new();
        table.entry.schema.encode_key(key, &mut bytes)?;
        let (look, value) = self.look(table, &bytes)?;
        if !look.is_there {
            return self.session.nothing_there(look);
        }
        let entries = self.entry_changes(table, Some((&bytes, &value)), None)?;
        self.put_entries(entries)?;
        self.note_references(table, Some((&bytes, &value)), None)?;
        self.remove_long_values(table, (&bytes, &value))?;
        self.remove(table, &bytes)?;
        Ok(true)
    }

    /// Removes the row with this primary key, whoever changed it last: what the transaction has read does
    /// not matter, so nobody can come first. For rows that belong to a table which this transaction drops.
    ///
    /// # Errors
    /// A key that does not fit the table; a table that has indexes.
    pub fn remove_latest(&mut self, table: &Table, key: &[Value<'_>]) -> Result<()> {
        self.call(Phase::Statement, |transaction| {
            table.check_changeable()?;
            if table.entry.is_linked() {
                return Err(Error::Internal(format!("table {} has indexes", table.name())));
            }
            let mut bytes = Vec::new();
            table.entry.schema.encode_key(key, &mut bytes)?;
            table.check_database(transaction.session.worker.engine.database_id)?;
            let at = (table.entry.object()?, bytes);
            let points_elsewhere = transaction.remove_newest_long_values(table, &at.1)?;
            transaction.put_removal(table, &at.1)?;
            if !points_elsewhere {
                transaction.writes.let_anyone_be_first(&at);
            }
            transaction.spill_if_large()
        })
    }

    /// Reads rows in key order, this transaction's own changes included.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn scan(&mut self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        let object = table.entry.object()?;
        let own = self
            .writes
            .iter()
            .filter(|((own, _), _)| *own == object)
            .map(|((_, key), write)| (key.clone(), write.value.clone()))
            .collect();
        let snapshot = self.view().with_own(self.own_pieces(table)?);
        self.session.saw(snapshot.held.lsn());
        let scan = Scan::new(snapshot, table, options, own)?;
        self.has_read = true;
        Ok(scan)
    }

    /// Commits: all changes, or on error none. Waits as the session's durability says.
    ///
    /// # Errors
    /// [`Conflict`](Error::Conflict) when another transaction changed one of the rows first;
    /// [`DuplicateKey`](Error::DuplicateKey); the errors of [`Session::insert`].
    pub fn commit(mut self) -> Result<()> {
        self.call(Phase::Commit, Self::commit_and_wait)
    }

    /// Commits as [`commit`](Self::commit) does, and waits as `durability` says, whatever the session's
    /// is.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// session.set_durability(Durability::Delayed);
    /// let mut transaction = session.begin()?;
    /// transaction.insert(&notes, &[1i64.into(), "must not be lost".into()])?;
    /// transaction.commit_as(Durability::Durable)?; // waits for the disk
    /// assert!(Some(db.durable_lsn()) >= session.last_commit_lsn());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_as(mut self, durability: Durability) -> Result<()> {
        let usual = self.session.durability();
        self.session.set_durability(durability);
        let outcome = self.call(Phase::Commit, Self::commit_and_wait);
        self.session.set_durability(usual);
        outcome
    }

    pub(super) fn commit_and_wait(&mut self) -> Result<()> {
        let committed = self.commit_writes();
        self.held = None;
        let committed = committed?;
        let acknowledged = match &committed {
            Some(commit) => self.session.acknowledge(commit.end, commit.logged),
            None => self.session.rest_on_all_seen(),
        };
        if committed.is_some_and(|commit| commit.is_large) {
            self.sweep_committed();
        }
        acknowledged
    }

    /// Commits and returns at once, with a token to wait on.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// let mut transaction = session.begin()?;
    /// transaction.insert(&notes, &[1i64.into(), "one".into()])?;
    /// transaction.insert(&notes, &[2i64.into(), "two".into()])?;
    /// let token = transaction.commit_token()?; // committed, and seen by everyone
    /// token.wait()?; // and now durable
    /// assert!(token.is_durable());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`commit`](Self::commit), but for those of waiting.
    pub fn commit_token(mut self) -> Result<CommitToken> {
        self.call(Phase::Commit, |transaction| {
            let committed = transaction.commit_writes();
            transaction.held = None;
            Ok(match committed? {
                Some(commit) => transaction.session.token(commit.end, commit.logged),
                None => transaction.session.newest_token(),
            })
        })
    }

    /// Runs one call from outside, so that its time is known.
    pub(super) fn call<T>(
        &mut self,
        last: Phase,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.session.worker.recorder.begin_call();
        let outcome = work(self);
        self.session.worker.recorder.end_call(last);
        outcome
    }

    /// Commits the rows of a batch that could not go its quick way.
    pub(super) fn commit_batch(
        mut self,
        table: &Table,
        object: ObjectId,
        batch: &Batch,
    ) -> Result<Lsn> {
        let logged = table.entry.tree.is_logged();
        for index in 0..batch.count() {
            let (key, value) = batch.row(index);
            let write = Write {
                table: table.clone(),
                value: Some(value.to_vec()),
                must_be_absent: true,
                unchanged_since: self.rests_on(),
                record: if logged { batch.record_of(index).to_vec() } else { Vec::new() },
            };
            self.writes.put((object, key.to_vec()), write);
        }
        let writes = self.writes.take();
        let record = group_record(&[], &writes);
        if record.len() <= self.session.worker.engine.options.record_bytes_max() {
            return Ok(self.commit_over_intents(&writes, &record, None)?.end);
        }
        drop(record);
        writes.into_iter().for_each(|(at, write)| self.writes.put_public(at, write));
        self.count_changes();
        let committed = self.commit_large()?;
        committed.map(|commit| commit.end).ok_or_else(|| Error::Internal("a batch was lost".into()))
    }

    /// Forgets all changes. Dropping the transaction does the same.
    pub fn rollback(self) {
        let counter = onrush_waits::Counter::Rollbacks;
        self.session.worker.recorder.count(counter, 1);
    }

    /// What is at `key`, and its value bytes: the own change, else what the snapshot has.
    pub(super) fn look(&mut self, table: &Table, key: &[u8]) -> Result<(Look, Vec<u8>)> {
        table.check_database(self.session.worker.engine.database_id)?;
        if let Some((look, value)) = self.writes.look(&(table.entry.object()?, key.to_vec())) {
            return Ok((look, self.whole(table, value)?));
        }
        let (look, value) = self.seen(table, key)?;
        let value = self.whole(table, value)?;
        if self.held.is_none() {
            return Ok((look, value));
        }
        self.has_read |= !self.has_made(table);
        self.session.saw_at(look);
        Ok((look, value))
    }

    /// Writes the encoded row, which takes the place of the one `before`, and changes the entries of both.
    pub(super) fn write_encoded(
        &mut self,
        table: &Table,
        at: RowKey,
        must_be_absent: bool,
        before: Option<RowBytes<'_>>,
    ) -> Result<()> {
        if table.entry.is_linked() || self.definitions.is_some() {
            let encoded = std::mem::take(&mut self.session.encoded);
            let after = Some((encoded.key.as_slice(), encoded.row.as_slice()));
            let entries = self.entry_changes(table, before, after);
            let noted = self.note_references(table, before, after);
            self.session.encoded = encoded;
            self.put_entries(entries?)?;
            noted?;
        }
        let was_wide = before.is_some_and(|(_, row)| table.entry.points_elsewhere(row));
        if was_wide || Schema::is_wide(&self.session.encoded.row) {
            return self.write_long(table, at, must_be_absent, before);
        }
        let encoded = &self.session.encoded;
        let schema = &table.entry.schema;
        let (kind, body) = row_body(&self.session.worker.engine, schema, encoded);
        let record = framed_row(table, kind, at.0, &at.1, body);
        let value = Some(encoded.row.clone());
        let unchanged_since = self.rests_on();
        let write = Write { table: table.clone(), value, must_be_absent, unchanged_since, record };
        self.put(at, write);
        self.spill_if_large()
    }

    pub(super) fn put(&mut self, at: RowKey, write: Write) {
        match self.is_public(&write.table) {
            true => self.writes.put_public(at, write),
            false => self.writes.put(at, write),
        }
    }

    fn remove(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.put_removal(table, key)?;
        self.spill_if_large()
    }

    pub(super) fn put_removal(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        let at = (table.entry.object()?, key.to_vec());
        if self.writes.get(&at).is_some_and(|write| write.must_be_absent) {
            // Inserted by this very transaction: nothing remains, but if the key was there the
            // insert would have failed.
            self.writes.remove(&at);
            return Ok(());
        }
        let record = framed_row(table, RecordKind::Remove, at.0, key, &[]);
        let write = Write {
            table: table.clone(),
            value: None,
            must_be_absent: false,
            unchanged_since: self.rests_on(),
            record,
        };
        self.put(at, write);
        Ok(())
    }
}

/// Closing the snapshot takes its time, too, unless the commit has done so.
impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.held.is_some() || self.large.is_some() {
            let _: Result<()> = self.call(Phase::Commit, |transaction| {
                transaction.held = None;
                transaction.writes = WriteSet::default();
                transaction.abort_large();
                Ok(())
            });
        }
        if self.counted_bytes > 0 {
            self.session.worker.engine.open_changes.count(self.counted_bytes, 0);
        }
    }
}
