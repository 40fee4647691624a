//! How the definitions of a transaction and its rows become one record.
//!
//! 1. Intents are placed, also into the trees of tables that nobody knows yet.
//! 2. Under the lock that a checkpoint takes to list the tables: the record gets its LSN and is copied,
//!    the status is set, the intents become rows, and the list of tables changes. So a checkpoint has
//!    all of it below E, or nothing and E is below it.
//! 3. What is dropped is cleared, and the locks are given back.
//!
//! Space in the log is waited for without that lock, because only a checkpoint may be able to make it.

use std::sync::Arc;

use onrush_latch::lock_counted;
use onrush_log::Lsn;
use onrush_waits::LatchClass;

use super::commit::{Committed, group_record, resolve};
use super::definitions::{OwnDefinitions, OwnTable};
use super::large::LargeCommit;
use super::transaction::Transaction;
use super::worker::Worker;
use super::write_set::Writes;
use crate::catalog::{CatalogChange, Restart, TableEntry};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{RecordKind, definition_record, sequence_record};
use crate::node::leaf::Owner;
use crate::tree::Tree;
use crate::units::ObjectId;

/// What a commit makes of the list of tables.
#[derive(Default)]
struct Definitions {
    /// Log records, in the order in which they are redone.
    records: Vec<Vec<u8>>,
    changes: Vec<CatalogChange>,
    /// Tables that rows of this transaction are placed in under objects that nobody knows.
    fresh: Vec<Arc<TableEntry>>,
    /// Trees of tables that are emptied, and those that they become.
    emptied: Vec<(Arc<Tree>, Arc<Tree>)>,
    dropped: Vec<Arc<Tree>>,
    /// Tables that the commit makes together with rows: a snapshot that does not see the rows must not
    /// take the table for an empty one.
    with_rows: Vec<Arc<TableEntry>>,
    /// Identities that begin anew for everyone.
    restarts: Vec<Restart>,
}

impl Definitions {
    fn of(
        own: &OwnDefinitions,
        writes: &Writes,
        large: Option<&LargeCommit>,
    ) -> Result<Definitions> {
        let mut definitions = Definitions::default();
        own.tables().try_for_each(|table| definitions.add(table))?;
        let has_rows = |entry: &&Arc<TableEntry>| {
            let Some(object) = entry.tree.object() else { return false };
            let first = writes.range((object, Vec::new())..).next();
            let in_pieces = large.is_some_and(|large| large.has_written(object));
            in_pieces || first.is_some_and(|((of, _), _)| *of == object)
        };
        let with_rows = definitions.fresh.iter().filter(has_rows).cloned().collect();
        Ok(Definitions { with_rows, ..definitions })
    }

    fn add(&mut self, table: &OwnTable) -> Result<()> {
        let OwnTable { before, now } = table;
        let new = match (before, now) {
            (None, None) => return Ok(()),
            (Some(before), None) => {
                let object = before.object()?;
                self.records.push(definition_record(RecordKind::DropTable, &[object], &[]));
                self.dropped.push(Arc::clone(&before.tree));
                None
            }
            (None, Some(now)) => {
                self.fresh.push(Arc::clone(now));
                self.create(now)?;
                Some(Arc::clone(now))
            }
            (Some(before), Some(now)) => Some(self.change(before, now)?),
        };
        self.changes.push(CatalogChange { old: before.clone(), new });
        Ok(())
    }

    fn change(
        &mut self,
        before: &Arc<TableEntry>,
        now: &Arc<TableEntry>,
    ) -> Result<Arc<TableEntry>> {
        let is_emptied = !Arc::ptr_eq(&before.tree, &now.tree);
        let is_altered = before.schema.version() != now.schema.version();
        if is_emptied {
            let objects = [before.object()?, now.object()?];
            self.records.push(definition_record(RecordKind::TruncateTable, &objects, &[]));
            self.fresh.push(Arc::clone(now));
            self.emptied.push((Arc::clone(&before.tree), Arc::clone(&now.tree)));
            for restart in before.begun_anew_in(now) {
                let mark = restart.higher_mark();
                let record = mark.map(|mark| sequence_record(before.id, restart.column, mark));
                self.records.extend(record);
                self.restarts.push(restart);
            }
        }
        if is_altered {
            self.define(RecordKind::AlterTable, now.object()?, now);
        }
        Ok(match (is_emptied, is_altered) {
            // Handles of others stay good.
            (true, false) => Arc::clone(before),
            (true, true) => Arc::new(now.over(&before.tree)?),
            (false, _) => Arc::clone(now),
        })
    }

    /// A new table. Redo takes its number from its first object, which it may have left already.
    fn create(&mut self, entry: &TableEntry) -> Result<()> {
        let object = entry.object()?;
        let first = ObjectId::new(entry.id).unwrap_or(object);
        self.define(RecordKind::CreateTable, first, entry);
        if first != object {
            let emptied = definition_record(RecordKind::TruncateTable, &[first, object], &[]);
            self.records.push(emptied);
        }
        Ok(())
    }

    /// The definition, and the marks of counters that only this transaction knows.
    fn define(&mut self, kind: RecordKind, object: ObjectId, entry: &TableEntry) {
        let definition = entry.schema.definition().to_bytes();
        self.records.push(definition_record(kind, &[object], &definition));
        for (column, reserved) in entry.private_counters() {
            self.records.push(sequence_record(entry.id, column, reserved));
        }
    }

