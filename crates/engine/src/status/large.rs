//! Large transactions: their numbers and their outcomes.
//!
//! The intents of a large transaction get into images, so its number must mean the same after any crash,
//! and whoever meets an intent must learn its outcome:
//!
//! | state | what the table has | what an intent means |
//! |---|---|---|
//! | open | its number, in memory only | not there, but for the transaction itself |
//! | committed | its number, its LSN and the objects that it wrote | the row, from that LSN on |
//! | aborted | nothing | nothing |
//!
//! Invariants
//! 1. A number is given once: the root of a directory holds the next one, and redo raises it above those of
//!    the pieces that it meets.
//! 2. A committed number stays in the table, and in the root of every directory, until a checkpoint is
//!    installed that began after all leaves and stocks which could hold its intents were looked at (swept).
//! 3. During redo a number that the table lacks is open: its outcome may come. Afterwards it is aborted.
//! 4. The status *committed* is set between the in-flight mark and its clearing, as that of any other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onrush_log::Lsn;
use parking_lot::RwLock;

use super::TransactionStatus;
use crate::fault::{Fault, planted};
use crate::node::leaf::LargeOwner;
use crate::units::ObjectId;

/// See the module. `O` is what an open one keeps of its own, by a layer above.
pub(crate) struct LargeTransactions<O> {
    next: AtomicU64,
    known: RwLock<BTreeMap<u64, Known<O>>>,
    /// The log has been read to its end.
    is_recovered: AtomicBool,
    /// Bytes of the pieces of those that are open.
    open_bytes: AtomicU64,
}

enum Known<O> {
    Open(Arc<O>),
    Committed(CommittedLarge),
}

/// A large transaction that was committed, until nothing is left to be known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedLarge {
    pub(crate) lsn: Lsn,
    /// Whose rows it has changed.
    pub(crate) objects: Vec<ObjectId>,
    /// No leaf holds an intent of it.
    pub(crate) are_leaves_swept: bool,
    /// Nor does a stock.
    pub(crate) is_swept: bool,
}

/// The number of the first large transaction.
const FIRST_NUMBER: u64 = 1;

/// What the root of a directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LargeTable {
    pub(crate) next: u64,
    pub(crate) committed: Vec<(u64, Lsn, Vec<ObjectId>)>,
    /// Objects of the directory that open large transactions have made.
    pub(crate) private: Vec<ObjectId>,
}

impl LargeTable {
    /// Whether there was ever a large transaction.
    pub(crate) fn has_begun(&self) -> bool {
        self.next > FIRST_NUMBER
    }
}

impl<O> Default for LargeTransactions<O> {
    fn default() -> LargeTransactions<O> {
        LargeTransactions {
            next: AtomicU64::new(FIRST_NUMBER),
            known: RwLock::default(),
            is_recovered: AtomicBool::new(false),
            open_bytes: AtomicU64::new(0),
        }
    }
}

impl<O> LargeTransactions<O> {
    /// A number that no other transaction ever has; none once there are no more.
    pub(crate) fn begin(&self, own: &Arc<O>) -> Option<u64> {
        let id = self.next.fetch_add(1, Ordering::AcqRel);
        if id >= LargeOwner::IDS {
            return None;
        }
        self.known.write().insert(id, Known::Open(Arc::clone(own)));
        Some(id)
    }

    pub(crate) fn status(&self, id: u64) -> TransactionStatus {
        match self.known.read().get(&id) {
            Some(Known::Open(_)) => TransactionStatus::Pending,
            Some(Known::Committed(committed)) => TransactionStatus::Committed(committed.lsn),
            None if !self.is_recovered.load(Ordering::Acquire) => TransactionStatus::Pending,
            None if planted(Fault::LargeAbortedAsCommitted) => {
                TransactionStatus::Committed(Lsn::FIRST)
            }
            None => TransactionStatus::Aborted,
        }
    }

    /// Sets the status; only memory writes.
    pub(crate) fn commit(&self, id: u64, lsn: Lsn, objects: &[ObjectId]) {
        let (objects, are_leaves_swept) = (objects.to_vec(), false);
        let committed = CommittedLarge { lsn, objects, are_leaves_swept, is_swept: false };
        self.known.write().insert(id, Known::Committed(committed));
    }

    /// What the transaction has placed means nothing from now on.
    pub(crate) fn abort(&self, id: u64) {
        self.known.write().remove(&id);
    }

    pub(crate) fn is_open(&self, id: u64) -> bool {
        matches!(self.known.read().get(&id), Some(Known::Open(_)))
    }

    /// What the open transaction keeps of its own.
    pub(crate) fn own(&self, id: u64) -> Option<Arc<O>> {
        match self.known.read().get(&id) {
            Some(Known::Open(own)) => Some(Arc::clone(own)),
            _ => None,
        }
    }

