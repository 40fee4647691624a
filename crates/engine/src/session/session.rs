//! A session: one thread's or task's way to the tables.

use std::sync::Arc;

use onrush_log::{Lsn, Reservation};
use onrush_types::{EncodedRow, KeyGenerator, ROW_BYTES_MAX, Schema, Value};
use onrush_waits::{Counter, Phase, Recorder};

use super::batch::{Batch, BatchRows};
use super::contexts::Contexts;
use super::indexed::IndexedRow;
use super::reference_side::KnownSides;
use super::row_record::row_body;
use super::token::{CommitToken, TokenSource};
use super::transaction::Transaction;
use super::worker::Worker;
use crate::Row;
use crate::catalog::Table;
use crate::engine::Engine;
use crate::error::Result;
use crate::logging::{RecordKind, RowHeader, TICK, group_header};
use crate::node::leaf::Entry;
use crate::options::Durability;
use crate::tree::{Blocked, Change, Expect, GroupRows, Refusal};
use crate::units::ObjectId;

/// So many random keys are drawn for a row before one is looked for on the disk.
const DRAWS_MAX: usize = 8;

/// Buffers of a batch that a session keeps for the next one take so much at most.
const BATCH_BYTES_KEPT: usize = 16 << 20;

/// One thread's or task's way to the tables. Made by [`Database::session`](crate::Database::session);
/// it may move between threads but is used by one at a time.
///
/// Every call outside a [`Transaction`] is a transaction of its own and is acknowledged as the
/// session's [`Durability`] says.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let note = ColumnDefinition::new("note", DataType::Text);
/// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// use onrush::Durability;
///
/// let mut session = db.session()?;
/// session.insert(&notes, &[1i64.into(), "durable".into()])?; // waited for the disk
///
/// session.set_durability(Durability::Delayed);
/// session.insert(&notes, &[2i64.into(), "soon".into()])?; // did not
/// session.update(&notes, &[2i64.into()], &[("note", "changed".into())])?;
/// assert!(session.delete(&notes, &[1i64.into()])?);
/// assert_eq!(session.get(&notes, &[2i64.into()])?.expect("inserted above")[1], "changed".into());
///
/// db.barrier()?; // now all of it is durable
/// assert!(Some(db.durable_lsn()) >= session.last_commit_lsn());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    pub(super) contexts: Contexts,
    pub(super) worker: Worker,
    pub(super) encoded: EncodedRow,
    /// Value bytes of the row that was read last.
    pub(super) value: Vec<u8>,
    pub(super) source: Arc<TokenSource>,
    /// Buffers of batches.
    batch: Batch,
    pub(super) indexed: IndexedRow,
    pub(super) sides: KnownSides,
    /// Names long values, once there are some.
    pub(super) long_value_ids: Option<Box<KeyGenerator>>,
    pub(super) durability: Durability,
    /// End of this session's last commit: its next snapshot must see it.
    pub(super) last_commit: Option<Lsn>,
    /// Behind the newest commit of others that it saw.
    pub(super) last_seen: Option<Lsn>,
    /// Behind the newest commit that answers rest on which nobody has waited for, as far as is known here.
    pub(super) rests_on: Option<Lsn>,
    /// Durable commits are waited for by the program.
    pub(super) waits_later: bool,
}

impl Session {
    pub(crate) fn new(engine: &Arc<Engine>) -> Session {
        Session::with(engine, Recorder::for_session(&engine.registry, "session"))
    }

    /// A session for one definition of the database's own.
    pub(crate) fn for_definitions(engine: &Arc<Engine>) -> Session {
        Session::with(engine, Recorder::new(&engine.registry, "definitions"))
    }

