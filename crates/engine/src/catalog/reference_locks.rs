//! Locks of keys that foreign keys reference: a commit holds them from its look at the other side until its changes
//! are committed, so that of two commits the later one sees what the earlier one has done.
//!
//! | lock | taken by a commit | that looks whether |
//! |---|---|---|
//! | shared | that references a key | the key is there |
//! | exclusive | that removes or changes a key | no row references it |
//! | exclusive, of locks of their own | that takes a key of a deferrable UNIQUE constraint | no other row has it |
//!
//! Keys share a fixed number of locks by their hash, so what is locked takes no memory of its own.
//!
//! Invariants
//! 1. Who takes several takes them in their order, before its commit places intents.
//! 2. A large transaction, which takes them as it goes on, and whoever waits behind one, waits for a limited time: so
//!    circles end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_waits::Wait;
use parking_lot::{Condvar, Mutex};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Waiter;
use crate::error::Result;

/// How many locks there are of each kind of keys. More keep keys apart that have nothing to do with each other.
const STRIPES: usize = 1024;

/// So long one waits for a lock before the transaction is refused as a conflict.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How often a waiter looks whether it is to give up.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How a key is locked; the later one includes the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceLock {
    Shared,
    Exclusive,
}

/// See the module.
pub(crate) struct ReferenceLocks {
    stripes: Box<[Stripe]>,
}

#[derive(Default)]
struct Stripe {
    users: Mutex<Users>,
    freed: Condvar,
}

#[derive(Default)]
struct Users {
    shared: u32,
    is_exclusive: bool,
    /// Who waits for it exclusive; new shared ones wait behind them.
    waiting: u32,
}

/// What to lock, in the order in which it is locked.
pub(crate) type Wanted = BTreeMap<usize, ReferenceLock>;

/// Locks that a transaction holds until this is dropped.
pub(crate) struct HeldReferences {
    locks: Arc<ReferenceLocks>,
    held: Wanted,
}

impl Default for ReferenceLocks {
    fn default() -> Self {
        ReferenceLocks { stripes: (0..2 * STRIPES).map(|_| Stripe::default()).collect() }
    }
}

impl ReferenceLocks {
    /// The lock of a key of the table of this number.
    pub(crate) fn stripe(table: u32, key: &[u8]) -> usize {
        xxh3_64_with_seed(key, u64::from(table)) as usize % STRIPES
    }

    /// The lock of a key of a UNIQUE constraint that is deferrable, of which the table of this number has the entries.
    pub(crate) fn taken_stripe(entries: u32, key: &[u8]) -> usize {
        STRIPES + ReferenceLocks::stripe(entries, key)
    }
}

impl HeldReferences {
    pub(crate) fn none(locks: &Arc<ReferenceLocks>) -> HeldReferences {
        HeldReferences { locks: Arc::clone(locks), held: Wanted::new() }
    }

    /// Takes what is wanted and not yet held. Returns the lock that another transaction does not give back, if there
    /// is one: what was taken before stays held.
    ///
    /// # Errors
    /// [`Error::LockTimeout`](crate::Error::LockTimeout), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(crate) fn take(&mut self, waiter: &Waiter<'_>, wanted: &Wanted) -> Result<Option<usize>> {
        for (stripe, lock) in wanted {
            let held = self.held.get(stripe).copied();
            if held.is_some_and(|held| held >= *lock) {
                continue;
            }
            if !self.locks.stripes[*stripe].take(waiter, *lock, held.is_some())? {
                return Ok(Some(*stripe));
            }
            self.held.insert(*stripe, *lock);
        }
        Ok(None)
    }
}

impl Drop for HeldReferences {
    fn drop(&mut self) {
        for (stripe, lock) in &self.held {
            let Stripe { users, freed } = &self.locks.stripes[*stripe];
            let mut users = users.lock();
            match lock {
                ReferenceLock::Shared => users.shared -= 1,
                ReferenceLock::Exclusive => users.is_exclusive = false,
            }
            drop(users);
            freed.notify_all();
        }
    }
}

impl Users {
    /// Takes the lock, or makes the shared one that is held exclusive, if nobody is in the way.
    fn try_take(&mut self, lock: ReferenceLock, is_held: bool, waits: bool) -> bool {
        let is_free = match lock {
            ReferenceLock::Shared => !self.is_exclusive && self.waiting == 0,
            ReferenceLock::Exclusive => !self.is_exclusive && self.shared == u32::from(is_held),
        };
        match (is_free, lock) {
            (false, _) => return false,
            (true, ReferenceLock::Shared) => self.shared += 1,
            (true, ReferenceLock::Exclusive) => {
                self.shared = 0;
                self.is_exclusive = true;
                self.waiting -= u32::from(waits);
            }
        }
        true
    }
}

impl Stripe {
    /// False if it is not given back in time.
    fn take(&self, waiter: &Waiter<'_>, lock: ReferenceLock, is_held: bool) -> Result<bool> {
        if self.users.lock().try_take(lock, is_held, false) {
            return Ok(true);
        }
        waiter.wait.run(|| self.wait(waiter, lock, is_held))
    }

    #[cold]
    fn wait(&self, waiter: &Waiter<'_>, lock: ReferenceLock, is_held: bool) -> Result<bool> {
        let _waiting = waiter.recorder.wait(Wait::LockReference);
        let began = Instant::now();
        let is_exclusive = lock == ReferenceLock::Exclusive;
        let mut users = self.users.lock();
        users.waiting += u32::from(is_exclusive);
        let outcome = loop {
            if users.try_take(lock, is_held, is_exclusive) {
                return Ok(true);
            }
            let checked = waiter.wait.check(waiter.runtime, began, "a referenced key");
            if checked.is_err() || began.elapsed() >= WAIT_MAX {
                break checked.map(|()| false);
            }
            self.freed.wait_for(&mut users, LOOK_AGAIN);
        };
        users.waiting -= u32::from(is_exclusive);
        drop(users);
        // Those behind it may go on.
        self.freed.notify_all();
        outcome
    }
}
