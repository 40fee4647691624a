//! What the changes of all open transactions take in memory.
//!
//! A transaction counts what it has in steps of [`STEP_BYTES`], so that its changes touch nothing that others touch.
//! When all of them together have more than `open_transactions_bytes`, the one that grows goes over to the large form
//! at once instead of at its own limit (`session/large.rs`): its changes go to leaves and log.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What a transaction counts at a time; less than that it does not count.
pub(crate) const STEP_BYTES: usize = 16 << 10;

/// See the module.
pub(crate) struct OpenChanges {
    bytes: AtomicUsize,
    limit: usize,
}

impl OpenChanges {
    pub(crate) fn new(limit: u64) -> OpenChanges {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        OpenChanges { bytes: AtomicUsize::new(0), limit }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether they take more than they may.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.limit
    }

    /// Counts what a transaction has now, of which it had counted `counted`, and says what it has counted then.
    #[cold]
    pub(crate) fn count(&self, counted: usize, has: usize) -> usize {
        let now = has / STEP_BYTES * STEP_BYTES;
        if now >= counted {
            self.bytes.fetch_add(now - counted, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(counted - now, Ordering::Relaxed);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_steps_are_counted_and_given_back() {
        let open = OpenChanges::new(3 * STEP_BYTES as u64);
        let counted = open.count(0, 2 * STEP_BYTES + 5);
        let other = open.count(0, 2 * STEP_BYTES);
        assert!(open.is_over());
        assert_eq!((counted, open.count(counted, STEP_BYTES)), (2 * STEP_BYTES, STEP_BYTES));
        assert!(!open.is_over());
        assert_eq!((open.count(STEP_BYTES, 7), open.count(other, 0), open.bytes()), (0, 0, 0));
    }
}
