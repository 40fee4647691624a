//! A transaction that is too large for the memory of its session.
//!
//! Once its write set takes more than `large_transaction_bytes` it is *spilled*: every change becomes an
//! intent in its leaf, and the log gets a piece that holds all of them. From then on the write set holds what
//! came since the last piece. The commit is one small record, whatever has been written; a rollback is none.
//!
//! | state | what stands where | how it ends |
//! |---|---|---|
//! | small | all in the write set | a commit as one record, or it is spilled |
//! | large, open | intents in leaves and images, pieces in the log, the rest in the write set | a commit, or dropped |
//! | ended | intents mean rows, or nothing, by the outcome | all leaves that were written are swept |
//!
//! Invariants
//! 1. A piece is logged after its intents stand, and before the record of the commit.
//! 2. What a savepoint came before and behind is never in the same piece, so going back undoes whole pieces.
//! 3. An object that the transaction itself has made is known to checkpoints, and in the log, before the first
//!    piece with rows of it, and until the commit makes it a table's. Rows of a table that it has altered stay in
//!    the write set: their version means nothing before the commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_latch::lock_counted;
use onrush_log::Lsn;
use onrush_waits::{Counter, LatchClass};

use super::commit::Committed;
use super::transaction::Transaction;
use super::write_set::{RowKey, Writes};
use crate::catalog::Table;
use crate::checkpoint::{sweep_aborted, sweep_due};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{RecordKind, TICK, definition_record, large_commit_record, piece_header};
use crate::node::leaf::{LargeOwner, Owner};
use crate::tree::OwnVersions;
use crate::tree::{OwnIntent, Refusal, Seat, Tree, View};
use crate::units::ObjectId;

/// How many rows were changed, by what happened to them.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    inserted: u64,
    updated: u64,
    deleted: u64,
}

/// Where a savepoint stands among the pieces.
pub(super) struct Mark {
    pub(super) savepoint: u64,
    /// The first piece behind it.
    pub(super) piece: u32,
    pub(super) tally: Tally,
}

/// See the module. Dropped before a commit it is aborted.
pub(super) struct Large {
    engine: Arc<Engine>,
    pub(super) id: u64,
    /// The piece that comes next.
    piece: u32,
    pub(super) versions: Arc<OwnVersions>,
    /// Tables with rows in pieces.
    pub(super) tables: BTreeMap<ObjectId, Table>,
    pub(super) marks: Vec<Mark>,
    /// Objects that it has made itself.
    private: Vec<ObjectId>,
    /// Why it can only be rolled back.
    pub(super) failure: Option<Error>,
    bytes: u64,
    pub(super) tally: Tally,
    is_logged: bool,
}

impl Large {
    fn begin(engine: &Arc<Engine>) -> Result<Large> {
        let versions = Arc::default();
        let id = engine.resolver.large.begin(&versions);
        let id =
            id.ok_or_else(|| Error::Internal("all numbers of transactions are used up".into()))?;
        Ok(Large {
            engine: Arc::clone(engine),
            id,
            piece: 1,
            versions,
            tables: BTreeMap::new(),
            marks: Vec::new(),
            private: Vec::new(),
            failure: None,
            bytes: 0,
            tally: Tally::default(),
            is_logged: false,
        })
    }

    /// What the transaction sees of its own now.
    pub(super) fn view(&self) -> OwnView {
        OwnView::open(&self.engine, self.id, self.piece, &self.versions)
    }

    pub(super) fn has_written(&self, object: ObjectId) -> bool {
        self.tables.contains_key(&object)
    }

    fn objects(&self) -> Vec<ObjectId> {
        self.tables.keys().copied().collect()
    }

    /// What its commit is made of.
    pub(super) fn commit_record(&self) -> LargeCommit {
        LargeCommit { id: self.id, objects: self.objects() }
    }

    /// Nobody looks any more at what the transaction has made and no commit has made a table's; it clears that
    /// itself.
    fn release_private(&self) {
        if self.private.is_empty() {
            return;
        }
        let catalog = &self.engine.catalog;
        let _list = lock_counted(&catalog.definitions, &self.engine.recorder, LatchClass::Catalog);
        for object in &self.private {
            if catalog.release_private(*object).is_some() {
                catalog.expect_no_longer(*object);
            }
        }
    }

