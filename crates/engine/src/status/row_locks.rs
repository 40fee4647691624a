//! Locks of rows: a transaction takes them before it changes rows that it has found, or where it only wants nobody
//! else to change them, and holds them until it ends.
//!
//! | lock | taken by | kept off |
//! |---|---|---|
//! | `KeyShare` | SELECT ... FOR KEY SHARE | `Update` |
//! | `Share` | SELECT ... FOR SHARE | `NoKeyUpdate`, `Update` |
//! | `NoKeyUpdate` | an UPDATE that leaves the key as it is | all but `KeyShare` |
//! | `Update` | DELETE, an UPDATE of the key, SELECT ... FOR UPDATE | all |
//!
//! Rows are told apart by a hash of object and key. Two rows with one hash share a lock, so one of them is locked more
//! often than it need be.
//!
//! A change that takes no lock looks for one under the latch of its leaf ([`RowLocks::keeps_off`]), and who has taken
//! a lock looks at the row under that latch afterwards. So either the change is seen, or it sees the lock.
//!
//! Invariants
//! 1. Locks that keep each other off are never held by two.
//! 2. Who waits is handed the lock by whoever gives it back, in the order of asking. Only who has a weaker lock of the
//!    row already goes first.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::units::ObjectId;

/// How many parts the locks are kept in.
const SHARDS: usize = 256;

/// How a row is locked; the later ones include the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowLock {
    /// Nobody removes the row or changes its key.
    KeyShare,
    /// Nobody changes the row.
    Share,
    /// As `Share`, for one who is about to change the row, and not its key.
    NoKeyUpdate,
    /// For one who is about to remove the row or to change its key.
    Update,
}

impl RowLock {
    fn keeps_off(self, other: RowLock) -> bool {
        match self.min(other) {
            RowLock::KeyShare => self.max(other) == RowLock::Update,
            RowLock::Share => self.max(other) >= RowLock::NoKeyUpdate,
            RowLock::NoKeyUpdate | RowLock::Update => true,
        }
    }
}

/// Which row, as its lock knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LockedRow(u64);

impl LockedRow {
    pub(crate) fn new(object: ObjectId, key: &[u8]) -> LockedRow {
        LockedRow(xxh3_64_with_seed(key, u64::from(object.number())))
    }
}

impl LockedRow {
    /// Of no row, but of what programs call so among themselves.
    pub(crate) fn advisory(key: &[u8]) -> LockedRow {
        // No object has this number.
        LockedRow(xxh3_64_with_seed(key, 0))
    }
}

/// A session as locks know it.
pub(crate) type LockOwnerNumber = u64;

/// One that holds no locks.
pub(crate) const NO_OWNER: LockOwnerNumber = 0;

/// See the module.
pub(crate) struct RowLocks {
    shards: Box<[Shard]>,
}

#[derive(Default)]
struct Shard {
    /// How many rows are locked, for those who look without the mutex.
    count: AtomicU32,
    locked: Mutex<HashMap<LockedRow, Lock>>,
}

#[derive(Default)]
struct Lock {
    holders: Vec<(LockOwnerNumber, RowLock)>,
    queue: VecDeque<Arc<Queued>>,
}

/// One who waits for a lock.
pub(crate) struct Queued {
    owner: LockOwnerNumber,
    lock: RowLock,
    is_granted: Mutex<bool>,
    granted: Condvar,
}

impl Queued {
    /// Waits so long, or until the lock is handed over; whether it was.
    pub(crate) fn wait_for(&self, time: Duration) -> bool {
        let mut is_granted = self.is_granted.lock();
        if !*is_granted {
            self.granted.wait_for(&mut is_granted, time);
        }
        *is_granted
    }
}

impl Default for RowLocks {
    fn default() -> Self {
        RowLocks { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }
}

impl RowLocks {
    fn shard(&self, row: LockedRow) -> &Shard {
        &self.shards[row.0 as usize % SHARDS]
    }

    /// Takes a lock, or makes the one that is held stronger, if nobody is in the way.
    pub(crate) fn try_lock(&self, owner: LockOwnerNumber, row: LockedRow, lock: RowLock) -> bool {
        let shard = self.shard(row);
        let mut locked = shard.locked.lock();
        match locked.entry(row) {
            Entry::Occupied(mut there) => there.get_mut().try_take(owner, lock),
            Entry::Vacant(free) => {
                free.insert(Lock { holders: vec![(owner, lock)], queue: VecDeque::new() });
                shard.count.fetch_add(1, Ordering::Relaxed);
                true
            }
        }
    }