    fn with(engine: &Arc<Engine>, recorder: Arc<Recorder>) -> Session {
        let source =
            TokenSource { engine: Arc::clone(engine), recorder: Arc::downgrade(&recorder) };
        Session {
            worker: Worker::new(engine, recorder),
            contexts: Contexts::new(),
            encoded: EncodedRow::new(),
            value: Vec::new(),
            source: Arc::new(source),
            batch: Batch::default(),
            indexed: IndexedRow::default(),
            sides: KnownSides::default(),
            long_value_ids: None,
            durability: engine.options.durability,
            last_commit: None,
            last_seen: None,
            rests_on: None,
            waits_later: false,
        }
    }

    /// Position in the log, in bytes, at which this session's last commit ends; none if it has none.
    #[must_use]
    pub fn last_commit_lsn(&self) -> Option<Lsn> {
        self.last_commit
    }

    /// Key bytes and value bytes of the row that this session encoded last: after an insert, the
    /// inserted row with its generated key. Equal to what a scan's
    /// [`visit_raw`](crate::Scan::visit_raw) gives for that row.
    #[must_use]
    pub fn last_row(&self) -> (&[u8], &[u8]) {
        (&self.encoded.key, &self.encoded.row)
    }

    /// Inserts one row: a value for each column in order, [`Value::Default`] where the default is
    /// wanted, an empty slice for all defaults.
    ///
    /// # Errors
    /// [`DuplicateKey`](crate::Error::DuplicateKey); a value that does not fit; the errors of a commit
    /// ([`OutcomeUnknown`](crate::Error::OutcomeUnknown), [`DiskFull`](crate::Error::DiskFull)). In all but
    /// *outcome unknown* the row is not there.
    #[inline]
    pub fn insert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.call(Phase::Commit, |session| {
            let end = session.insert_row(table, values)?;
            session.acknowledge(end, table.entry.tree.is_logged())
        })
    }

    /// Inserts one row and returns at once, with a token to wait on. The row is visible to others
    /// and will be durable, in the order of the log.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_token(&mut self, table: &Table, values: &[Value<'_>]) -> Result<CommitToken> {
        self.call(Phase::Commit, |session| {
            let end = session.insert_row(table, values)?;
            Ok(session.token(end, table.entry.tree.is_logged()))
        })
    }

    /// Inserts one row and returns the values of its primary key, generated ones included.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_returning_key(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Row> {
        self.insert(table, values)?;
        Ok(table.entry.schema.decode_key(&self.encoded.key)?)
    }

    /// Inserts several rows as one transaction: all or none.
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
    /// let rows = [[1i64.into(), "one".into()], [2i64.into(), "two".into()]];
    /// session.insert_many(&notes, rows.iter().map(|row| &row[..]))?;
    /// let again = session.insert_many(&notes, [&[3i64.into(), Value::Null][..], &rows[0]]);
    /// assert!(matches!(again, Err(onrush::Error::DuplicateKey { .. })));
    /// assert_eq!(session.scan(&notes, &ScanOptions::default())?.count(), 2); // not even row 3
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert); [`TransactionTooLarge`](crate::Error::TransactionTooLarge).
    pub fn insert_many<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<()> {
        self.call(Phase::Commit, |session| {
            let end = session.insert_batch(table, rows)?;
            let logged = table.entry.tree.is_logged();
            end.map_or(Ok(()), |end| session.acknowledge(end, logged))
        })
    }

    /// Inserts several rows as one transaction and returns at once, with a token to wait on.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    pub fn insert_many_token<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<CommitToken> {
        self.call(Phase::Commit, |session| {
            let end = session.insert_batch(table, rows)?;
            let logged = table.entry.tree.is_logged();
            Ok(match end {
                Some(end) => session.token(end, logged),
                None => session.newest_token(),
            })
        })
    }

    /// Inserts a row, or replaces the one with the same key.
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
    /// session.upsert(&notes, &[1i64.into(), "first".into()])?;
    /// session.upsert(&notes, &[1i64.into(), "second".into()])?;
    /// let row = session.get(&notes, &[1i64.into()])?.expect("put there above");
    /// assert_eq!(row[1], "second".into());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert), without duplicates.
    pub fn upsert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.call(Phase::Commit, |session| {
            table.check_changeable()?;
            let put = |transaction: &mut Transaction<'_>| transaction.put_row(table, values);
            if table.entry.is_linked() {
                return session.change_rows(false, put);
            }
            session.encode(table, values)?;
            if Schema::is_wide(&session.encoded.row) {
                return session.change_rows(false, put);
            }
            let written = match session.put(table, Expect::Anything, false)? {
                Err(Refusal::Locked) => return session.change_rows(true, put),
                written => written.map_err(|refusal| session.explain(table, refusal))?,
            };
            session.worker.recorder.count(Counter::RowsUpdated, 1);
            session.collect_versions(table);
            session.acknowledge(written.end, table.entry.tree.is_logged())
        })
    }

    /// Sets columns, by name, of the row with this primary key. False if there is no such row.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); a new key that is taken.
    pub fn update(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        assignments: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        self.call(Phase::Commit, |session| session.update_row(table, key, assignments))
    }

    fn update_row(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        assignments: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        table.check_changeable()?;
        let assignments = table.resolve(assignments)?;
        let mut bytes = Vec::new();
        table.entry.schema.encode_key(key, &mut bytes)?;
        let update = |transaction: &mut Transaction<'_>| {
            transaction.update_resolved(table, &bytes, &assignments)
        };
        if table.entry.is_linked() {
            return self.change_rows(false, update);
        }
        loop {
            let look = self.newest(table, &bytes)?;
            let Some(seen_at) = look.version() else { return self.nothing_there(look) };
            if table.entry.points_elsewhere(&self.value) {
                return self.change_rows(false, update);
            }
            let schema = &table.entry.schema;
            let moved = schema.update_row(&bytes, &self.value, &assignments, &mut self.encoded)?;
            if moved {
                let mut transaction = self.begin()?;
                let updated = transaction.update_resolved(table, &bytes, &assignments)?;
                return transaction.commit().map(|()| updated);
            }
            self.complete_encoded(table, assigns(&assignments))?;
            if Schema::is_wide(&self.encoded.row) {
                return self.change_rows(false, update);
            }
            match self.put(table, Expect::Version(seen_at), false)? {
                Ok(written) => {
                    self.worker.recorder.count(Counter::RowsUpdated, 1);
                    self.collect_versions(table);
                    let logged = table.entry.tree.is_logged();
                    return self.acknowledge(written.end, logged).map(|()| true);
                }
                Err(Refusal::Missing(_) | Refusal::Changed(_)) => {}
                Err(Refusal::Locked) => return self.change_rows(true, update),
                Err(refusal) => return Err(self.explain(table, refusal)),
            }
        }
    }

    /// Deletes the row with this primary key. False if there is no such row.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), without duplicates.
    pub fn delete(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        self.call(Phase::Commit, |session| session.delete_row(table, key))
    }

    fn delete_row(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        table.check_changeable()?;
        let mut bytes = Vec::new();
        table.entry.schema.encode_key(key, &mut bytes)?;
        let delete = |transaction: &mut Transaction<'_>| transaction.delete_row(table, key);
        if table.entry.is_linked() {
            return self.change_rows(false, delete);
        }
        let tree = Arc::clone(&table.entry.tree);
        let object = table.entry.object()?;
        let header = RowHeader::new(RecordKind::Remove, object, bytes.len());
        let index = self.context(table)?;
        loop {
            let look = self.newest(table, &bytes)?;
            let Some(seen_at) = look.version() else { return self.nothing_there(look) };
            if table.entry.points_elsewhere(&self.value) {
                return self.change_rows(false, delete);
            }
            let record: [&[u8]; 3] =
                if tree.is_logged() { [header.as_bytes(), &bytes, &[]] } else { [TICK, &[], &[]] };
            let expect = Expect::Version(seen_at);
            let change = Change { object, key: &bytes, value: None, expect, record };
            let hint = &mut self.contexts[index].hint;
            let payload = record.iter().map(|part| part.len()).sum();
            let outcome = self.worker.inside_with_log_space(payload, |engine, seat| {
                table.entry.check_version()?;
                tree.write(engine, seat, hint, &change)
            })?;
            match outcome {
                Ok(written) => {
                    self.worker.recorder.count(Counter::RowsDeleted, 1);
                    self.collect_versions(table);
                    return self.acknowledge(written.end, tree.is_logged()).map(|()| true);
                }
                Err(Refusal::Missing(_) | Refusal::Changed(_)) => {}
                Err(Refusal::Locked) => return self.change_rows(true, delete),
                Err(refusal) => return Err(self.explain(table, refusal)),
            }
        }
    }

    /// Begins a transaction of several rows and tables. It reads from a snapshot taken now, and
    /// its own changes.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn begin(&mut self) -> Result<Transaction<'_>> {
        let held = self.call(Phase::Read, Session::hold_now)?;
        Ok(Transaction::new(self, Some(held)))
    }

    /// Encodes and writes the rows of a batch; the end of its record, or none without rows.
    fn insert_batch<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<Option<Lsn>> {
        if table.entry.is_more_than_rows() {
            return self.insert_all_linked(table, rows);
        }
        let _strict = table.entry.strict_order(&self.worker.recorder);
        let object = table.entry.object()?;
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        let mut rows = rows.into_iter();
        while let Some(row) = rows.next() {
            self.encode(table, row)?;
            if Schema::is_wide(&self.encoded.row) {
                return self.insert_long_batch(table, (object, &batch), rows);
            }
            let (kind, body) = row_body(&self.worker.engine, &table.entry.schema, &self.encoded);
            batch.push(object, kind, &self.encoded, body);
        }
        if batch.count() == 0 {
            return Ok(None);
        }
        if let Some(key) = batch.sort() {
            return Err(table.duplicate_key(&key));
        }
        let end = self.write_batch(table, object, &batch)?;
        if batch.held_bytes() <= BATCH_BYTES_KEPT {
            self.batch = batch;
        }
        Ok(Some(end))
    }

    fn write_batch(&mut self, table: &Table, object: ObjectId, batch: &Batch) -> Result<Lsn> {
        let [header, rows]: [&[u8]; 2] = if table.entry.tree.is_logged() {
            [&group_header(batch.count(), batch.record()), batch.record()]
        } else {
            [TICK, &[]]
        };
        let payload = header.len() + rows.len();
        if payload > self.worker.engine.options.record_bytes_max() {
            return Transaction::new(self, None).commit_batch(table, object, batch);
        }
        let batch_rows = BatchRows { batch, tree: &table.entry.tree, object };
        match self.write_group(table, &batch_rows, [header, rows], false)? {
            Ok(Some(end)) => {
                self.worker.recorder.count(Counter::RowsInserted, batch.count() as u64);
                Ok(end)
            }
            // It counts its rows itself.
            Ok(None) => Transaction::new(self, None).commit_batch(table, object, batch),
            Err(refusal) => Err(self.explain(table, refusal)),
        }
    }

    /// As [`Worker::write_group`], into the leaves where the session was last.
    pub(super) fn write_group(
        &mut self,
        table: &Table,
        rows: &impl GroupRows,
        record: [&[u8]; 2],
        is_shared: bool,
    ) -> Result<std::result::Result<Option<Lsn>, Refusal>> {
        let index = self.context(table)?;
        let Session { worker, contexts, .. } = self;
        worker.write_group(table, &mut contexts[index].hint, rows, record, is_shared)
    }

    #[inline]
    fn insert_row(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Lsn> {
        if table.entry.is_more_than_rows() {
            return self.insert_linked(table, values);
        }
        let _strict = table.entry.strict_order(&self.worker.recorder);
        let index = self.context(table)?;
        let mut draws = 0;
        loop {
            let is_drawn = self.contexts[index].prefetch_key(&mut self.worker, values)?;
            self.encode(table, values)?;
            if Schema::is_wide(&self.encoded.row) {
                let object = table.entry.object()?;
                return Transaction::new(self, None).commit_row(table, object);
            }
            draws += 1;
            match self.put(table, Expect::Absent, is_drawn && draws < DRAWS_MAX)? {
                Ok(written) => {
                    self.worker.recorder.count(Counter::RowsInserted, 1);
                    return Ok(written.end);
                }
                Err(Refusal::MayExist) => {}
                Err(refusal) => return Err(self.explain(table, refusal)),
            }
        }
    }

    /// Step 1 of an insert: values to bytes, in `self.encoded`, which the checks let pass.
    #[inline]
    pub(super) fn encode(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        let index = self.context(table)?;
        let Session { worker, contexts, encoded, .. } = self;
        let context = &mut contexts[index];
        let mut timestamp = None;
        let computed =
            |column: usize, default: &_| context.computed(worker, column, default, &mut timestamp);
        table.entry.schema.encode_row(values, computed, encoded)?;
        let entry_bytes = Entry::bytes(&encoded.key, &encoded.row);
        table.entry.note_entry_bytes(entry_bytes.min(ROW_BYTES_MAX));
        let is_given = |column| !matches!(values.get(column), None | Some(Value::Default));
        self.complete_encoded(table, is_given)
    }

    /// Computes what columns of the encoded row are computed of the others, and asks the checks of the table whether
    /// they let it pass. `is_given` tells the columns that the row was given values for.
    #[inline]
    pub(super) fn complete_encoded(
        &mut self,
        table: &Table,
        is_given: impl Fn(usize) -> bool,
    ) -> Result<()> {
        if let Some(generated) = &table.entry.generated {
            generated.complete(&table.entry.schema, &mut self.encoded, is_given)?;
        }
        table.entry.check_row(&self.worker.engine, &self.encoded.key, &self.encoded.row)
    }

    /// Writes the encoded row. Refused with `MayExist`, if the caller `may_draw` another key, where only a
    /// read would tell whether the key is there.
    #[inline]
    fn put(
        &mut self,
        table: &Table,
        expect: Expect,
        may_draw: bool,
    ) -> Result<std::result::Result<Reservation, Refusal>> {
        let index = self.context(table)?;
        let Session { worker, contexts, encoded, .. } = self;
        let tree = &table.entry.tree;
        let object = table.entry.object()?;
        let (kind, body) = row_body(&worker.engine, &table.entry.schema, encoded);
        let header = RowHeader::new(kind, object, encoded.key.len());
        let record: [&[u8]; 3] = if tree.is_logged() {
            [header.as_bytes(), &encoded.key, body]
        } else {
            [TICK, &[], &[]]
        };
        let value = Some(encoded.row.as_slice());
        let change = Change { object, key: &encoded.key, value, expect, record };
        let payload = record.iter().map(|part| part.len()).sum();
        let hint = &mut contexts[index].hint;
        worker.inside_with_log_space(payload, |engine, seat| {
            table.entry.check_version()?;
            tree.write(engine, seat, hint, &change).map_err(|refusal| match refusal {
                Refusal::Blocked(Blocked::Stock(_)) if may_draw => Refusal::MayExist,
                refusal => refusal,
            })
        })
    }

    /// Behind a change of rows: now and then drops old versions that no snapshot needs, and makes space where
    /// those of all tables take too much.
    pub(super) fn collect_versions(&mut self, table: &Table) {
        let versions = &table.entry.tree.versions;
        let engine = &self.worker.engine;
        if versions.is_due() {
            versions.collect(&engine.old_versions, engine.resolver.snapshots.horizon(&engine.log));
        }
        self.worker.make_space_if_over();
    }
}

/// Whether an update gives a column a value.
pub(super) fn assigns(assignments: &[(usize, Value<'_>)]) -> impl Fn(usize) -> bool {
    move |column| {
        let is_given =
            |(own, value): &(usize, Value<'_>)| *own == column && !matches!(value, Value::Default);
        assignments.iter().any(is_given)
    }
}
