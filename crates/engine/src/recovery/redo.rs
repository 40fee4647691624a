//! Redoes the log: each record changes what an image does not have yet.
//!
//! Rows go in batches to workers (`rows.rs`), which keep the changes of one key in log order. Records
//! about tables are barriers: everything before them is done first. A row in a leaf that is as new as
//! the record, or newer, came from an image: the record is skipped.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::TableDefinition;

use super::rows::RowRedo;
use crate::btree::Tree;
use crate::catalog::TableEntry;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{Record, RowRecord, group_rows, read_record};
use crate::units::ObjectId;

/// What was redone.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Totals {
    pub(super) records: u64,
    pub(super) rows: u64,
}

/// The redo of one log.
pub(super) struct Redo {
    engine: Arc<Engine>,
    /// The directory holds what every definition record below this has made: names have changed hands
    /// since, so to apply one again would be to apply it to another table.
    defined_to: Lsn,
    rows: RowRedo,
    totals: Totals,
}

impl Redo {
    pub(super) fn start(engine: &Arc<Engine>, defined_to: Lsn) -> Redo {
        let (engine, rows) = (Arc::clone(engine), RowRedo::start(engine));
        Redo { engine, defined_to, rows, totals: Totals::default() }
    }

    /// Takes the next record of the log.
    pub(super) fn record(&mut self, lsn: Lsn, payload: &[u8]) -> Result<()> {
        let unreadable = || Error::DamagedLog(format!("the record at LSN {lsn} does not decode"));
        self.totals.records += 1;
        match read_record(payload).ok_or_else(unreadable)? {
            Record::Row(row) => self.row(lsn, &row),
            Record::Group(body) => {
                let rows = group_rows(body).ok_or_else(unreadable)?;
                rows.iter().try_for_each(|row| self.row(lsn, row))
            }
            Record::Tick => Ok(()),
            // Marks only rise, so those of the directory stand.
            other
                if lsn < self.defined_to
                    && !matches!(other, Record::Sequence { .. })
                    && !planted(Fault::DefinitionsRedoneBelowE) =>
            {
                Ok(())
            }
            other => {
                self.rows.barrier()?;
                self.definition(&other)
            }
        }
    }

    fn row(&mut self, lsn: Lsn, row: &RowRecord<'_>) -> Result<()> {
        self.totals.rows += 1;
        self.rows.push(lsn, row)
    }

    fn definition(&self, record: &Record<'_>) -> Result<()> {
        let engine = &self.engine;
        match *record {
            Record::CreateTable { definition, object } => {
                engine.catalog.raise_next_object(object.0.saturating_add(1));
                if engine.catalog.by_id(object.0).is_none() {
                    let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                    let tree = Tree::new(engine, object, definition.is_logged());
                    let entry = TableEntry::new(object.0, definition, tree, &[])?;
                    engine.catalog.add(Arc::new(entry));
                }
            }
            Record::AlterTable { .. } if planted(Fault::AlterNotRedone) => {}
            Record::AlterTable { definition, object } => {
                let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                // A checkpoint after this record may know a later definition already.
                if let Some(entry) = engine.catalog.by_object(object)
                    && entry.schema.version() < definition.version()
                {
                    engine.catalog.alter(&entry, entry.altered(definition)?);
                }
            }
            Record::DropTable { object } => {
                if let Some(entry) = engine.catalog.by_object(object) {
                    engine.catalog.remove(&entry);
                    entry.tree.clear(engine, &engine.recorder, ObjectId(0));
                }
            }
            Record::TruncateTable { .. } if planted(Fault::TruncateNotRedone) => {}
            Record::TruncateTable { object, new_object } => {
                engine.catalog.raise_next_object(new_object.0.saturating_add(1));
                if let Some(entry) = engine.catalog.by_object(object) {
                    engine.catalog.replace_object(&entry, new_object);
                    entry.tree.clear(engine, &engine.recorder, new_object);
                }
            }
            Record::Sequence { table, column, reserved } => {
                let entry = engine.catalog.by_id(table);
                let counter = |entry: &Arc<TableEntry>| entry.numbered_sequence(column as usize);
                if let Some(sequence) = entry.as_ref().and_then(counter) {
                    sequence.raise(reserved);
                }
            }
            Record::Row(_) | Record::Group(_) | Record::Tick => {}
        }
        Ok(())
    }

    /// Waits for all rows; the first error counts.
    pub(super) fn finish(self) -> Result<Totals> {
        self.rows.finish().map(|()| self.totals)
    }
}