    /// Takes the lock, or a place among those who wait for it. To be followed by [`give_up`](Self::give_up) if it is
    /// not waited for until it is granted.
    pub(crate) fn enqueue(
        &self,
        owner: LockOwnerNumber,
        row: LockedRow,
        lock: RowLock,
    ) -> Option<Arc<Queued>> {
        let shard = self.shard(row);
        let mut locked = shard.locked.lock();
        let there = locked.entry(row).or_insert_with(|| {
            shard.count.fetch_add(1, Ordering::Relaxed);
            Lock::default()
        });
        if there.try_take(owner, lock) {
            return None;
        }
        let (is_granted, granted) = (Mutex::new(false), Condvar::new());
        let queued = Arc::new(Queued { owner, lock, is_granted, granted });
        match there.held_by(owner).is_some() {
            true => there.queue.push_front(Arc::clone(&queued)),
            false => there.queue.push_back(Arc::clone(&queued)),
        }
        Some(queued)
    }

    /// Waits no longer. False if the lock was granted before: it is the owner's then.
    pub(crate) fn give_up(&self, row: LockedRow, queued: &Arc<Queued>) -> bool {
        let shard = self.shard(row);
        let mut locked = shard.locked.lock();
        if *queued.is_granted.lock() {
            return false;
        }
        if let Some(there) = locked.get_mut(&row) {
            there.queue.retain(|other| !Arc::ptr_eq(other, queued));
            there.grant();
        }
        true
    }

    /// Gives a lock back, or goes back to the weaker one that was held before.
    pub(crate) fn release(&self, owner: LockOwnerNumber, row: LockedRow, to: Option<RowLock>) {
        let shard = self.shard(row);
        let mut locked = shard.locked.lock();
        let Entry::Occupied(mut there) = locked.entry(row) else { return };
        let lock = there.get_mut();
        lock.holders.retain_mut(|(holder, held)| {
            if *holder == owner {
                let Some(before) = to else { return false };
                *held = before;
            }
            true
        });
        lock.grant();
        if lock.holders.is_empty() && lock.queue.is_empty() {
            there.remove();
            shard.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What the owner holds of the row.
    pub(crate) fn held(&self, owner: LockOwnerNumber, row: LockedRow) -> Option<RowLock> {
        self.shard(row).locked.lock().get(&row)?.held_by(owner)
    }

    /// Whether another one's lock keeps the owner from changing the row. To be asked under the latch of its leaf.
    pub(crate) fn keeps_off(
        &self,
        owner: LockOwnerNumber,
        object: ObjectId,
        key: &[u8],
        lock: RowLock,
    ) -> bool {
        let row = LockedRow::new(object, key);
        let shard = self.shard(row);
        if shard.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let locked = shard.locked.lock();
        let mut holders = locked.get(&row).into_iter().flat_map(|there| &there.holders);
        holders.any(|(holder, held)| *holder != owner && held.keeps_off(lock))
    }

    /// Whom an owner that waits for the row waits for.
    pub(crate) fn in_the_way(
        &self,
        owner: LockOwnerNumber,
        row: LockedRow,
    ) -> Vec<LockOwnerNumber> {
        let locked = self.shard(row).locked.lock();
        let Some(there) = locked.get(&row) else { return Vec::new() };
        let Some(at) = there.queue.iter().position(|queued| queued.owner == owner) else {
            return Vec::new();
        };
        let wanted = there.queue[at].lock;
        let before = there.queue.iter().take(at).map(|queued| (queued.owner, queued.lock));
        let holders = there.holders.iter().copied().chain(before);
        holders
            .filter(|(other, lock)| *other != owner && lock.keeps_off(wanted))
            .map(|(other, _)| other)
            .collect()
    }
}

impl Lock {
    fn held_by(&self, owner: LockOwnerNumber) -> Option<RowLock> {
        self.holders.iter().find(|(holder, _)| *holder == owner).map(|(_, held)| *held)
    }

    fn is_free_for(&self, owner: LockOwnerNumber, lock: RowLock) -> bool {
        self.holders.iter().all(|(holder, held)| *holder == owner || !held.keeps_off(lock))
    }

    fn try_take(&mut self, owner: LockOwnerNumber, lock: RowLock) -> bool {
        let held = self.held_by(owner);
        if held.is_some_and(|held| held >= lock) {
            return true;
        }
        // A newcomer does not go before those who wait for what it would keep from them.
        let comes_first =
            held.is_some() || self.queue.iter().all(|queued| !queued.lock.keeps_off(lock));
        if !(comes_first && self.is_free_for(owner, lock)) {
            return false;
        }
        self.hold(owner, lock);
        true
    }

    fn hold(&mut self, owner: LockOwnerNumber, lock: RowLock) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = lock,
            None => self.holders.push((owner, lock)),
        }
    }

