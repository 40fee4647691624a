//! Tables and names that open transactions have taken for their definitions, and who waits for them.
//!
//! | lock | taken by | until | who waits |
//! |---|---|---|---|
//! | a table, exclusive | ALTER, DROP, TRUNCATE | its end, or going back to before | writers, definitions |
//! | a table, reserved | a definition that copies rows before | the same | other definitions, not writers |
//! | a table, shared | a commit with intents, a transaction that asks for it | its end | definitions |
//! | a name | CREATE, a new name | the end of the transaction, or back to before | who wants the same name |
//! | a row | who changes it or asks for it | the end of the transaction, or back to before | who changes it |
//!
//! What rows are locked is kept [elsewhere](crate::status::RowLock); who waits for one is known here, with those who
//! wait for tables and names.
//!
//! A shared lock is a count in the tree, so rows that commit by themselves take none: they look at the
//! tree's version inside, and [`stop`](Tree::stop) is followed by a wait until all who were inside have left.
//!
//! Invariants
//! 1. While a table is locked exclusive nobody else's change is on its way into the table.
//! 2. Nobody but who has reserved a table takes it exclusive, and who waits for that stops no writer.
//! 3. Of transactions that wait for each other in a circle the last to begin waiting is refused. Who has
//!    reserved a table will wait for all who share it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_waits::{Recorder, Wait};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::TableEntry;
use crate::tree::Tree;

use crate::error::{Error, Result};
use crate::runtime::Runtime;
use crate::status::{LockOwnerNumber, LockedRow, Queued, RowLock, RowLocks};

/// How often a waiter looks whether it is to give up.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The same of one who waits for a row, which as a rule is not for long.
const ROW_LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a program has to say while one of its sessions waits for a definition of another transaction.
pub trait Waiting: Send + Sync {
    /// Whether the session is to give up, with [`Interrupted`](Error::Interrupted). Asked every few
    /// milliseconds.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Runs the wait, exactly once: so that a program whose threads are few can bring in another one
    /// meanwhile.
    fn run(&self, wait: &mut dyn FnMut()) {
        wait();
    }
}

/// How long a session waits for the definitions of others, and what makes it give up before.
#[derive(Clone, Default)]
pub(crate) struct LockWait {
    pub(crate) timeout: Option<Duration>,
    pub(crate) waiting: Option<Arc<dyn Waiting>>,
}

impl LockWait {
    /// Does what may take long, as the program wants it done.
    pub(super) fn run<T>(&self, wait: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(waiting) = &self.waiting else { return wait() };
        let (mut wait, mut outcome) = (Some(wait), None);
        waiting.run(&mut || outcome = wait.take().map(|wait| wait()));
        outcome.unwrap_or(Err(Error::Interrupted))
    }