    /// What was placed before this piece may be needed again once it is replaced.
    fn kept_before(&self) -> u32 {
        let newest_mark = self.marks.last().map_or(0, |mark| mark.piece);
        newest_mark.max(self.versions.newest_view())
    }

    /// Keeps what the transaction has placed on `at` before, if that may be needed again. Not under the latch of
    /// its leaf: nobody else replaces it meanwhile.
    pub(super) fn keep_replaced(
        &self,
        engine: &Engine,
        seat: &mut Seat<'_>,
        at: &RowKey,
        tree: &Tree,
    ) -> std::result::Result<(), Refusal> {
        let kept_before = self.kept_before();
        if kept_before <= 1 {
            return Ok(());
        }
        match tree.own_intent(engine, seat, at.0, &at.1, self.id)? {
            Some(OwnIntent { piece, value }) if piece < kept_before => {
                let pieces = (piece, self.piece);
                self.versions.keep(engine, seat, (at.0, &at.1), pieces, &value)
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, writes: &Writes) {
        for write in writes.values() {
            self.is_logged |= !write.record.is_empty();
            if write.table.entry.is_index() {
                continue;
            }
            let count = match (&write.value, write.must_be_absent) {
                (Some(_), true) => &mut self.tally.inserted,
                (Some(_), false) => &mut self.tally.updated,
                (None, _) => &mut self.tally.deleted,
            };
            *count += 1;
        }
    }

    fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.engine.resolver.large.add_open_bytes(bytes);
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        self.engine.resolver.large.remove_open_bytes(self.bytes);
        if self.engine.resolver.large.is_open(self.id) {
            self.engine.resolver.large.abort(self.id);
            self.release_private();
        }
        self.versions.clear(&self.engine);
    }
}

/// The commit of a large transaction, for its record and its moment.
pub(super) struct LargeCommit {
    id: u64,
    objects: Vec<ObjectId>,
}

impl LargeCommit {
    pub(super) fn has_written(&self, object: ObjectId) -> bool {
        self.objects.contains(&object)
    }

    pub(super) fn record(&self) -> Vec<u8> {
        large_commit_record(self.id, &self.objects)
    }

    /// Only memory writes: between the in-flight mark and its clearing.
    pub(super) fn set_committed(&self, engine: &Engine, lsn: Lsn) {
        engine.resolver.large.commit(self.id, lsn, &self.objects);
    }
}

/// What a large transaction had placed at some moment, as long as the transaction is open.
pub(super) struct OwnView {
    engine: Arc<Engine>,
    id: u64,
    pieces: u32,
    versions: Arc<OwnVersions>,
}

impl OwnView {
    fn open(engine: &Arc<Engine>, id: u64, pieces: u32, versions: &Arc<OwnVersions>) -> OwnView {
        versions.open_view(pieces);
        OwnView { engine: Arc::clone(engine), id, pieces, versions: Arc::clone(versions) }
    }

    pub(super) fn again(&self) -> OwnView {
        OwnView::open(&self.engine, self.id, self.pieces, &self.versions)
    }

    /// The view of what was committed before `before` and of this.
    pub(super) fn over(&self, before: Lsn) -> View {
        View::Own { before, id: self.id, pieces: self.pieces }
    }

    /// Its rows are found as long as its transaction is open.
    pub(super) fn check(&self) -> Result<()> {
        match self.engine.resolver.large.is_open(self.id) {
            true => Ok(()),
            false => Err(Error::TransactionEnded),
        }
    }
}

impl Drop for OwnView {
    fn drop(&mut self) {
        self.versions.close_view(self.pieces);
    }
}

impl Transaction<'_> {
    /// Whether rows of this table can be spilled.
    pub(super) fn is_public(&self, table: &Table) -> bool {
        self.definitions.as_ref().is_none_or(|own| !own.keeps_in_memory(&table.entry))
    }

