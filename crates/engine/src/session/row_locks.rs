//! Rows that a transaction locks until it ends or goes back to a savepoint, and the snapshots of its statements.
//!
//! A transaction that begins a new snapshot with each statement sees what others have committed before the statement.
//! What it has changed before rests on the snapshots of then: of each change the commit knows which. So a change of
//! another transaction that came between is never lost, whether rows were locked or not.
//!
//! Invariant: locks are given back behind the outcome of the commit, and who gets one then sees that outcome.

use std::collections::BTreeSet;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::Value;
use onrush_waits::Phase;

use super::savepoint::Savepoint;
use super::session::Session;
use super::snapshot::HeldLsn;
use super::transaction::Transaction;
use super::write_set::RowKey;
use crate::catalog::{Table, WantedRow};
use crate::error::{Error, Result};
use crate::status::{LockOwnerNumber, LockedRow, NO_OWNER, RowLock, RowLocks};
use crate::tree::Refusal;
use crate::units::ObjectId;

/// So many rows a transaction locks at most: some megabytes of memory.
const ROW_LOCKS_MAX: usize = 16_384;

/// How often a change that commits by itself is made again when another one came first.
const TRIES_MAX: usize = 100;

/// What became of a row that was to be locked; see [`Transaction::lock_row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLockOutcome {
    /// It is locked, and as the transaction's snapshot sees it.
    Unchanged,
    /// It is locked, and was changed or removed since the transaction's snapshot. A
    /// [new one](Transaction::renew_snapshot) shows how.
    Changed,
    /// Another transaction keeps it, and it was not to be waited for.
    Taken,
    /// The transaction has locked so many rows that it gets no more.
    TooMany,
}

/// What became of a lock.
enum Taking {
    Taken,
    /// The transaction had it, or a stronger one.
    Held,
    Refused(RowLockOutcome),
}

/// The locks of a transaction, given back when this is dropped.
pub(super) struct HeldRowLocks {
    locks: Arc<RowLocks>,
    owner: LockOwnerNumber,
    /// In the order of taking, each with what was held of the row before.
    taken: Vec<(LockedRow, Option<RowLock>)>,
    /// The number of each savepoint that gives locks back, and how many were taken by then.
    savepoints: Vec<(u64, usize)>,
}

impl HeldRowLocks {
    fn give_back(&mut self, from: usize) {
        for (row, before) in self.taken.drain(from..).rev() {
            self.locks.release(self.owner, row, before);
        }
    }
}

