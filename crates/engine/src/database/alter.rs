//! Altering a table: a record of the log, whatever the table holds. Rows stay as they are; each names
//! the version that it was written with, and is read as one of the newest. Why:
//! `docs/decisions/0006-altering-a-table-rewrites-nothing.md`.
//!
//! Invariants
//! 1. Rows of a version come after its record in the log, and whoever writes looks inside whether his
//!    version is still the newest: [`TableEntry::check_version`].
//! 2. A change that suits only an empty table stops writers first, then looks for rows, also those of
//!    transactions in the middle of their commit, and lets nobody write before its record is in the log.
//!    So does a new CHECK constraint, which every row must meet.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush_latch::lock_counted;
use onrush_types::{NeedsNoRows, TableChange, TableDefinition};
use onrush_waits::LatchClass;

use super::define::definition_record;
use super::{Database, Table};
use crate::catalog::TableEntry;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::logging::RecordKind;
use crate::session::ScanOptions;

/// How long a new CHECK constraint waits for commits that are under way.
const COMMITS_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it looks whether they have ended.
const COMMITS_LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Database {
    /// Changes a table: all of `changes`, in their order, or none. Durable when this returns. It takes
    /// the same time for a table of any size: no row is written. Sessions go on; whoever has a handle
    /// from before can no longer write by it and gets [`TableChanged`](Error::TableChanged), also when
    /// he meets rows that are newer than his handle. The new handle is returned.
    ///
    /// Rows that are there hold a new column's constant default, the moment of this call where its
    /// default is now, else NULL. Room of a dropped column comes back as rows are changed.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let old = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// session.insert(&old, &[1i64.into()])?;
    /// let stars = ColumnDefinition::new("stars", DataType::Int32).not_null().default_value(3i32);
    /// let notes = db.alter_table("notes", &[TableChange::AddColumn(stars)])?;
    /// assert_eq!(session.get(&notes, &[1i64.into()])?.expect("is there")[1], 3i32.into());
    /// session.insert(&notes, &[2i64.into(), 5i32.into()])?;
    /// assert!(matches!(session.insert(&old, &[3i64.into()]), Err(Error::TableChanged { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); [`TableExists`](Error::TableExists) for a new name that
    /// is taken; [`RowsInTheWay`](Error::RowsInTheWay) for a column without a value for the rows that
    /// there are; [`RowsViolateCheck`](Error::RowsViolateCheck); what [`TableDefinition::altered`]
    /// refuses.
    pub fn alter_table(&self, name: &str, changes: &[TableChange]) -> Result<Table> {
        let engine = self.engine();
        engine.check_open()?;
        let altering = &engine.catalog.altering;
        let _one_at_a_time = lock_counted(altering, &engine.recorder, LatchClass::Catalog);
        let entry = engine.catalog.get(name)?;
        if changes.is_empty() {
            return Ok(self.handle(entry));
        }
        let altered = altered(engine, &entry, changes)?;
        let mut stopped = None;
        if let Some((column, reason)) = changes.iter().find_map(needs_no_rows) {
            let (table, column) = (name.to_owned(), column.to_owned());
            let in_the_way = Error::RowsInTheWay { table, column, reason };
            // Nobody need stop for a table that plainly has rows.
            if self.has_committed_rows(&entry)? {
                return Err(in_the_way);
            }
            let writers = StoppedWriters::of(engine, &entry, altered.schema.version());
            if self.has_rows(&entry)? {
                return Err(in_the_way);
            }
            stopped = Some(writers);
        }
        if changes.iter().any(|change| matches!(change, TableChange::AddCheck(_))) {
            let version = altered.schema.version();
            let writers = stopped.take();
            let writers = writers.unwrap_or_else(|| StoppedWriters::of(engine, &entry, version));
            self.check_rows(&entry, &altered)?;
            stopped = Some(writers);
        }
        let bytes = altered.schema.definition().to_bytes();
        let mut altered = Some(altered);
        let prepare = || {
            let now = engine.catalog.get(name)?;
            if !Arc::ptr_eq(&now, &entry) {
                return Err(Error::TableChanged { name: name.to_owned() });
            }
            for change in changes {
                if let TableChange::Rename { to } = change
                    && engine.catalog.contains(to)
                {
                    return Err(Error::TableExists { name: to.clone() });
                }
            }
            let object = entry.tree.object();
            Ok((definition_record(RecordKind::AlterTable, &[object], &bytes), ()))
        };
        let new = self.define(prepare, |()| {
            let altered = altered.take();
            let altered = altered.ok_or_else(|| Error::Internal("altered twice".to_owned()))?;
            let new = engine.catalog.alter(&entry, altered);
            if let Some(stopped) = stopped.take() {
                stopped.keep();
            }
            Ok(new)
        })?;
        Ok(self.handle(new))
    }

    /// Whether the table has a row, or will have one that a transaction has placed already. Nobody
    /// writes to it.
    fn has_rows(&self, entry: &Arc<TableEntry>) -> Result<bool> {
        let engine = self.engine();
        let gone = |_| Error::TableChanged { name: entry.name().to_owned() };
        let object = entry.tree.object();
        // Before the scan: what is an intent now may be a row by then.
        if entry.tree.has_intents(engine, &engine.recorder, object).map_err(gone)? {
            return Ok(true);
        }
        self.has_committed_rows(entry)
    }

    /// Looks at all rows as the checks of `altered` do. Nobody writes to the table, but transactions
    /// in the middle of their commit.
    fn check_rows(&self, entry: &Arc<TableEntry>, altered: &TableEntry) -> Result<()> {
        let engine = self.engine();
        let changed = || Error::TableChanged { name: entry.name().to_owned() };
        let (object, began) = (entry.tree.object(), Instant::now());
        while entry.tree.has_intents(engine, &engine.recorder, object).map_err(|_| changed())? {
            // What is an intent still may be waiting for something long.
            if began.elapsed() > COMMITS_WAIT_MAX {
                return Err(changed());
            }
            std::thread::sleep(COMMITS_LOOK_AGAIN);
        }
        let table = self.handle(Arc::clone(entry));
        let mut outcome = Ok(());
        self.session()?.scan(&table, &ScanOptions::default())?.visit_raw(|key, row| {
            if outcome.is_ok() {
                outcome = altered.check_row(engine, key, row);
            }
        })?;
        outcome.map_err(|error| match error {
            Error::CheckViolated { table, constraint } => {
                Error::RowsViolateCheck { table, constraint }
            }
            other => other,
        })
    }

    fn has_committed_rows(&self, entry: &Arc<TableEntry>) -> Result<bool> {
        let table = self.handle(Arc::clone(entry));
        let one = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        self.session()?.scan(&table, &one)?.visit_raw(|_, _| {}).map(|rows| rows > 0)
    }
}

