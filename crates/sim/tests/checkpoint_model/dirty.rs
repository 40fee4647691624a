//! Which leaves the next checkpoint has to image: a list for each epoch, in shards.

use std::collections::BTreeMap;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::{Epoch, Fault, LeafId};

const SHARDS: usize = 2;

pub struct DirtyLists {
    fault: Fault,
    epoch: AtomicU64,
    shards: Vec<Mutex<BTreeMap<Epoch, Vec<LeafId>>>>,
}

impl DirtyLists {
    pub fn new(fault: Fault) -> DirtyLists {
        let shards = (0..SHARDS).map(|_| Mutex::new(BTreeMap::new())).collect();
        DirtyLists { fault, epoch: AtomicU64::new(1), shards }
    }

    /// To be read under the leaf's latch.
    pub fn epoch(&self) -> Epoch {
        self.epoch.load(SeqCst)
    }

    pub fn start_epoch(&self, next: Epoch) {
        self.epoch.store(next, SeqCst);
    }

    /// The caller holds the leaf's latch.
    pub fn push(&self, place: usize, epoch: Epoch, leaf: LeafId) {
        let epoch = if self.fault == Fault::ParityLists { epoch % 2 } else { epoch };
        let mut shard = self.shards[place % SHARDS].lock().expect("held for a moment");
        shard.entry(epoch).or_default().push(leaf);
    }

    /// The leaves on the lists of all epochs before `epoch`.
    pub fn take_before(&self, epoch: Epoch) -> Vec<LeafId> {
        let mut leaves = Vec::new();
        for shard in &self.shards {
            let mut lists = shard.lock().expect("held for a moment");
            if self.fault == Fault::ParityLists {
                leaves.extend(lists.remove(&((epoch + 1) % 2)).unwrap_or_default());
                continue;
            }
            let later = lists.split_off(&epoch);
            leaves.extend(std::mem::replace(&mut *lists, later).into_values().flatten());
        }
        leaves
    }
}