    /// Makes intents and pieces of what the write set holds. If that fails the transaction can only be rolled
    /// back, to a savepoint that came before or as a whole.
    #[cold]
    pub(super) fn spill(&mut self) -> Result<()> {
        if let Some(failure) = self.large.as_ref().and_then(|large| large.failure.clone()) {
            return Err(failure);
        }
        let own = self.definitions.as_deref();
        let is_public = |table: &Table| own.is_none_or(|own| !own.keeps_in_memory(&table.entry));
        let generations = self.writes.take_generations(is_public);
        if generations.iter().all(|(_, writes)| writes.is_empty()) && self.large.is_none() {
            return Ok(());
        }
        if self.large.is_none() {
            self.large = Some(Box::new(Large::begin(&self.session.worker.engine)?));
        }
        let spilled = generations.into_iter().try_for_each(|(savepoint, writes)| {
            self.mark(savepoint);
            self.spill_writes(writes)
        });
        self.former_entries.clear();
        if let (Err(failure), Some(large)) = (&spilled, &mut self.large) {
            large.failure = Some(failure.clone());
        }
        spilled
    }

    fn mark(&mut self, savepoint: Option<u64>) {
        let (Some(savepoint), Some(large)) = (savepoint, &mut self.large) else { return };
        if large.marks.iter().all(|mark| mark.savepoint != savepoint) {
            large.marks.push(Mark { savepoint, piece: large.piece, tally: large.tally });
        }
    }

    fn spill_writes(&mut self, mut writes: Writes) -> Result<()> {
        let limit = self.session.worker.engine.options.piece_bytes_max();
        while !writes.is_empty() {
            let mut bytes = 0;
            let end = writes.iter().find(|(_, write)| {
                bytes += write.record.len();
                bytes > limit
            });
            let rest = match end.map(|(at, _)| at.clone()) {
                Some(end) if writes.first_key_value().is_some_and(|(first, _)| *first < end) => {
                    writes.split_off(&end)
                }
                _ => Writes::new(),
            };
            self.place_piece(&writes)?;
            writes = rest;
        }
        Ok(())
    }

    fn place_piece(&mut self, writes: &Writes) -> Result<()> {
        let mut last = None;
        for ((object, _), write) in writes {
            if last.replace(*object) != Some(*object)
                && self.large.as_ref().is_some_and(|large| !large.has_written(*object))
            {
                self.begin_object(*object, &write.table)?;
            }
        }
        let Some(large) = &self.large else { return Ok(()) };
        if large.kept_before() > 1 {
            large.versions.prepare(&large.engine, || large.engine.catalog.new_object())?;
        }
        let owner = LargeOwner { id: large.id, piece: large.piece };
        let own = self.definitions.take();
        let placed = self.place_intents(writes, Owner::Large(owner), own.as_deref());
        self.definitions = own;
        placed?;
        let records: Vec<&[u8]> = writes.values().map(|write| write.record.as_slice()).collect();
        self.log_piece(&records)?;
        if let Some(large) = &mut self.large {
            large.add(writes);
        }
        Ok(())
    }

    /// The first rows of an object are to be placed.
    fn begin_object(&mut self, object: ObjectId, table: &Table) -> Result<()> {
        let own = self.definitions.as_ref();
        let is_private = own.is_some_and(|own| own.has_made(&table.entry.tree));
        if !is_private {
            self.hold_table(table)?;
        } else if table.entry.tree.is_logged() {
            let engine = Arc::clone(&self.session.worker.engine);
            engine.catalog.keep_private(&table.entry);
            if let Some(large) = &mut self.large {
                large.private.push(object);
            }
            let definition = table.entry.schema.definition().to_bytes();
            let record = definition_record(RecordKind::PrivateObject, &[object], &definition);
            let limit = engine.options.record_bytes_max();
            if record.len() > limit {
                return Err(Error::TransactionTooLarge { bytes: record.len(), limit });
            }
            self.append(&[&record, &[]])?;
        }
        if let Some(large) = &mut self.large {
            large.tables.insert(object, table.clone());
        }
        Ok(())
    }

    /// Appends a record that means nothing before the commit.
    fn append(&mut self, record: &[&[u8]; 2]) -> Result<()> {
        let bytes = record[0].len() + record[1].len();
        let appended = self.session.worker.inside_with_log_space(bytes, |engine, seat| {
            let reservation = engine.log.reserve(seat.permit, bytes);
            engine.log.fill(&reservation, record);
            engine.log.complete(seat.permit);
            Ok::<_, Refusal>(())
        })?;
        appended.map_err(|refusal| Error::Internal(format!("a piece was refused: {refusal:?}")))
    }