    /// Those whose intents may still stand in leaves or stocks and are needed by no snapshot below `horizon`.
    pub(crate) fn to_sweep(&self, horizon: Lsn) -> Vec<(u64, CommittedLarge)> {
        let known = self.known.read();
        let due = known.iter().filter_map(|(id, known)| match known {
            Known::Committed(committed) if !committed.is_swept && committed.lsn < horizon => {
                Some((*id, committed.clone()))
            }
            _ => None,
        });
        due.collect()
    }

    /// No leaf holds an intent of it any more.
    pub(crate) fn set_leaves_swept(&self, id: u64) {
        if let Some(Known::Committed(committed)) = self.known.write().get_mut(&id) {
            committed.are_leaves_swept = true;
        }
    }

    /// Neither a leaf nor a stock holds an intent of it any more.
    pub(crate) fn set_swept(&self, id: u64) {
        if let Some(Known::Committed(committed)) = self.known.write().get_mut(&id) {
            committed.is_swept = true;
        }
    }

    /// Those that were swept, for a checkpoint that begins now.
    pub(crate) fn swept(&self) -> Vec<u64> {
        let known = self.known.read();
        let is_swept =
            |known: &Known<O>| matches!(known, Known::Committed(committed) if committed.is_swept);
        known.iter().filter(|(_, known)| is_swept(known)).map(|(id, _)| *id).collect()
    }

    /// What the directory of a checkpoint holds that began when those of `swept` were swept.
    pub(crate) fn table(&self, swept: &[u64]) -> LargeTable {
        let known = self.known.read();
        let committed = known.iter().filter_map(|(id, known)| match known {
            Known::Committed(committed)
                if !swept.contains(id) && !planted(Fault::StatusesNotStored) =>
            {
                Some((*id, committed.lsn, committed.objects.clone()))
            }
            _ => None,
        });
        let (committed, private) = (committed.collect(), Vec::new());
        LargeTable { committed, private, next: self.next.load(Ordering::Acquire) }
    }

    /// A directory without them is installed, and no image that it names has intents of theirs.
    pub(crate) fn forget(&self, swept: &[u64]) {
        let mut known = self.known.write();
        swept.iter().for_each(|id| drop(known.remove(id)));
    }

    /// What the root says, at open.
    pub(crate) fn restore(&self, table: LargeTable) {
        self.next.fetch_max(table.next, Ordering::AcqRel);
        for (id, lsn, objects) in table.committed {
            self.commit(id, lsn, &objects);
        }
    }

    /// Redo has met a piece.
    pub(crate) fn note_number(&self, id: u64) {
        self.next.fetch_max(id.saturating_add(1), Ordering::AcqRel);
    }

    /// The log has been read: what has no outcome gets none.
    pub(crate) fn end_recovery(&self) {
        self.is_recovered.store(true, Ordering::Release);
    }

    pub(crate) fn add_open_bytes(&self, bytes: u64) {
        self.open_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove_open_bytes(&self, bytes: u64) {
        self.open_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How many are open, and how much they have written.
    pub(crate) fn open(&self) -> (u64, u64) {
        let known = self.known.read();
        let open = known.values().filter(|known| matches!(known, Known::Open(_))).count();
        (open as u64, self.open_bytes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_number_may_get_an_outcome_until_the_log_has_been_read_and_is_aborted_then() {
        let large = LargeTransactions::<()>::default();
        assert_eq!(large.status(7), TransactionStatus::Pending);
        large.commit(8, Lsn(100), &[ObjectId::new(1).unwrap()]);
        large.end_recovery();
        assert_eq!(large.status(7), TransactionStatus::Aborted);
        assert_eq!(large.status(8), TransactionStatus::Committed(Lsn(100)));
    }

    #[test]
    fn an_outcome_is_stored_until_a_checkpoint_begins_after_the_sweep() {
        let large = LargeTransactions::<()>::default();
        large.commit(8, Lsn(100), &[ObjectId::new(1).unwrap()]);
        let before = large.swept();
        assert_eq!(large.to_sweep(Lsn(100)), []);
        let due: Vec<u64> = large.to_sweep(Lsn(101)).into_iter().map(|(id, _)| id).collect();
        assert_eq!(due, [8]);
        large.set_swept(8);
        assert_eq!(large.table(&before).committed.len(), 1);
        let after = large.swept();
        assert_eq!(large.table(&after).committed, []);
    }

    #[test]
    fn no_number_is_given_twice_whatever_tells_of_it() {
        let (large, own) = (LargeTransactions::<()>::default(), Arc::default());
        large.restore(LargeTable { next: 5, ..LargeTable::default() });
        assert_eq!(large.begin(&own), Some(5));
        large.note_number(9);
        assert_eq!(large.begin(&own), Some(10));
    }
}
