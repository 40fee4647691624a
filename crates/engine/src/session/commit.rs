//! How the rows of a transaction become one record. One that only inserts into one table, and whose
//! leaves are few, goes the way of a batch (`tree/group.rs`). Any other:
//!
//! 1. Intents are placed in (object, key) order; this may wait and may fail, and nothing is
//!    logged if it does.
//! 2. With only memory copies in between: mark in flight and reserve the LSN, copy the record,
//!    set the status, clear the mark.
//! 3. Those who wait for the outcome are woken, the intents become rows, its number is given back.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::Counter;

use super::definitions::OwnDefinitions;
use super::transaction::Transaction;
use super::worker::Worker;
use super::write_set::{RowKey, Write, Writes};
use crate::catalog::{Table, TableEntry};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::logging::{TICK, group_header, push_varint, take_varint};
use crate::node::leaf::Owner;
use crate::status::LockOwnerNumber;
use crate::tree::{Blocked, GroupRow, GroupRows, Intent, Refusal, Seat, Tree};

/// Rows that one stay inside the engine places or resolves at most.
const WRITES_INSIDE: usize = 64;

/// A commit that has happened.
pub(super) struct Committed {
    /// End of its record.
    pub(super) end: Lsn,
    /// Whether the record holds rows.
    pub(super) logged: bool,
    /// Whether intents are left in leaves.
    pub(super) is_large: bool,
}

