//! Locks on tables and names: shared for who touched a table, exclusive for who defines, both until the
//! transaction ends. Who closes a circle of waits is its victim.
//!
//! A lock carries the end of the newest record of those who held it. Who gets the lock waits until the
//! completed prefix is there, so that what he reads by a snapshot from now on has their commits. Single inserts
//! take no lock; so who locks a table to define it waits until the prefix has passed all that was reserved.

use super::plant::Plant;
use super::types::{Lsn, Refusal};
use super::world::{Lock, LockName, Shared, World};

impl Lock {
    fn is_free_for(&self, transaction: usize, exclusive: bool) -> bool {
        let others = self.shared.iter().any(|other| *other != transaction);
        self.exclusive.is_none_or(|own| own == transaction) && !(exclusive && others)
    }
}

impl World {
    fn take_lock(&mut self, transaction: usize, name: LockName, exclusive: bool) -> bool {
        let lock = self.locks.entry(name).or_default();
        if !lock.is_free_for(transaction, exclusive) {
            return false;
        }
        if exclusive {
            lock.exclusive = Some(transaction);
        } else {
            lock.shared.insert(transaction);
        }
        true
    }

    /// Whether the wait of a transaction leads back to itself.
    fn closes_circle(&self, transaction: usize) -> bool {
        let mut open = vec![transaction];
        let mut seen = vec![];
        while let Some(waiter) = open.pop() {
            let Some((name, exclusive)) = self.waiting.get(&waiter) else { continue };
            let Some(lock) = self.locks.get(name) else { continue };
            let shared = lock.shared.iter().filter(|_| *exclusive);
            for holder in lock.exclusive.iter().chain(shared).filter(|other| **other != waiter) {
                if *holder == transaction {
                    return true;
                }
                if !seen.contains(holder) {
                    seen.push(*holder);
                    open.push(*holder);
                }
            }
        }
        false
    }

    /// Gives back all locks; `end` is that of the transaction's record.
    pub(super) fn release_locks(&mut self, transaction: usize, end: Lsn) {
        for lock in self.locks.values_mut() {
            let was_shared = lock.shared.remove(&transaction);
            if lock.exclusive == Some(transaction) {
                lock.exclusive = None;
            } else if !was_shared {
                continue;
            }
            lock.released_at = lock.released_at.max(end);
        }
    }
}

/// Waits for a lock.
pub(super) async fn lock(
    shared: &Shared,
    transaction: usize,
    name: LockName,
    exclusive: bool,
) -> Result<(), Refusal> {
    let mut is_victim = false;
    let victim = &mut is_victim;
    shared.world().waiting.insert(transaction, (name, exclusive));
    shared
        .until(move |world| {
            if world.take_lock(transaction, name, exclusive) {
                return true;
            }
            *victim = world.closes_circle(transaction);
            *victim
        })
        .await;
    shared.world().waiting.remove(&transaction);
    if is_victim {
        return Err(Refusal::Deadlock);
    }
    if !shared.world().is_planted(Plant::LockWithoutPrefix) {
        let mut since = shared.world().locks[&name].released_at;
        let is_table = matches!(name, LockName::Table(_));
        if exclusive && is_table && !shared.world().is_planted(Plant::DefinedBesideSingles) {
            since = shared.world().tail();
        }
        shared.until(move |world| world.prefix() >= since).await;
    }
    Ok(())
}