    /// Hands the lock to those who wait for it first, as far as they can have it together.
    fn grant(&mut self) {
        while let Some(next) = self.queue.front() {
            if !self.is_free_for(next.owner, next.lock) {
                return;
            }
            let (owner, lock) = (next.owner, next.lock);
            self.hold(owner, lock);
            if let Some(next) = self.queue.pop_front() {
                *next.is_granted.lock() = true;
                next.granted.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RowLock::{KeyShare, NoKeyUpdate, Share, Update};
    use super::*;

    fn row() -> LockedRow {
        LockedRow::new(ObjectId::new(7).unwrap(), b"key")
    }

    #[test]
    fn locks_keep_each_other_off_as_postgresql_says() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let kept_off = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (first, others) in all.iter().zip(kept_off) {
            for (second, is_kept_off) in all.iter().zip(others) {
                let locks = RowLocks::default();
                assert!(locks.try_lock(1, row(), *first));
                assert_eq!(locks.try_lock(2, row(), *second), !is_kept_off, "{first:?} {second:?}");
            }
        }
    }

    #[test]
    fn who_waits_is_handed_the_lock_in_the_order_of_asking() {
        let locks = RowLocks::default();
        assert!(locks.try_lock(1, row(), Update));
        let second = locks.enqueue(2, row(), Update).unwrap();
        let third = locks.enqueue(3, row(), Update).unwrap();
        locks.release(1, row(), None);
        assert!(second.wait_for(Duration::ZERO));
        assert!(!third.wait_for(Duration::ZERO));
        assert!(!locks.try_lock(1, row(), KeyShare));
        locks.release(2, row(), None);
        assert!(third.wait_for(Duration::ZERO));
    }

    #[test]
    fn a_newcomer_does_not_go_before_one_who_waits() {
        let locks = RowLocks::default();
        assert!(locks.try_lock(1, row(), Share));
        let writer = locks.enqueue(2, row(), Update).unwrap();
        assert!(!locks.try_lock(3, row(), Share));
        assert!(locks.give_up(row(), &writer));
        assert!(locks.try_lock(3, row(), Share));
    }

    #[test]
    fn who_makes_a_lock_stronger_goes_before_those_who_wait() {
        let locks = RowLocks::default();
        assert!(locks.try_lock(1, row(), Share));
        assert!(locks.try_lock(2, row(), Share));
        let writer = locks.enqueue(3, row(), Update).unwrap();
        let stronger = locks.enqueue(1, row(), Update).unwrap();
        assert_eq!(locks.in_the_way(1, row()), [2]);
        locks.release(2, row(), None);
        assert!(stronger.wait_for(Duration::ZERO));
        assert!(!writer.wait_for(Duration::ZERO));
        assert_eq!(locks.in_the_way(3, row()), [1]);
    }

    #[test]
    fn a_lock_that_goes_back_to_a_weaker_one_lets_others_in() {
        let locks = RowLocks::default();
        assert!(locks.try_lock(1, row(), Share));
        assert!(locks.try_lock(1, row(), Update));
        let reader = locks.enqueue(2, row(), Share).unwrap();
        locks.release(1, row(), Some(Share));
        assert!(reader.wait_for(Duration::ZERO));
        assert_eq!(locks.held(1, row()), Some(Share));
    }

    #[test]
    fn nothing_is_left_of_a_lock_that_all_have_given_back() {
        let locks = RowLocks::default();
        let object = ObjectId::new(7).unwrap();
        assert!(locks.try_lock(1, row(), Update));
        assert!(locks.keeps_off(2, object, b"key", NoKeyUpdate));
        assert!(!locks.keeps_off(1, object, b"key", NoKeyUpdate));
        locks.release(1, row(), None);
        assert!(!locks.keeps_off(2, object, b"key", NoKeyUpdate));
        assert!(locks.shards.iter().all(|shard| shard.locked.lock().is_empty()));
        assert!(locks.shards.iter().all(|shard| shard.count.load(Ordering::Relaxed) == 0));
    }
}