impl Transaction<'_> {
    /// Commits the write set; none if there was nothing.
    pub(super) fn commit_writes(&mut self) -> Result<Option<Committed>> {
        self.secure_references(true)?;
        let entered = self.enter_serial_order()?;
        let limit = self.session.worker.engine.options.record_bytes_max();
        let committed = if self.large.is_some() || self.writes.bytes() > limit {
            self.commit_large()
        } else {
            let writes = self.writes.take();
            self.commit_small(writes)
        };
        if let (Some(entered), Ok(Some(committed))) = (entered, &committed) {
            entered.end(committed.end);
        }
        self.release_references();
        self.release_row_locks();
        committed
    }

    /// Commits what was never spilled.
    pub(super) fn commit_small(&mut self, mut writes: Writes) -> Result<Option<Committed>> {
        let definitions = self.definitions.take();
        if let Some(mut own) = definitions {
            own.hold_written(&mut self.session.worker, &writes)?;
            if own.is_defining() {
                writes.retain(|(object, _), write| !own.has_left(write.table.id(), *object));
                return self.commit_definitions(&mut own, &writes, None).map(Some);
            }
            // Its shares are given back behind the commit.
            return self.commit_rows(&writes, Some(&own));
        }
        self.commit_rows(&writes, None)
    }

    fn commit_rows(
        &mut self,
        writes: &Writes,
        own: Option<&OwnDefinitions>,
    ) -> Result<Option<Committed>> {
        if writes.is_empty() {
            return Ok(None);
        }
        let record = group_record(&[], writes);
        let limit = self.session.worker.engine.options.record_bytes_max();
        if record.len() > limit {
            return Err(Error::TransactionTooLarge { bytes: record.len(), limit });
        }
        match self.commit_as_group(writes, &record, own)? {
            Some(end) => Ok(Some(self.committed(writes, end))),
            None => self.commit_over_intents(writes, &record, own).map(Some),
        }
    }

    /// The general way.
    pub(super) fn commit_over_intents(
        &mut self,
        writes: &Writes,
        record: &[u8],
        own: Option<&OwnDefinitions>,
    ) -> Result<Committed> {
        let _shares = self.share_tables(writes, own)?;
        let engine = Arc::clone(&self.session.worker.engine);
        let transaction = self.begin_commit()?;
        let committed = self
            .place_intents(writes, Owner::Small(transaction), own)
            .and_then(|()| publish(&mut self.session.worker, transaction, record));
        if committed.is_err() {
            engine.resolver.transactions.decide(transaction, None);
        }
        engine.resolver.transactions.announce(&self.session.worker.recorder);
        let resolved = resolve(&mut self.session.worker, writes, Worker::make_space_if_over);
        if resolved.is_ok() {
            engine.resolver.transactions.end(transaction, &self.session.worker.recorder);
        }
        let end = committed?;
        resolved?;
        Ok(self.committed(writes, end))
    }

    /// The transaction's number, under which its outcome is told.
    pub(super) fn begin_commit(&self) -> Result<u32> {
        let Worker { engine, recorder, .. } = &self.session.worker;
        match engine.resolver.transactions.begin(recorder) {
            Some(transaction) => Ok(transaction),
            None => engine.check_open().and(Err(Error::Closed)),
        }
    }

    /// Keeps definitions off the tables of the write set until the commit is over, but those that the
    /// transaction has itself. Whoever holds intents must not wait for a definition, which may wait for
    /// the intents.
    pub(super) fn share_tables(
        &mut self,
        writes: &Writes,
        own: Option<&OwnDefinitions>,
    ) -> Result<Shares> {
        let mut tables: Vec<&Arc<TableEntry>> = Vec::new();
        for write in writes.values() {
            let entry = &write.table.entry;
            let is_own = own.is_some_and(|own| own.holds(entry.id));
            if !is_own && tables.last().is_none_or(|last| !Arc::ptr_eq(last, entry)) {
                tables.push(entry);
            }
        }
        let engine = Arc::clone(&self.session.worker.engine);
        loop {
            let mut shares = Shares { engine: Arc::clone(&engine), trees: Vec::new() };
            let stopped = tables.iter().find(|entry| !shares.take(&entry.tree));
            let Some(stopped) = stopped else { return Ok(shares) };
            drop(shares);
            self.session.worker.unblock(Blocked::Definition(stopped.id))?;
        }
    }

    /// A transaction that only inserts into one table, indexed or not, goes the way of a batch, without intents. None
    /// if it cannot go that way, for whatever reason; then nothing was written.
    fn commit_as_group(
        &mut self,
        writes: &Writes,
        record: &[u8],
        own: Option<&OwnDefinitions>,
    ) -> Result<Option<Lsn>> {
        let Some(inserted) = InsertedRows::of(writes, self.lock_owner()) else { return Ok(None) };
        let table = inserted.table;
        let is_shared = own.is_some_and(|own| own.holds(table.id()));
        let record = [record, &[]];
        let outcome = self.session.write_group(table, &inserted, record, is_shared)?;
        // Over intents it is refused again, with the key that it is refused for.
        Ok(outcome.unwrap_or(None))
    }

    fn committed(&mut self, writes: &Writes, end: Lsn) -> Committed {
        self.count_rows(writes);
        let logged = writes.values().any(|write| !write.record.is_empty());
        Committed { end, logged, is_large: false }
    }

    /// Counts the rows of a commit by what happened to them, and drops old versions in the tables
    /// that it changed.
    pub(super) fn count_rows(&mut self, writes: &Writes) {
        let mut last = None;
        for ((object, _), write) in writes {
            if last.replace(*object) != Some(*object) {
                self.session.collect_versions(&write.table);
            }
            if write.table.entry.is_index() {
                continue;
            }
            let counter = match (&write.value, write.must_be_absent) {
                (Some(_), true) => Counter::RowsInserted,
                (Some(_), false) => Counter::RowsUpdated,
                (None, _) => Counter::RowsDeleted,
            };
            self.session.worker.recorder.count(counter, 1);
        }
    }

    pub(super) fn place_intents(
        &mut self,
        writes: &Writes,
        owner: Owner,
        own: Option<&OwnDefinitions>,
    ) -> Result<()> {
        let large = self.large.as_deref();
        let (lock_owner, former_entries) = (self.lock_owner(), &self.former_entries);
        let place = |engine: &Engine, seat: &mut Seat<'_>, at: &RowKey, write: &Write| {
            let intent = Intent {
                object: at.0,
                key: &at.1,
                value: write.value.as_deref(),
                must_be_absent: write.must_be_absent,
                unchanged_since: write.unchanged_since,
                former_entry: former_entries.get(at).map(Vec::as_slice),
                owner,
                lock_owner,
            };
            let entry = &write.table.entry;
            if own.is_none_or(|own| !own.defines(entry.id)) {
                entry.check_shared_version()?;
            }
            if let Some(large) = large {
                large.keep_replaced(engine, seat, at, &entry.tree)?;
            }
            entry.tree.place_intent(engine, seat, &intent)
        };
        match for_each(&mut self.session.worker, writes, place)? {
            None => Ok(()),
            Some((refusal, (_, key), write)) => {
                Err(self.session.explain_key(&write.table, refusal, key))
            }
        }
    }
}

/// Tables that a commit keeps definitions off.
pub(super) struct Shares {
    engine: Arc<Engine>,
    trees: Vec<Arc<Tree>>,
}

impl Shares {
    /// False if a definition is under way.
    fn take(&mut self, tree: &Arc<Tree>) -> bool {
        let is_taken = tree.try_share();
        if is_taken {
            self.trees.push(Arc::clone(tree));
        }
        is_taken
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        self.trees.iter().for_each(|tree| self.engine.catalog.locks.unshare(tree));
    }
}

/// The rows of a transaction that does nothing but insert into one table, and their entries in its indexes.
struct InsertedRows<'w> {
    table: &'w Table,
    rows: Vec<GroupRow<'w>>,
    since: Option<Lsn>,
    lock_owner: LockOwnerNumber,
}