    /// Changes the list of tables. The caller holds the lock that a checkpoint takes to read it.
    fn apply(&self, engine: &Engine, worker: &Worker, (lsn, end): (Lsn, Lsn)) {
        // Before anybody can see any of it, so that who tells of it knows what that rests on.
        engine.catalog.set_changed_at(end);
        for entry in &self.with_rows {
            entry.tree.begin_at(lsn);
        }
        for entry in &self.fresh {
            entry.tree.object().map(|object| engine.catalog.release_private(object));
        }
        for (tree, fresh) in &self.emptied {
            tree.begin_at(lsn);
            tree.take_over(engine, &worker.recorder, fresh);
        }
        for change in &self.changes {
            let built = change.built_indexes().into_iter();
            let built = built.filter_map(|entries| engine.catalog.by_id(entries));
            built.for_each(|entries| entries.tree.whole_from(lsn));
        }
        engine.catalog.apply(&self.changes);
    }
}

impl Transaction<'_> {
    /// Commits definitions and rows. The definitions' locks are the caller's to give back.
    pub(super) fn commit_definitions(
        &mut self,
        own: &mut OwnDefinitions,
        writes: &Writes,
        large: Option<&LargeCommit>,
    ) -> Result<Committed> {
        let mut definitions = Definitions::of(own, writes, large)?;
        definitions.records.extend(large.map(LargeCommit::record));
        let record = match planted(Fault::DefinitionsApart) {
            true => self.log_definitions_alone(&definitions, writes)?,
            false => group_record(&definitions.records, writes),
        };
        let limit = self.session.worker.engine.options.record_bytes_max();
        if record.len() > limit {
            return Err(Error::TransactionTooLarge { bytes: record.len(), limit });
        }
        let _shares = self.share_tables(writes, Some(own))?;
        let engine = Arc::clone(&self.session.worker.engine);
        let transaction = self.begin_commit()?;
        definitions.fresh.iter().for_each(|entry| engine.catalog.expect(entry));
        let placed = self.place_intents(writes, Owner::Small(transaction), Some(own));
        let worker = &mut self.session.worker;
        let statuses = (transaction, large);
        let published =
            placed.and_then(|()| publish(worker, statuses, &record, &definitions, writes));
        if published.is_err() {
            engine.resolver.transactions.decide(transaction, None);
            engine.resolver.transactions.announce(&worker.recorder);
            resolve(worker, writes, |_| {})?;
            let objects = definitions.fresh.iter().filter_map(|entry| entry.tree.object());
            objects.for_each(|object| engine.catalog.expect_no_longer(object));
        }
        if !matches!(published, Ok((_, Err(_)))) {
            engine.resolver.transactions.end(transaction, &worker.recorder);
        }
        let (end, resolved) = published?;
        resolved?;
        own.keep_trees();
        // Nobody else writes to these tables yet. Not under the lock: who has a counter may wait for log space.
        definitions.restarts.iter().for_each(Restart::apply);
        for tree in &definitions.dropped {
            tree.clear(&engine, &worker.recorder, None);
        }
        self.count_rows(writes);
        Ok(Committed { end, logged: true, is_large: false })
    }
}

impl Transaction<'_> {
    /// Planted: a record of the definitions, written, and then that of the rows, which is given back.
    fn log_definitions_alone(
        &mut self,
        definitions: &Definitions,
        writes: &Writes,
    ) -> Result<Vec<u8>> {
        let alone = group_record(&definitions.records, &Writes::default());
        let worker = &mut self.session.worker;
        worker.inside_if_log_space(alone.len(), |engine, seat| {
            let reservation = engine.log.reserve(seat.permit, alone.len());
            engine.log.fill(&reservation, &[&alone]);
            engine.log.complete(seat.permit);
        })?;
        worker.engine.log.write_now(&worker.recorder)?;
        Ok(group_record(&[], writes))
    }
}

/// The moment of the commit: the end of its record, and whether its intents have become rows.
fn publish(
    worker: &mut Worker,
    (transaction, large): (u32, Option<&LargeCommit>),
    record: &[u8],
    definitions: &Definitions,
    writes: &Writes,
) -> Result<(Lsn, Result<()>)> {
    let engine = Arc::clone(&worker.engine);
    loop {
        // Whoever holds the lock may wait for one who waits for a permit.
        worker.release();
        let lock = &engine.catalog.definitions;
        let lock = lock_counted(lock, &worker.recorder, LatchClass::Catalog);
        let published = worker.inside_if_log_space(record.len(), |engine, seat| {
            let reservation = engine.log.reserve(seat.permit, record.len());
            engine.log.fill(&reservation, &[record]);
            engine.resolver.transactions.decide(transaction, Some(reservation.lsn));
            large.iter().for_each(|large| large.set_committed(engine, reservation.lsn));
            engine.log.complete(seat.permit);
            (reservation.lsn, reservation.end)
        })?;
        if let Some(at) = published {
            engine.resolver.transactions.announce(&worker.recorder);
            // Nobody waits for the log under this lock: space is made behind it.
            let resolved = resolve(worker, writes, |_| {});
            definitions.apply(&engine, worker, at);
            return Ok((at.1, resolved));
        }
        drop(lock);
        worker.wait_for_log_space_of(record.len())?;
    }
}
