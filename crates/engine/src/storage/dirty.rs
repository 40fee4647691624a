//! Which leaves the next checkpoint has to image: a list for each epoch.
//!
//! Invariants
//! 1. A leaf with `dirty_epoch = e` is on the list of exactly `e`, whenever the push happens: a
//!    writer that read the epoch, slept through a whole checkpoint and then pushed is found by the
//!    next one, because lists are kept by number, not by parity.
//! 2. The epoch changes only after the checkpoint has taken its C.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Storage;
use super::leaf::LeafState;
use crate::fault::{Fault, planted};
use crate::units::{Epoch, LeafId};

/// See the module. One shard a permit, so that inserters do not meet here.
pub(crate) struct DirtyLists {
    /// The checkpoint before the epoch. Only a checkpoint raises it; read by anyone.
    last_checkpoint: AtomicU64,
    shards: Box<[Mutex<BTreeMap<Epoch, Vec<LeafId>>>]>,
}

impl DirtyLists {
    pub(crate) fn new(shards: usize, epoch: Epoch) -> DirtyLists {
        let shards = (0..shards).map(|_| Mutex::new(BTreeMap::new())).collect();
        DirtyLists { last_checkpoint: AtomicU64::new(epoch.number() - 1), shards }
    }

    /// The epoch for which a leaf becomes dirty now. To be read under the leaf's latch.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::after(self.last_checkpoint.load(Ordering::Acquire))
    }

    /// Starts epoch `next`. Only the checkpoint calls this, after it has taken C.
    pub(crate) fn start_epoch(&self, next: Epoch) {
        self.last_checkpoint.store(next.number() - 1, Ordering::Release);
    }

    /// Puts a leaf on the list of `epoch`. The caller holds the leaf's latch.
    pub(crate) fn push(&self, permit: usize, epoch: Epoch, leaf: LeafId) {
        let shard = &self.shards[permit % self.shards.len()];
        let epoch = if planted(Fault::ParityLists) { parity(epoch.number()) } else { epoch };
        shard.lock().entry(epoch).or_default().push(leaf);
    }

    /// Takes the lists of all epochs before `epoch`.
    pub(crate) fn take_before(&self, epoch: Epoch) -> Vec<LeafId> {
        let mut leaves = Vec::new();
        for shard in &self.shards {
            let mut lists = shard.lock();
            if planted(Fault::ParityLists) {
                leaves.extend(lists.remove(&parity(epoch.number() + 1)).unwrap_or_default());
                continue;
            }
            let later = lists.split_off(&epoch);
            leaves.extend(std::mem::replace(&mut *lists, later).into_values().flatten());
        }
        leaves
    }
}

/// The planted fault: one list for the odd epochs, one for the even ones.
fn parity(number: u64) -> Epoch {
    Epoch::after(number % 2)
}

impl Storage {
    /// Puts a leaf that became dirty on the list of its epoch, unless checkpoints do not look at
    /// it. The caller holds its latch exclusive.
    pub(crate) fn list_dirty(&self, permit: usize, id: LeafId, leaf: &LeafState) {
        if let Some(epoch) = leaf.dirty_epoch
            && leaf.logged
        {
            self.dirty.push(permit, epoch, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_push_is_found_by_the_next_checkpoint() {
        let lists = DirtyLists::new(2, Epoch::after(0));
        let seen = lists.epoch();
        lists.start_epoch(Epoch::after(1));
        assert!(lists.take_before(Epoch::after(1)).is_empty());
        lists.push(0, seen, LeafId(7));
        lists.push(1, Epoch::after(2), LeafId(8));
        lists.start_epoch(Epoch::after(2));
        assert_eq!(lists.take_before(Epoch::after(2)), vec![LeafId(7)]);
    }
}
