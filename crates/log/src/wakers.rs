//! Futures that wait for an LSN: woken by the round that makes it durable.
//!
//! Invariant: a waker is in the list before its owner looks at `durable` once more, and the leader
//! raises `durable` before it looks at the list: one of the two sees the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use onrush_lsn::Lsn;

/// The wakers of those who wait.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    list: Mutex<Vec<(Lsn, Waker)>>, // never held while waking
}

impl Wakers {
    fn list(&self) -> MutexGuard<'_, Vec<(Lsn, Waker)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes `waker` when a round has made `lsn` durable.
    pub(crate) fn add(&self, lsn: Lsn, waker: &Waker) {
        self.list().push((lsn, waker.clone()));
    }

    /// Whether somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.list().is_empty()
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.list().len()
    }

    /// Wakes all who wait for no more than `durable`; returns how many.
    pub(crate) fn wake(&self, durable: Lsn) -> u64 {
        let due: Vec<_> = self.list().extract_if(.., |(lsn, _)| *lsn <= durable).collect();
        let count = due.len() as u64;
        due.into_iter().for_each(|(_, waker)| waker.wake());
        count
    }

    /// Wakes everyone: the log has failed or is closed.
    pub(crate) fn wake_all(&self) {
        let all = std::mem::take(&mut *self.list());
        all.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