impl<'w> InsertedRows<'w> {
    fn of(writes: &'w Writes, lock_owner: LockOwnerNumber) -> Option<InsertedRows<'w>> {
        let is_of_table = |(_, write): &(&RowKey, &Write)| !write.table.entry.is_index();
        let ((object, _), Write { table, .. }) = writes.iter().find(is_of_table)?;
        let mut entries = Vec::new();
        let mut rows = Vec::with_capacity(writes.len());
        // Those that rest on later snapshots are refused too often, and then go over intents.
        let since = writes.values().filter_map(|write| write.unchanged_since).min();
        for ((own, key), write) in writes {
            let value = write.value.as_deref().filter(|_| write.must_be_absent)?;
            let row = GroupRow { tree: &write.table.entry.tree, object: *own, key, value };
            if own == object && Arc::ptr_eq(&write.table.entry, &table.entry) {
                rows.push(row);
            } else if write.table.entry.is_index_of(table.id()) {
                entries.push(row);
            } else {
                return None;
            }
        }
        // The hint is of the table's tree.
        rows.append(&mut entries);
        Some(InsertedRows { table, rows, since, lock_owner })
    }
}

impl GroupRows for InsertedRows<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize) -> GroupRow<'_> {
        self.rows[index]
    }

    fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.key.len() + row.value.len()).sum()
    }

    fn unchanged_since(&self) -> Option<Lsn> {
        self.since
    }

    fn lock_owner(&self) -> LockOwnerNumber {
        self.lock_owner
    }
}

/// Reserves, copies, decides: the moment of the commit.
fn publish(worker: &mut Worker, transaction: u32, record: &[u8]) -> Result<Lsn> {
    let outcome = worker.inside_with_log_space(record.len(), |engine, seat| {
        let reservation = engine.log.reserve(seat.permit, record.len());
        engine.log.fill(&reservation, &[record]);
        engine.resolver.transactions.decide(transaction, Some(reservation.lsn));
        engine.log.complete(seat.permit);
        Ok::<_, Refusal>(reservation.end)
    })?;
    outcome.map_err(|refusal| Error::Internal(format!("a commit was refused: {refusal:?}")))
}

/// Turns the intents into rows, or takes them out, as the outcome says. What they replace becomes old versions:
/// `between` is called after every handful.
pub(super) fn resolve(
    worker: &mut Worker,
    writes: &Writes,
    between: impl Fn(&mut Worker),
) -> Result<()> {
    let resolve_one = |engine: &Engine, seat: &mut Seat<'_>, at: &RowKey, write: &Write| {
        match write.table.entry.tree.resolve_key(engine, seat, at.0, &at.1) {
            // A table that is gone took its intents with it.
            Err(Refusal::Gone) => Ok(()),
            outcome => outcome,
        }
    };
    match for_each_and(worker, writes, resolve_one, between)? {
        None => Ok(()),
        Some((refusal, ..)) => {
            Err(Error::Internal(format!("an intent was not resolved: {refusal:?}")))
        }
    }
}

/// Does `operation` for each write in turn, a handful each time inside, since getting in may take
/// longer than what is to be done there. Where one is blocked it goes on with that one; where one
/// is refused it ends, and returns why.
fn for_each<'w>(
    worker: &mut Worker,
    writes: &'w Writes,
    operation: impl Fn(&Engine, &mut Seat<'_>, &RowKey, &Write) -> std::result::Result<(), Refusal>,
) -> Result<Option<(Refusal, &'w RowKey, &'w Write)>> {
    for_each_and(worker, writes, operation, |_| {})
}

/// As [`for_each`], with a call of `between` outside, after each handful.
fn for_each_and<'w>(
    worker: &mut Worker,
    writes: &'w Writes,
    operation: impl Fn(&Engine, &mut Seat<'_>, &RowKey, &Write) -> std::result::Result<(), Refusal>,
    between: impl Fn(&mut Worker),
) -> Result<Option<(Refusal, &'w RowKey, &'w Write)>> {
    let mut left = writes.iter().peekable();
    while left.peek().is_some() {
        let outcome = worker.inside(|engine, seat| {
            for _ in 0..WRITES_INSIDE {
                let Some((at, write)) = left.peek() else { break };
                operation(engine, seat, at, write)?;
                left.next();
            }
            Ok(())
        })?;
        if let (Err(refusal), Some((at, write))) = (outcome, left.peek()) {
            return Ok(Some((refusal, at, write)));
        }
        between(worker);
    }
    Ok(None)
}

/// The log record of the whole transaction, its definitions first, without the rows that are not
/// logged; a single one needs no group around it.
pub(super) fn group_record(definitions: &[Vec<u8>], writes: &Writes) -> Vec<u8> {
    let records = writes.values().map(|write| write.record.as_slice());
    let logged: Vec<&[u8]> = records.filter(|record| !record.is_empty()).collect();
    match (definitions, logged.as_slice()) {
        ([], []) => return TICK.to_vec(),
        ([], [only]) => {
            let mut row = *only;
            take_varint(&mut row);
            return row.to_vec();
        }
        ([only], []) => return only.clone(),
        _ => {}
    }
    let mut records = Vec::new();
    for definition in definitions {
        push_varint(definition.len() as u64, &mut records);
        records.extend_from_slice(definition);
    }
    logged.iter().for_each(|row| records.extend_from_slice(row));
    let mut record = group_header(definitions.len() + logged.len(), &records);
    record.extend_from_slice(&records);
    record
}