    /// Logs a piece of row records, each with its length in front; those that are not logged are empty.
    pub(super) fn log_piece(&mut self, records: &[&[u8]]) -> Result<()> {
        let Some(large) = &self.large else { return Ok(()) };
        let logged = records.iter().filter(|record| !record.is_empty()).count();
        let rows = records.concat();
        let header = piece_header(LargeOwner { id: large.id, piece: large.piece }, logged, &rows);
        if logged > 0 {
            self.append(&[&header, &rows])?;
        }
        let Some(large) = &mut self.large else { return Ok(()) };
        large.add_bytes((header.len() + rows.len()) as u64);
        large.piece += 1;
        if large.piece >= LargeOwner::PIECES {
            let limit = LargeOwner::PIECES as usize;
            return Err(Error::TransactionTooLarge { bytes: limit, limit });
        }
        Ok(())
    }

    /// Commits what was spilled and what was not. None of it is there, or all.
    pub(super) fn commit_large(&mut self) -> Result<Option<Committed>> {
        self.spill()?;
        let writes = self.writes.take();
        let Some(large) = self.large.take() else { return self.commit_small(writes) };
        let committed = self.commit_as_large(&large, writes);
        if committed.is_err() {
            // For the rollback.
            self.large = Some(large);
            return committed.map(Some);
        }
        let recorder = &self.session.worker.recorder;
        let Tally { inserted, updated, deleted } = large.tally;
        recorder.count(Counter::RowsInserted, inserted);
        recorder.count(Counter::RowsUpdated, updated);
        recorder.count(Counter::RowsDeleted, deleted);
        committed.map(Some)
    }

    fn commit_as_large(&mut self, large: &Large, mut writes: Writes) -> Result<Committed> {
        let commit = large.commit_record();
        if let Some(mut own) = self.definitions.take() {
            if own.is_defining() {
                writes.retain(|(object, _), write| !own.has_left(write.table.id(), *object));
                let committed = self.commit_definitions(&mut own, &writes, Some(&commit))?;
                large.release_private();
                return Ok(Committed { logged: true, is_large: true, ..committed });
            }
            let committed = self.publish_large(&commit, large.is_logged)?;
            // Before their trees are cleared, and shares are given back behind the outcome.
            large.release_private();
            return Ok(committed);
        }
        self.publish_large(&commit, large.is_logged)
    }

    /// The moment of the commit.
    fn publish_large(&mut self, commit: &LargeCommit, logged: bool) -> Result<Committed> {
        let full = commit.record();
        let record = if planted(Fault::LargeCommitNotLogged) { TICK } else { &full };
        let outcome = self.session.worker.inside_with_log_space(record.len(), |engine, seat| {
            let reservation = engine.log.reserve(seat.permit, record.len());
            engine.log.fill(&reservation, &[record]);
            commit.set_committed(engine, reservation.lsn);
            engine.log.complete(seat.permit);
            Ok::<_, Refusal>(reservation.end)
        })?;
        let end = outcome
            .map_err(|refusal| Error::Internal(format!("a commit was refused: {refusal:?}")))?;
        Ok(Committed { end, logged, is_large: true })
    }

    /// Behind the commit of a large transaction: makes rows of its intents.
    pub(super) fn sweep_committed(&mut self) {
        // It may take long.
        self.session.worker.release();
        let worker = &self.session.worker;
        sweep_due(&worker.engine, &worker.recorder);
    }

    /// Aborts what was spilled, and takes it out of the leaves.
    pub(super) fn abort_large(&mut self) {
        let Some(large) = self.large.take() else { return };
        let objects = large.objects();
        // Whoever has the list of tables may wait for one who waits for a permit.
        self.session.worker.release();
        drop(large);
        let worker = &self.session.worker;
        if worker.engine.check_open().is_ok() {
            sweep_aborted(&worker.engine, &worker.recorder, &objects);
        }
    }
}
