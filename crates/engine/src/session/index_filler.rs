//! Fills an index with the entries of rows that were there before it, beside those who write to the table.
//!
//! Whoever writes a row keeps its entry from the commit on that made the index, so entries lack of rows that were
//! written before. They are read from a snapshot, some at a time, and their entries written in the order of the index,
//! each by itself as far as crashes matter: an index that is not whole is dropped when the database is opened.
//!
//! Invariants
//! 1. An entry is written only where none is and where none was removed since the snapshot: whoever changes or removes
//!    a row after the snapshot removes the old entry, and that leaves a trace also where the entry was not there yet
//!    (`tree/intent.rs`). So an entry is always that of a row as it is.
//! 2. What is in the way is no wait: the row is read again from a later snapshot, and at last while nobody writes.

use std::ops::Range;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::{EncodedRow, Schema};

use super::batch::Batch;
use super::row_record::row_body;
use super::scan::KeyRange;
use super::session::Session;
use super::snapshot::Snapshot;
use crate::catalog::{Index, Table, TableEntry};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::logging::{TICK, group_header, take_varint};
use crate::transaction::IndexBuild;
use crate::tree::{Change, Direction, Expect, GroupRow, GroupRows, Hint, Refusal};
use crate::units::ObjectId;

/// Entries that are written together at most.
const GROUP_ENTRIES_MAX: usize = 64;

/// Bytes of entries that are put in order at a time.
const ORDERED_BYTES: usize = 8 << 20;

/// How often rows that were changed meanwhile are read again.
const ROUNDS: usize = 3;

/// One thread that fills an index.
pub(crate) struct IndexFiller {
    session: Session,
    table: Table,
    /// The position of the index among those of the table.
    position: usize,
    entries: Table,
    object: ObjectId,
    batch: Batch,
    /// The leaf where it was last.
    hint: Option<Hint>,
    build: Arc<IndexBuild>,
}

/// What became of an entry that was to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    IsThere,
    /// The row may be another one since the snapshot.
    Again,
}