/// The new column of a change that suits only a table without rows, and why.
fn needs_no_rows(change: &TableChange) -> Option<(&str, NeedsNoRows)> {
    match change {
        TableChange::AddColumn(column) => Some((&column.name, change.needs_no_rows()?)),
        _ => None,
    }
}

/// The entry of the table after the changes.
fn altered(engine: &Engine, entry: &TableEntry, changes: &[TableChange]) -> Result<TableEntry> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let mut definition = TableDefinition::clone(entry.schema.definition());
    for change in changes {
        definition = definition.altered(change, unix_micros)?;
    }
    engine.check_open()?;
    entry.altered(Arc::new(definition))
}

/// Nobody writes to a table by handles that there are, until this is dropped.
struct StoppedWriters<'e> {
    entry: &'e TableEntry,
}

impl<'e> StoppedWriters<'e> {
    /// Returns when all who were in the middle of a change have made it.
    fn of(engine: &Engine, entry: &'e TableEntry, version: u16) -> StoppedWriters<'e> {
        entry.tree.set_version(version);
        engine.admission.wait_until_left();
        StoppedWriters { entry }
    }

    /// They stay stopped: the table has that version now.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for StoppedWriters<'_> {
    fn drop(&mut self) {
        self.entry.tree.set_version(self.entry.schema.version());
    }
}