impl Drop for HeldRowLocks {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

impl Transaction<'_> {
    /// Keeps others from changing the row with this primary key until the transaction ends or goes back to a savepoint
    /// that came before: whoever wants to change or to lock it waits. Where another transaction has locked it, waits
    /// for that one's end, if the call `waits`. A key of which there is no row can be locked, too.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let count = ColumnDefinition::new("count", DataType::Int64);
    /// # let stock = TableDefinition::builder("stock").column(id).column(count).primary_key(["id"]);
    /// # let stock = db.create_table(stock.build()?)?;
    /// let (mut one, mut two) = (db.session()?, db.session()?);
    /// one.insert(&stock, &[1i64.into(), 10i64.into()])?;
    /// let mut buyer = one.begin()?;
    /// let locked = buyer.lock_row(&stock, &[1i64.into()], RowLock::NoKeyUpdate, true)?;
    /// assert_eq!(locked, RowLockOutcome::Unchanged);
    /// let mut other = two.begin()?;
    /// let taken = other.lock_row(&stock, &[1i64.into()], RowLock::NoKeyUpdate, false)?;
    /// assert_eq!(taken, RowLockOutcome::Taken);
    /// buyer.update(&stock, &[1i64.into()], &[("count", 9i64.into())])?;
    /// buyer.commit()?; // nobody can have come first
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Deadlock`](Error::Deadlock), [`LockTimeout`](Error::LockTimeout), [`Interrupted`](Error::Interrupted);
    /// [`Conflict`](Error::Conflict) for a row that a transaction larger than memory has changed and not committed; a
    /// key that does not fit the table; a table truncated or dropped meanwhile.
    pub fn lock_row(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        lock: RowLock,
        waits: bool,
    ) -> Result<RowLockOutcome> {
        self.call(Phase::Statement, |transaction| {
            table.check_database(transaction.engine().database_id)?;
            let mut bytes = Vec::new();
            table.entry.schema.encode_key(key, &mut bytes)?;
            transaction.lock_key(table, &bytes, lock, waits)
        })
    }

    fn lock_key(
        &mut self,
        table: &Table,
        key: &[u8],
        lock: RowLock,
        waits: bool,
    ) -> Result<RowLockOutcome> {
        let at = (table.entry.object()?, key.to_vec());
        // Nobody else knows of a row that the transaction has inserted.
        let is_inserted = self.writes.get(&at).is_some_and(|write| write.must_be_absent);
        if is_inserted || self.has_made(table) {
            return Ok(RowLockOutcome::Unchanged);
        }
        let since = self.rests_on();
        self.lock_at(table, &at, (lock, waits), since)
    }

    /// Locks the rows that were changed since the savepoint, and the keys of those that were inserted, in their order,
    /// and looks whether somebody else was first: then what was changed since the savepoint cannot be committed. What
    /// gets no lock any more is changed all the same; the commit tells.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_changed_rows(&mut self, since: Savepoint) -> Result<RowLockOutcome> {
        self.call(Phase::Statement, |transaction| transaction.lock_changed(since))
    }

    fn lock_changed(&mut self, since: Savepoint) -> Result<RowLockOutcome> {
        let changed = self.writes.changed_since(since.number(), ROW_LOCKS_MAX);
        let uniques = self.unique_entries(&changed)?;
        let mut locked = RowLockOutcome::Unchanged;
        for at in changed {
            let Some(write) = self.writes.get(&at) else { continue };
            let is_locked = match write.must_be_absent {
                true => !write.table.entry.is_index() || uniques.contains(&at.0),
                false => !write.table.entry.is_index(),
            };
            if !is_locked || self.has_made(&write.table) {
                continue;
            }
            if write.must_be_absent {
                write.table.entry.tree.lock_inserts();
            }
            let lock = match write.value.is_some() && !write.must_be_absent {
                true => RowLock::NoKeyUpdate,
                false => RowLock::Update,
            };
            let (table, unchanged_since) = (write.table.clone(), write.unchanged_since);
            match self.lock_at(&table, &at, (lock, true), unchanged_since)? {
                RowLockOutcome::Unchanged => {}
                RowLockOutcome::TooMany => return Ok(locked),
                // The others are locked, too, so that they stay as the next snapshot sees them.
                outcome => locked = outcome,
            }
        }
        Ok(locked)
    }

    /// Keeps others from removing the rows of primary keys that the changes made so far reference, and that were not
    /// looked at yet: who has removed one and not committed is waited for. To be called before
    /// [`settle_references`](Self::settle_references), which looks at them.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_referenced_rows(&mut self) -> Result<()> {
        self.call(Phase::Statement, |transaction| {
            for (parent, key) in transaction.referenced_keys()? {
                let at = (parent.entry.object()?, key);
                let is_inserted = transaction.writes.get(&at).is_some_and(|it| it.must_be_absent);
                if !is_inserted && !transaction.has_made(&parent) {
                    let row = LockedRow::new(at.0, &at.1);
                    transaction.take_row(&parent, row, RowLock::KeyShare, true)?;
                }
            }
            Ok(())
        })
    }

    /// Which objects hold the entries of unique indexes of the tables of these rows.
    fn unique_entries(&self, rows: &BTreeSet<RowKey>) -> Result<Vec<ObjectId>> {
        let (mut uniques, mut last) = (Vec::new(), None);
        for at in rows {
            if last.replace(at.0) == Some(at.0) {
                continue;
            }
            let Some(write) = self.writes.get(at) else { continue };
            for index in write.table.entry.indexes(|id| self.as_seen(id))? {
                if index.is_unique() {
                    uniques.push(index.entries.object()?);
                }
            }
        }
        Ok(uniques)
    }

    fn lock_at(
        &mut self,
        table: &Table,
        at: &RowKey,
        (lock, waits): (RowLock, bool),
        since: Option<Lsn>,
    ) -> Result<RowLockOutcome> {
        match self.take_row(table, LockedRow::new(at.0, &at.1), lock, waits)? {
            Taking::Taken => self.look_at_locked(table, at, since),
            Taking::Held => Ok(RowLockOutcome::Unchanged),
            Taking::Refused(outcome) => Ok(outcome),
        }
    }

    fn take_row(
        &mut self,
        table: &Table,
        row: LockedRow,
        lock: RowLock,
        waits: bool,
    ) -> Result<Taking> {
        let held = self.row_locks.get_or_insert_with(|| {
            let is_kept = |number: &u64| Some(*number) != self.statement;
            let savepoints = self.writes.savepoints().filter(is_kept);
            Box::new(HeldRowLocks {
                locks: Arc::clone(&self.session.worker.engine.resolver.row_locks),
                owner: self.session.worker.number(),
                taken: Vec::new(),
                savepoints: savepoints.map(|number| (number, 0)).collect(),
            })
        });
        let before = held.locks.held(held.owner, row);
        if before.is_some_and(|before| before >= lock) {
            return Ok(Taking::Held);
        }
        if held.taken.len() >= ROW_LOCKS_MAX {
            return Ok(Taking::Refused(RowLockOutcome::TooMany));
        }
        if !held.locks.try_lock(held.owner, row, lock) {
            if !waits {
                return Ok(Taking::Refused(RowLockOutcome::Taken));
            }
            let shared = self.definitions.as_ref().map_or(&[][..], |own| &own.owner.shared);
            let what = format!("a row of table {}", table.name());
            let wanted = WantedRow { row, lock, shared, what };
            let worker = &mut self.session.worker;
            worker.release();
            worker.engine.catalog.locks.lock_row(&worker.waiter(), held.owner, &wanted)?;
        }
        held.taken.push((row, before));
        Ok(Taking::Taken)
    }

    /// Whether a row that is locked is as it was at the LSN. Whoever is about to change it without a lock is waited
    /// for.
    fn look_at_locked(
        &mut self,
        table: &Table,
        at: &RowKey,
        since: Option<Lsn>,
    ) -> Result<RowLockOutcome> {
        let Some(since) = since else { return Ok(RowLockOutcome::Unchanged) };
        let (tree, key) = (&table.entry.tree, (at.0, at.1.as_slice()));
        let own = self.large.as_ref().map(|large| large.id);
        let worker = &mut self.session.worker;
        let looked =
            worker.inside(|engine, seat| tree.check_unchanged(engine, seat, key, since, own))?;
        match looked {
            Ok(()) => Ok(RowLockOutcome::Unchanged),
            Err(Refusal::Changed(lsn)) => {
                self.session.saw(lsn + 1);
                Ok(RowLockOutcome::Changed)
            }
            Err(Refusal::TooOld) => Ok(RowLockOutcome::Changed),
            Err(refusal) => Err(self.session.explain_key(table, refusal, &at.1)),
        }
    }

    /// Reads what is committed by now from here on, its own changes on top. What it has changed before still fails at
    /// the commit where another one has changed the row since, unless the row was [locked](Self::lock_row). A
    /// [serializable](Self::make_serializable) transaction keeps the snapshot that it has.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn renew_snapshot(&mut self) -> Result<()> {
        // What a serializable transaction has read is what it goes on with.
        if self.held.is_some() && self.serializable.is_none() {
            self.held = Some(self.session.hold_now()?);
            self.has_read = false;
        }
        Ok(())
    }

    /// The LSN of the snapshot that a change rests on which is made now.
    pub(super) fn rests_on(&self) -> Option<Lsn> {
        self.held.as_ref().map(HeldLsn::lsn)
    }

    /// Under which number it has locked rows.
    pub(super) fn lock_owner(&self) -> LockOwnerNumber {
        self.row_locks.as_ref().map_or(NO_OWNER, |held| held.owner)
    }

    /// Behind the outcome of its commit.
    pub(super) fn release_row_locks(&mut self) {
        self.row_locks = None;
    }

    pub(super) fn set_row_locks_savepoint(&mut self, number: u64) {
        if let Some(held) = &mut self.row_locks {
            held.savepoints.push((number, held.taken.len()));
        }
    }

    /// Gives back what was locked since the savepoint, if it is one that does.
    pub(super) fn roll_row_locks_back_to(&mut self, number: u64) {
        let Some(held) = &mut self.row_locks else { return };
        if let Some(at) = held.savepoints.iter().position(|(known, _)| *known == number) {
            held.savepoints.truncate(at + 1);
            held.give_back(held.savepoints[at].1);
        }
    }

    pub(super) fn release_row_locks_savepoint(&mut self, number: u64) {
        let Some(held) = &mut self.row_locks else { return };
        if let Some(at) = held.savepoints.iter().position(|(known, _)| *known == number) {
            held.savepoints.truncate(at);
        }
    }
}

impl Session {
    /// Makes a change that commits by itself, again and again until nobody else comes first. From the second time on,
    /// or if it `waits` from the first, its rows are locked before the commit.
    pub(super) fn change_rows<T>(
        &mut self,
        mut waits: bool,
        change: impl Fn(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tries = 0;
        loop {
            let held = self.hold_now()?;
            let mut transaction = Transaction::new(self, Some(held));
            let changed = match waits {
                true => transaction.change_locked(&change)?,
                false => change(&mut transaction)?,
            };
            match transaction.commit_and_wait() {
                Ok(()) => return Ok(changed),
                Err(Error::Conflict { .. }) if tries < TRIES_MAX => {}
                Err(error) => return Err(error),
            }
            waits = true;
            tries += 1;
        }
    }
}

impl Transaction<'_> {
    fn change_locked<T>(&mut self, change: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        loop {
            let before = self.statement_savepoint();
            let changed = change(self)?;
            if self.lock_changed(before)? != RowLockOutcome::Changed {
                return Ok(changed);
            }
            self.rollback_to(before)?;
            self.release(before)?;
            self.renew_snapshot()?;
        }
    }
}