impl IndexFiller {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        table: &Table,
        position: usize,
        build: &Arc<IndexBuild>,
    ) -> Result<IndexFiller> {
        let table = table.clone();
        let index = index_of(&table.entry, engine, position)?;
        let entries = Table { entry: Arc::clone(&index.entries), database_id: table.database_id };
        let object = entries.entry.object()?;
        let (session, build) = (Session::new(engine), Arc::clone(build));
        Ok(IndexFiller {
            session,
            table,
            position,
            entries,
            object,
            batch: Batch::default(),
            hint: None,
            build,
        })
    }

    /// Writes the entries of the rows of a range. False where some could not be written, as somebody else has changed
    /// their rows and has not come to an end, or changes them all the time; or snapshots are given up all the time.
    ///
    /// # Errors
    /// [`UniqueViolated`](Error::UniqueViolated) by two rows that were there at once; the table was altered.
    pub(crate) fn fill(&mut self, range: &KeyRange) -> Result<bool> {
        let mut again = if_kept(self.fill_range(range))?;
        for _ in 0..ROUNDS {
            if again.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
            self.batch.clear();
            again = match again {
                Some(rows) => if_kept(self.fill_rows(rows))?,
                None => if_kept(self.fill_range(range))?,
            };
        }
        self.session.worker.release();
        Ok(again.is_some_and(|rows| rows.is_empty()))
    }

    /// Two rows had a key of a unique index at once: one of them has lost its entry.
    ///
    /// # Errors
    /// [`UniqueViolated`](Error::UniqueViolated).
    pub(crate) fn check_not_doubled(&self) -> Result<()> {
        match self.entries.entry.tree.doubled() {
            Some(key) => Err(self.session.unique_violated(&self.entries, key)),
            None => Ok(()),
        }
    }

    /// Returns the keys of rows that must be read again.
    fn fill_range(&mut self, range: &KeyRange) -> Result<Vec<Vec<u8>>> {
        let snapshot = Snapshot::new(self.session.hold_now()?);
        let entry = Arc::clone(&self.table.entry);
        let index = index_of(&entry, &self.session.worker.engine, self.position)?;
        let mut scan = snapshot.scan_range(&self.table, range, Direction::Forward)?;
        let (mut again, mut encoded, mut rows) = (Vec::new(), EncodedRow::new(), 0);
        loop {
            let make =
                |key: &[u8], row: &[u8]| index.encode(&entry.schema, (key, row), &mut encoded);
            let next = scan.with_next(make)?;
            let is_over = next.is_none();
            if let Some(has_entry) = next {
                rows += 1;
                if has_entry? {
                    self.push(&encoded);
                }
            }
            if is_over || self.batch.record().len() > ORDERED_BYTES {
                self.put_all(index, snapshot.lsn(), &mut again)?;
                self.build.add_rows(std::mem::take(&mut rows));
            }
            if is_over {
                return Ok(again);
            }
        }
    }

    fn fill_rows(&mut self, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let mut snapshot = Snapshot::new(self.session.hold_now()?);
        let entry = Arc::clone(&self.table.entry);
        let index = index_of(&entry, &self.session.worker.engine, self.position)?;
        let (mut again, mut encoded) = (Vec::new(), EncodedRow::new());
        for key in keys {
            if let Some(row) = snapshot.get_raw(&self.table, &key)?
                && index.encode(&entry.schema, (&key, &row), &mut encoded)?
            {
                self.push(&encoded);
            }
        }
        self.put_all(index, snapshot.lsn(), &mut again)?;
        Ok(again)
    }

    fn push(&mut self, encoded: &EncodedRow) {
        let engine = &self.session.worker.engine;
        let (kind, body) = row_body(engine, &self.entries.entry.schema, encoded);
        self.batch.push(self.object, kind, encoded, body);
    }

    /// Writes the entries in their order, and adds the keys of rows that must be read again.
    fn put_all(&mut self, index: &Index, since: Lsn, again: &mut Vec<Vec<u8>>) -> Result<()> {
        if let Some(key) = self.batch.sort() {
            return Err(self.session.unique_violated(&self.entries, &key));
        }
        let limit = self.session.worker.engine.options.record_bytes_max() / 2;
        let (mut first, count) = (0, self.batch.count());
        while first < count {
            if self.build.has_failed() {
                return Err(Error::Interrupted);
            }
            let (mut end, mut bytes) = (first, 0);
            while end < count && end - first < GROUP_ENTRIES_MAX && (end == first || bytes < limit)
            {
                bytes += self.batch.record_of(end).len();
                end += 1;
            }
            if end - first == 1 || !self.put_group(first..end, since)? {
                for at in first..end {
                    if self.put(index, at, since)? == Put::Again {
                        again.push(self.row_key(index, at)?);
                    }
                }
            }
            first = end;
        }
        self.batch.clear();
        Ok(())
    }

    /// Writes entries under latches held together, with one record. False where that cannot be done.
    fn put_group(&mut self, range: Range<usize>, since: Lsn) -> Result<bool> {
        let mut records = Vec::new();
        range.clone().for_each(|at| records.extend_from_slice(self.batch.record_of(at)));
        let header = group_header(range.len(), &records);
        let record: [&[u8]; 2] = match self.entries.entry.tree.is_logged() {
            true => [&header, &records],
            false => [TICK, &[]],
        };
        let rows = Group { filler: (&self.batch, &self.entries, self.object), range, since };
        let worker = &mut self.session.worker;
        match worker.write_group(&self.entries, &mut self.hint, &rows, record, false)? {
            Ok(end) => Ok(end.is_some()),
            Err(refusal) => Err(self.session.explain_key(&self.entries, refusal, &[])),
        }
    }

    /// Writes the entry at `at` by itself.
    fn put(&mut self, index: &Index, at: usize, since: Lsn) -> Result<Put> {
        let IndexFiller { session, entries, batch, hint, .. } = self;
        let (key, value) = batch.row(at);
        let mut record = batch.record_of(at);
        take_varint(&mut record);
        let tree = &entries.entry.tree;
        let record = if tree.is_logged() { record } else { TICK };
        let change = Change {
            object: self.object,
            key,
            value: Some(value),
            expect: Expect::AbsentSince(since),
            record: [record, &[], &[]],
        };
        let outcome = session.worker.inside_with_log_space(record.len(), |engine, seat| {
            entries.entry.check_version()?;
            tree.write(engine, seat, hint, &change)
        })?;
        match outcome {
            Ok(_) => Ok(Put::IsThere),
            // Its key holds the whole primary key, so it is the row's.
            Err(Refusal::Exists(_)) if !index.is_unique() => Ok(Put::IsThere),
            Err(Refusal::Exists(_)) => self.look_at_taken(at, since),
            Err(Refusal::Changed(_) | Refusal::TooOld | Refusal::Held | Refusal::Locked) => {
                Ok(Put::Again)
            }
            Err(refusal) => Err(session.explain_key(entries, refusal, key)),
        }
    }

    /// The key of a unique index is taken: by the row itself, as it was changed since, or by another one.
    fn look_at_taken(&mut self, at: usize, since: Lsn) -> Result<Put> {
        let IndexFiller { session, entries, batch, .. } = self;
        let (key, value) = batch.row(at);
        let look = session.newest(entries, key)?;
        if look.is_there && Schema::is_same_row(&session.value, value) {
            return Ok(Put::IsThere);
        }
        match look.version().is_some_and(|written_at| written_at < since) {
            true => Err(session.unique_violated(entries, key)),
            false => Ok(Put::Again),
        }
    }

    /// The key of the row that the entry at `at` is of.
    fn row_key(&self, index: &Index, at: usize) -> Result<Vec<u8>> {
        let schema = &self.table.entry.schema;
        let (mut key, row) = (Vec::new(), index.row_key(schema, self.batch.row(at))?);
        schema.encode_key(&row, &mut key)?;
        Ok(key)
    }
}

/// None where the snapshot was given up in the middle of it.
fn if_kept<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(Error::SnapshotTooOld { .. }) => Ok(None),
        read => read.map(Some),
    }
}

fn index_of<'t>(table: &'t TableEntry, engine: &Engine, position: usize) -> Result<&'t Index> {
    let indexes = table.indexes(|id| engine.catalog.by_id(id))?;
    indexes.get(position).ok_or_else(|| Error::TableChanged { name: table.name().to_owned() })
}

/// Entries on their way to their leaves.
struct Group<'f> {
    filler: (&'f Batch, &'f Table, ObjectId),
    range: Range<usize>,
    since: Lsn,
}

impl GroupRows for Group<'_> {
    fn count(&self) -> usize {
        self.range.len()
    }

    fn row(&self, index: usize) -> GroupRow<'_> {
        let (batch, entries, object) = self.filler;
        let (key, value) = batch.row(self.range.start + index);
        GroupRow { tree: &entries.entry.tree, object, key, value }
    }

    fn bytes(&self) -> usize {
        (0..self.count())
            .map(|index| self.row(index))
            .map(|row| row.key.len() + row.value.len())
            .sum()
    }

    fn unchanged_since(&self) -> Option<Lsn> {
        Some(self.since)
    }
}
