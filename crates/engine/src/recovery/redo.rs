//! Redoes the log: each record changes what an image does not have yet.
//!
//! Rows go in batches to workers (`rows.rs`), which keep the changes of one key in log order. Records
//! about tables are barriers: everything before them is done first. A row in a leaf that is as new as
//! the record, or newer, came from an image: the record is skipped.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::TableDefinition;

use super::rows::RowRedo;
use crate::catalog::{CatalogChange, TableEntry};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{Record, RowRecord, commit_objects, group_records, read_record};
use crate::node::leaf::LargeOwner;
use crate::tree::Tree;
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
            Record::Row(row) => self.row(lsn, &row, None),
            Record::Piece { .. } if planted(Fault::PieceNotRedone) => Ok(()),
            Record::Piece { id, piece, rows } => {
                self.engine.resolver.large.note_number(id);
                let owner = Some(LargeOwner { id, piece });
                let rows = group_records(rows).ok_or_else(unreadable)?;
                rows.iter().try_for_each(|record| match record {
                    Record::Row(row) => self.row(lsn, row, owner),
                    _ => Err(unreadable()),
                })
            }
            Record::Group(body) => {
                let records = group_records(body).ok_or_else(unreadable)?;
                let definitions =
                    records.iter().take_while(|record| !matches!(record, Record::Row(_))).count();
                let (definitions, rows) = records.split_at(definitions);
                self.definitions(lsn, definitions)?;
                rows.iter().try_for_each(|record| match record {
                    Record::Row(row) => self.row(lsn, row, None),
                    _ => Err(unreadable()),
                })
            }
            Record::PrivateObject { definition, object } => self.private_object(definition, object),
            Record::Tick => Ok(()),
            definition => self.definitions(lsn, &[definition]),
        }
    }

    fn row(&mut self, lsn: Lsn, row: &RowRecord<'_>, owner: Option<LargeOwner>) -> Result<()> {
        self.totals.rows += 1;
        self.rows.push(lsn, row, owner)
    }

    /// Rows of an object come that only a commit behind them makes a table's.
    fn private_object(&mut self, definition: &[u8], object: ObjectId) -> Result<()> {
        self.rows.barrier()?;
        let engine = &self.engine;
        engine.catalog.raise_next_object(object.number().saturating_add(1));
        if engine.catalog.by_object(object).is_none() && !planted(Fault::PrivateObjectNotRedone) {
            let definition = Arc::new(TableDefinition::from_bytes(definition)?);
            let tree = Arc::new(Tree::new(engine, object, definition.is_logged()));
            engine.catalog.keep_private(&Arc::new(TableEntry::new(
                object.number(),
                definition,
                tree,
                &[],
            )?));
        }
        Ok(())
    }

    /// What one transaction has defined, all at one moment.
    fn definitions(&mut self, lsn: Lsn, records: &[Record<'_>]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        // Also before an outcome: what a piece places must not be resolved before all pieces have been redone.
        self.rows.barrier()?;
        let is_known = lsn < self.defined_to;
        let mut defined = Defined { engine: &self.engine, changes: BTreeMap::new() };
        for record in records {
            // Marks only rise, so those of the directory stand.
            if let Record::LargeCommit { id, objects } = record {
                let objects = commit_objects(objects).unwrap_or_default();
                self.engine.resolver.large.note_number(*id);
                self.engine.resolver.large.commit(*id, lsn, &objects);
            } else if !is_known || matches!(record, Record::Sequence { .. }) {
                defined.record(record)?;
            }
        }
        defined.apply();
        Ok(())
    }

    /// Waits for all rows; the first error counts.
    pub(super) fn finish(self) -> Result<Totals> {
        self.rows.finish().map(|()| self.totals)
    }
}

/// The definitions of one transaction, as they are taken off its record.
struct Defined<'e> {
    engine: &'e Arc<Engine>,
    /// What becomes of each table, by number.
    changes: BTreeMap<u32, CatalogChange>,
}

impl Defined<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let engine = self.engine;
        match *record {
            Record::CreateTable { definition, object } => {
                engine.catalog.raise_next_object(object.number().saturating_add(1));
                let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                let made = || Arc::new(Tree::new(engine, object, definition.is_logged()));
                let private = engine.catalog.release_private(object);
                let tree = private.map_or_else(made, |entry| Arc::clone(&entry.tree));
                let new = Arc::new(TableEntry::new(object.number(), definition, tree, &[])?);
                self.changes.insert(object.number(), CatalogChange { old: None, new: Some(new) });
            }
            Record::AlterTable { .. } if planted(Fault::AlterNotRedone) => {}
            Record::AlterTable { definition, object } => {
                let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                if let Some(entry) = self.entry(object) {
                    self.put(&entry, Some(Arc::new(entry.altered(definition)?)));
                }
            }
            Record::DropTable { object } => {
                if let Some(entry) = self.entry(object) {
                    self.put(&entry, None);
                }
            }
            Record::TruncateTable { .. } if planted(Fault::TruncateNotRedone) => {}
            Record::TruncateTable { object, new_object } => {
                engine.catalog.raise_next_object(new_object.number().saturating_add(1));
                if let Some(entry) = self.entry(object) {
                    match engine.catalog.release_private(new_object) {
                        Some(fresh) => entry.tree.take_over(engine, &engine.recorder, &fresh.tree),
                        None => entry.tree.clear(engine, &engine.recorder, Some(new_object)),
                    }
                    self.put(&entry, Some(Arc::clone(&entry)));
                }
            }
            Record::Sequence { table, column, reserved } => {
                let changed = self.changes.get(&table).and_then(|change| change.new.clone());
                let entry = changed.or_else(|| engine.catalog.by_id(table));
                let counter = |entry: &Arc<TableEntry>| entry.numbered_sequence(column as usize);
                if let Some(sequence) = entry.as_ref().and_then(counter) {
                    sequence.raise(reserved);
                }
            }
            Record::Row(_)
            | Record::Group(_)
            | Record::Piece { .. }
            | Record::LargeCommit { .. }
            | Record::PrivateObject { .. }
            | Record::Tick => {}
        }
        Ok(())
    }

    /// The table with these rows, as the records before this one have left it.
    fn entry(&self, object: ObjectId) -> Option<Arc<TableEntry>> {
        let changed = self.changes.values().filter_map(|change| change.new.as_ref());
        let mut changed = changed.filter(|entry| entry.tree.object() == Some(object));
        changed.next().cloned().or_else(|| self.engine.catalog.by_object(object))
    }

    fn put(&mut self, entry: &Arc<TableEntry>, new: Option<Arc<TableEntry>>) {
        let unchanged = || CatalogChange { old: Some(Arc::clone(entry)), new: None };
        self.changes.entry(entry.id).or_insert_with(unchanged).new = new;
    }

    fn apply(self) {
        let changes: Vec<CatalogChange> = self.changes.into_values().collect();
        self.engine.catalog.apply(&changes);
        for old in
            changes.iter().filter_map(|change| change.old.as_ref().filter(|_| change.new.is_none()))
        {
            old.tree.clear(self.engine, &self.engine.recorder, None);
        }
    }
}
