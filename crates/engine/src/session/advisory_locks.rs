//! Locks of numbers that programs agree on, which mean nothing to the database.
//!
//! They are kept with the locks of rows, and a session has one number among the owners of all of them, so circles over
//! rows, tables and these locks are found.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use onrush_waits::Recorder;
use parking_lot::Mutex;

use super::session::Session;
use crate::catalog::{LockWait, Waiter, WantedRow};
use crate::engine::Engine;
use crate::error::Result;
use crate::status::{LockOwnerNumber, LockedRow, RowLock};

/// How long an advisory lock is held unless it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvisoryScope {
    /// Until the session ends.
    Session,
    /// Until [`AdvisoryLocks::end_transaction`].
    Transaction,
}

/// How a session holds one lock.
#[derive(Default)]
struct Held {
    /// How often by the session: shared, and exclusive.
    counts: [u32; 2],
    /// By the transaction: shared or not, if at all.
    by_transaction: Option<bool>,
}

impl Held {
    fn lock(&self) -> Option<RowLock> {
        let is_exclusive = self.counts[1] > 0 || self.by_transaction == Some(false);
        let is_shared = self.counts[0] > 0 || self.by_transaction == Some(true);
        match (is_exclusive, is_shared) {
            (true, _) => Some(RowLock::Update),
            (false, true) => Some(RowLock::Share),
            (false, false) => None,
        }
    }
}

/// The advisory locks of one session. Those that are held when this is dropped are given back.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// let (one, two) = (db.session()?, db.session()?);
/// let (one, two) = (one.advisory_locks(), two.advisory_locks());
/// assert!(one.try_lock(b"nightly job", false, AdvisoryScope::Session));
/// assert!(!two.try_lock(b"nightly job", false, AdvisoryScope::Session));
/// assert!(one.unlock(b"nightly job", false));
/// two.lock(b"nightly job", false, AdvisoryScope::Session)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AdvisoryLocks {
    engine: Arc<Engine>,
    recorder: Arc<Recorder>,
    wait: LockWait,
    owner: LockOwnerNumber,
    held: Mutex<HashMap<LockedRow, Held>>,
}

impl Session {
    /// The session's advisory locks, which can be used from any thread while the session works. To be taken once: what
    /// another one holds is held by the same session.
    #[must_use]
    pub fn advisory_locks(&self) -> AdvisoryLocks {
        AdvisoryLocks {
            engine: Arc::clone(&self.worker.engine),
            recorder: Arc::clone(&self.worker.recorder),
            wait: self.worker.lock_wait.clone(),
            owner: self.worker.number(),
            held: Mutex::default(),
        }
    }
}

impl AdvisoryLocks {
    /// Takes a lock, shared or exclusive; who holds it in another session is waited for. A lock that is held can be
    /// taken again.
    ///
    /// # Errors
    /// [`Deadlock`](crate::Error::Deadlock), [`LockTimeout`](crate::Error::LockTimeout),
    /// [`Interrupted`](crate::Error::Interrupted).
    pub fn lock(&self, key: &[u8], is_shared: bool, scope: AdvisoryScope) -> Result<()> {
        let (engine, recorder, wait) = (&self.engine, &self.recorder, &self.wait);
        let waiter = Waiter { runtime: engine, recorder, wait };
        let (row, lock) = (LockedRow::advisory(key), wanted(is_shared));
        let wanted = WantedRow { row, lock, shared: &[], what: "an advisory lock".to_owned() };
        engine.catalog.locks.lock_row(&waiter, self.owner, &wanted)?;
        self.note(row, is_shared, scope);
        Ok(())
    }

    /// Takes a lock, unless another session holds it: then false.
    pub fn try_lock(&self, key: &[u8], is_shared: bool, scope: AdvisoryScope) -> bool {
        let row = LockedRow::advisory(key);
        let is_taken = self.engine.resolver.row_locks.try_lock(self.owner, row, wanted(is_shared));
        if is_taken {
            self.note(row, is_shared, scope);
        }
        is_taken
    }

    /// Gives a lock back that was taken for the session, as often as it was taken. False if it is not held so.
    pub fn unlock(&self, key: &[u8], is_shared: bool) -> bool {
        let row = LockedRow::advisory(key);
        let mut all = self.held.lock();
        let Entry::Occupied(mut held) = all.entry(row) else { return false };
        let count = &mut held.get_mut().counts[usize::from(!is_shared)];
        if *count == 0 {
            return false;
        }
        *count -= 1;
        self.follow(held);
        true
    }

    /// Gives all locks back that were taken for the session.
    pub fn unlock_all(&self) {
        self.release(|held| held.counts = [0; 2]);
    }

    /// Gives all locks back that were taken for a transaction.
    pub fn end_transaction(&self) {
        self.release(|held| held.by_transaction = None);
    }

    fn note(&self, row: LockedRow, is_shared: bool, scope: AdvisoryScope) {
        let mut all = self.held.lock();
        let held = all.entry(row).or_default();
        match scope {
            AdvisoryScope::Session => held.counts[usize::from(!is_shared)] += 1,
            AdvisoryScope::Transaction => {
                held.by_transaction = Some(is_shared && held.by_transaction != Some(false));
            }
        }
    }

    fn release(&self, change: impl Fn(&mut Held)) {
        let mut all = self.held.lock();
        let rows: Vec<LockedRow> = all.keys().copied().collect();
        for row in rows {
            if let Entry::Occupied(mut held) = all.entry(row) {
                change(held.get_mut());
                self.follow(held);
            }
        }
    }

    /// Holds no more than what is left.
    fn follow(&self, held: std::collections::hash_map::OccupiedEntry<'_, LockedRow, Held>) {
        let (row, lock) = (*held.key(), held.get().lock());
        self.engine.resolver.row_locks.release(self.owner, row, lock);
        if lock.is_none() {
            held.remove();
        }
    }
}

impl Drop for AdvisoryLocks {
    fn drop(&mut self) {
        self.release(|held| *held = Held::default());
    }
}

fn wanted(is_shared: bool) -> RowLock {
    if is_shared { RowLock::Share } else { RowLock::Update }
}