    pub(super) fn check(&self, runtime: &Runtime, began: Instant, what: &str) -> Result<()> {
        runtime.check_open()?;
        if self.waiting.as_ref().is_some_and(|waiting| waiting.is_interrupted()) {
            return Err(Error::Interrupted);
        }
        match self.timeout {
            Some(timeout) if began.elapsed() >= timeout => {
                Err(Error::LockTimeout { what: what.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// A transaction as the locks know it.
pub(crate) struct LockOwner {
    number: LockOwnerNumber,
    /// Numbers of tables that it holds shared, each as often as it does.
    pub(crate) shared: Vec<u32>,
}

impl LockOwner {
    /// The transaction of a session, which has locked nothing yet.
    pub(crate) fn new(number: LockOwnerNumber) -> LockOwner {
        LockOwner { number, shared: Vec::new() }
    }

    fn shares_of(&self, table: u32) -> u32 {
        self.shared.iter().filter(|shared| **shared == table).count() as u32
    }
}

/// A row that is to be locked.
pub(crate) struct WantedRow<'a> {
    pub(crate) row: LockedRow,
    pub(crate) lock: RowLock,
    /// What the transaction has shared already.
    pub(crate) shared: &'a [u32],
    /// In words.
    pub(crate) what: String,
}

/// See the module.
#[derive(Default)]
pub(crate) struct DefinitionLocks {
    rows: Arc<RowLocks>,
    state: Mutex<State>,
    /// A lock was given back.
    released: Condvar,
}

#[derive(Default)]
struct State {
    /// Owners of tables.
    tables: HashMap<u32, u64>,
    /// Owners of tables that are reserved.
    reserved: HashMap<u32, u64>,
    /// Owners of names.
    names: HashMap<String, u64>,
    /// Owners that wait.
    waiting: HashMap<u64, Request>,
    /// Who is in the way of those that wait for rows.
    rows: Arc<RowLocks>,
}

/// What an owner that waits wants, and what it has.
struct Request {
    target: Target,
    shared: Vec<u32>,
}

#[derive(Clone, PartialEq, Eq)]
enum Target {
    /// Whoever has the table exclusive.
    Table(u32),
    /// Whoever has the table reserved.
    Reserved(u32),
    /// Whoever shares the table, which is the waiter's.
    Shares(u32),
    /// Whoever has the name.
    Name(String),
    /// Whoever has the row, or waits for it before the waiter.
    Row(LockedRow),
}

/// What every wait needs to know.
pub(crate) struct Waiter<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) recorder: &'a Recorder,
    pub(crate) wait: &'a LockWait,
}

impl DefinitionLocks {
    pub(crate) fn over(rows: &Arc<RowLocks>) -> DefinitionLocks {
        let state = State { rows: Arc::clone(rows), ..State::default() };
        let (rows, state) = (Arc::clone(rows), Mutex::new(state));
        DefinitionLocks { rows, state, released: Condvar::new() }
    }

    /// Takes a row, which others may have: the owner waits until they have given it back.
    ///
    /// # Errors
    /// As [`lock_table`](Self::lock_table).
    pub(crate) fn lock_row(
        &self,
        waiter: &Waiter<'_>,
        owner: LockOwnerNumber,
        wanted: &WantedRow<'_>,
    ) -> Result<()> {
        if self.rows.try_lock(owner, wanted.row, wanted.lock) {
            return Ok(());
        }
        waiter.wait.run(|| {
            let Some(queued) = self.rows.enqueue(owner, wanted.row, wanted.lock) else {
                return Ok(());
            };
            let waited = self.wait_for_row(waiter, owner, wanted, &queued);
            self.state.lock().waiting.remove(&owner);
            if waited.is_err() && !self.rows.give_up(wanted.row, &queued) {
                return Ok(());
            }
            waited
        })
    }

    fn wait_for_row(
        &self,
        waiter: &Waiter<'_>,
        owner: LockOwnerNumber,
        wanted: &WantedRow<'_>,
        queued: &Queued,
    ) -> Result<()> {
        let request = Request { target: Target::Row(wanted.row), shared: wanted.shared.to_vec() };
        let mut state = self.state.lock();
        state.waiting.insert(owner, request);
        if state.is_in_a_circle(owner) {
            return Err(Error::Deadlock { what: wanted.what.clone() });
        }
        drop(state);
        let _waiting = waiter.recorder.wait(Wait::LockRow);
        let began = Instant::now();
        while !queued.wait_for(ROW_LOOK_AGAIN) {
            waiter.wait.check(waiter.runtime, began, &wanted.what)?;
        }
        Ok(())
    }

    /// Takes a table for a definition: nobody else writes to it, and nobody's change is under way.
    ///
    /// # Errors
    /// [`Error::Deadlock`], [`Error::LockTimeout`], [`Error::Interrupted`]; then it is not taken.
    pub(crate) fn lock_table(
        &self,
        waiter: &Waiter<'_>,
        owner: &LockOwner,
        entry: &TableEntry,
    ) -> Result<()> {
        waiter.wait.run(|| self.take_table(waiter, owner, entry))
    }

    fn take_table(&self, waiter: &Waiter<'_>, owner: &LockOwner, entry: &TableEntry) -> Result<()> {
        let (id, began) = (entry.id, Instant::now());
        let what = || format!("table {}", entry.name());
        let mut state = self.state.lock();
        if state.tables.get(&id) == Some(&owner.number) {
            return Ok(());
        }
        while let Some(taken) = state.taken_by_another(id, owner) {
            self.wait(&mut state, waiter, owner, taken, (&what(), began))?;
        }
        state.tables.insert(id, owner.number);
        entry.tree.stop();
        while entry.tree.shares() > owner.shares_of(id) {
            let waited = self.wait(&mut state, waiter, owner, Target::Shares(id), (&what(), began));
            if let Err(error) = waited {
                entry.tree.resume();
                state.tables.remove(&id);
                self.released.notify_all();
                return Err(error);
            }
        }
        drop(state);
        waiter.runtime.admission.wait_until_left();
        Ok(())
    }

    /// Reserves a table: nobody else defines it, and those who write to it go on.
    ///
    /// # Errors
    /// As [`lock_table`](Self::lock_table).
    pub(crate) fn reserve(
        &self,
        waiter: &Waiter<'_>,
        owner: &LockOwner,
        entry: &TableEntry,
    ) -> Result<()> {
        waiter.wait.run(|| {
            let (what, began) = (format!("table {}", entry.name()), Instant::now());
            let mut state = self.state.lock();
            while let Some(taken) = state.taken_by_another(entry.id, owner) {
                self.wait(&mut state, waiter, owner, taken, (&what, began))?;
            }
            state.reserved.insert(entry.id, owner.number);
            Ok(())
        })
    }

    /// Takes a name that a table is to get.
    ///
    /// # Errors
    /// As [`lock_table`](Self::lock_table).
    pub(crate) fn lock_name(
        &self,
        waiter: &Waiter<'_>,
        owner: &LockOwner,
        name: &str,
    ) -> Result<()> {
        waiter.wait.run(|| {
            let (what, began) = (format!("name {name}"), Instant::now());
            let mut state = self.state.lock();
            while state.names.get(name).is_some_and(|other| *other != owner.number) {
                let target = Target::Name(name.to_owned());
                self.wait(&mut state, waiter, owner, target, (&what, began))?;
            }
            state.names.insert(name.to_owned(), owner.number);
            Ok(())
        })
    }

    /// Shares a table, once nobody has it exclusive. To be given back by [`unshare`](Self::unshare).
    ///
    /// # Errors
    /// As [`lock_table`](Self::lock_table).
    pub(crate) fn share(
        &self,
        waiter: &Waiter<'_>,
        owner: &mut LockOwner,
        entry: &TableEntry,
    ) -> Result<()> {
        if !entry.tree.try_share() {
            waiter.wait.run(|| {
                let began = Instant::now();
                while !entry.tree.try_share() {
                    let mut state = self.state.lock();
                    let target = Target::Table(entry.id);
                    if state.tables.contains_key(&entry.id) {
                        let what = format!("table {}", entry.name());
                        self.wait(&mut state, waiter, owner, target, (&what, began))?;
                    }
                }
                Ok(())
            })?;
        }
        owner.shared.push(entry.id);
        Ok(())
    }

    /// Gives back a share of a table.
    pub(crate) fn unshare(&self, tree: &Tree) {
        if tree.unshare() {
            // Under the mutex, so that nobody is between the look at the count and the wait.
            let _state = self.state.lock();
            self.released.notify_all();
        }
    }

    /// Waits, without holding anything, until nobody has the table exclusive.
    ///
    /// # Errors
    /// [`Error::LockTimeout`], [`Error::Interrupted`].
    pub(crate) fn wait_until_free(&self, waiter: &Waiter<'_>, table: u32) -> Result<()> {
        waiter.wait.run(|| {
            let began = Instant::now();
            let mut state = self.state.lock();
            while state.tables.contains_key(&table) {
                let waiting = waiter.recorder.wait(Wait::LockSchemaShared);
                self.released.wait_for(&mut state, LOOK_AGAIN);
                drop(waiting);
                waiter.wait.check(waiter.runtime, began, &format!("table number {table}"))?;
            }
            Ok(())
        })
    }

    /// Gives back some of what the owner has exclusive.
    pub(crate) fn release_only(&self, owner: &LockOwner, tables: &[u32], names: &[String]) {
        let mut state = self.state.lock();
        let is_kept = |other: u64, is_given: bool| other != owner.number || !is_given;
        state.tables.retain(|table, other| is_kept(*other, tables.contains(table)));
        state.names.retain(|name, other| is_kept(*other, names.contains(name)));
        self.released.notify_all();
    }

    /// Gives back everything that the owner has exclusive.
    pub(crate) fn release(&self, owner: &LockOwner) {
        let mut state = self.state.lock();
        state.tables.retain(|_, other| *other != owner.number);
        state.reserved.retain(|_, other| *other != owner.number);
        state.names.retain(|_, other| *other != owner.number);
        self.released.notify_all();
    }

    /// Waits a while for somebody to give something back.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        waiter: &Waiter<'_>,
        owner: &LockOwner,
        target: Target,
        (what, began): (&str, Instant),
    ) -> Result<()> {
        let request = Request { target, shared: owner.shared.clone() };
        state.waiting.insert(owner.number, request);
        let outcome = if state.is_in_a_circle(owner.number) {
            Err(Error::Deadlock { what: what.to_owned() })
        } else {
            let _waiting = waiter.recorder.wait(Wait::LockSchemaExclusive);
            self.released.wait_for(state, LOOK_AGAIN);
            waiter.wait.check(waiter.runtime, began, what)
        };
        state.waiting.remove(&owner.number);
        outcome
    }
}

impl State {
    /// What stands in the way of one who wants to define a table.
    fn taken_by_another(&self, table: u32, owner: &LockOwner) -> Option<Target> {
        let is_anothers = |other: Option<&u64>| other.is_some_and(|other| *other != owner.number);
        if is_anothers(self.tables.get(&table)) {
            return Some(Target::Table(table));
        }
        is_anothers(self.reserved.get(&table)).then_some(Target::Reserved(table))
    }

    /// Whether an owner waits, by way of others that wait, for itself.
    fn is_in_a_circle(&self, owner: u64) -> bool {
        let mut seen = vec![owner];
        let mut next = 0;
        while let Some(waiter) = seen.get(next).copied() {
            next += 1;
            for other in self.waits_for(waiter) {
                if other == owner {
                    return true;
                }
                if !seen.contains(&other) {
                    seen.push(other);
                }
            }
        }
        false
    }

    fn waits_for(&self, waiter: u64) -> Vec<u64> {
        let reserved = self.reserved.iter().filter(|(_, owner)| **owner == waiter);
        let mut others: Vec<u64> =
            reserved.flat_map(|(table, _)| self.waiters_that_share(*table, waiter)).collect();
        match self.waiting.get(&waiter).map(|request| &request.target) {
            None => {}
            Some(Target::Table(table)) => others.extend(self.tables.get(table)),
            Some(Target::Reserved(table)) => others.extend(self.reserved.get(table)),
            Some(Target::Name(name)) => others.extend(self.names.get(name)),
            Some(Target::Shares(table)) => others.extend(self.waiters_that_share(*table, waiter)),
            Some(Target::Row(row)) => others.extend(self.rows.in_the_way(waiter, *row)),
        }
        others
    }

    fn waiters_that_share(&self, table: u32, except: u64) -> impl Iterator<Item = u64> {
        let shares = move |(other, request): (&u64, &Request)| {
            (*other != except && request.shared.contains(&table)).then_some(*other)
        };
        self.waiting.iter().filter_map(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(state: &mut State, owner: u64, target: Target, shared: &[u32]) -> bool {
        state.waiting.insert(owner, Request { target, shared: shared.to_vec() });
        state.is_in_a_circle(owner)
    }

    #[test]
    fn two_that_want_each_others_tables_are_a_circle() {
        let mut state = State { tables: HashMap::from([(7, 1), (8, 2)]), ..State::default() };
        assert!(!waits(&mut state, 1, Target::Table(8), &[]));
        assert!(waits(&mut state, 2, Target::Table(7), &[]));
    }

    #[test]
    fn shares_names_and_tables_make_one_circle() {
        let names = HashMap::from([("n".to_owned(), 3)]);
        let mut state = State { tables: HashMap::from([(7, 1)]), names, ..State::default() };
        assert!(!waits(&mut state, 1, Target::Shares(7), &[]));
        assert!(!waits(&mut state, 3, Target::Table(7), &[]));
        assert!(waits(&mut state, 2, Target::Name("n".into()), &[7]));
    }

    #[test]
    fn who_waits_for_a_reserved_table_waits_for_who_has_it() {
        let reserved = HashMap::from([(7, 1)]);
        let mut state = State { tables: HashMap::from([(8, 2)]), reserved, ..State::default() };
        assert!(!waits(&mut state, 2, Target::Reserved(7), &[]));
        assert!(waits(&mut state, 1, Target::Table(8), &[]));
    }

    #[test]
    fn who_shares_a_table_does_not_wait_for_who_will_wait_for_the_share() {
        let mut state = State { reserved: HashMap::from([(7, 1)]), ..State::default() };
        assert!(waits(&mut state, 2, Target::Reserved(7), &[7]));
    }

    #[test]
    fn rows_and_tables_make_one_circle() {
        let row = LockedRow::new(crate::units::ObjectId::new(1).unwrap(), b"key");
        let mut state = State { tables: HashMap::from([(7, 1)]), ..State::default() };
        assert!(state.rows.try_lock(2, row, RowLock::Update));
        assert!(state.rows.enqueue(1, row, RowLock::Share).is_some());
        assert!(!waits(&mut state, 1, Target::Row(row), &[]));
        assert!(waits(&mut state, 2, Target::Table(7), &[]));
    }

    #[test]
    fn a_line_of_waiters_is_no_circle() {
        let mut state = State { tables: HashMap::from([(7, 1)]), ..State::default() };
        assert!(!waits(&mut state, 2, Target::Table(7), &[9]));
        assert!(!waits(&mut state, 3, Target::Table(7), &[9]));
    }
}
