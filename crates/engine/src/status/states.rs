//! The status of transactions that are being committed.
//!
//! | state | who may change it | to what |
//! |---|---|---|
//! | free | `begin` | pending |
//! | pending | the transaction itself | committed at an LSN, or aborted |
//! | committed, aborted | the transaction itself, once all its intents are resolved | free |
//!
//! The outcome *committed* is set between the in-flight mark and its clearing, so a snapshot that
//! is above the LSN sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use onrush_latch::lock_counted;
use onrush_log::Lsn;
use onrush_waits::{LatchClass, Recorder, Spin, Spun, Wait};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::runtime::StopsWaiting;

/// Transactions that can be between their first intent and the resolution of their last at the same time.
const TRANSACTIONS_MAX: usize = 4096;

const FREE: u64 = 0;
const PENDING: u64 = 1;
const ABORTED: u64 = 2;
/// Committed: the LSN, shifted by two, with these bits.
const COMMITTED: u64 = 3;

/// What an intent means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransactionStatus {
    Pending,
    Aborted,
    /// At this LSN.
    Committed(Lsn),
}

/// A transaction that had no outcome when its intent was seen. Its number alone does not say which one it was: another
/// one has the number as soon as it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PendingTransaction {
    number: u32,
    /// The transactions that have had the number, this one included.
    incarnation: u64,
}

struct Free {
    numbers: Vec<u32>,
    changed_at: Instant,
    /// Nobody waits any more: a transaction whose thread has panicked never has an outcome.
    is_stopped: bool,
}

/// See the module.
pub(crate) struct TransactionStates {
    states: Box<[AtomicU64]>,
    /// How often each number was given to a transaction.
    incarnations: Box<[AtomicU64]>,
    free: Mutex<Free>,
    /// A status was set, or a number became free.
    changed: Condvar,
}

impl TransactionStates {
    pub(crate) fn new() -> TransactionStates {
        TransactionStates {
            states: (0..TRANSACTIONS_MAX).map(|_| AtomicU64::new(FREE)).collect(),
            incarnations: (0..TRANSACTIONS_MAX).map(|_| AtomicU64::new(0)).collect(),
            free: Mutex::new(Free {
                numbers: (0..TRANSACTIONS_MAX as u32).rev().collect(),
                changed_at: Instant::now(),
                is_stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// A number for a transaction that begins to commit; waits while all are in use. None once the
    /// engine has stopped.
    pub(crate) fn begin(&self, recorder: &Recorder) -> Option<u32> {
        let mut free = self.lock(recorder);
        while !free.is_stopped {
            if let Some(number) = free.numbers.pop() {
                self.incarnations[number as usize].fetch_add(1, Ordering::Relaxed);
                self.states[number as usize].store(PENDING, Ordering::Release);
                return Some(number);
            }
            self.wait_for_change(&mut free, recorder);
        }
        None
    }

    /// The list of free numbers, with a collision counted under the name of its word.
    fn lock(&self, recorder: &Recorder) -> MutexGuard<'_, Free> {
        if let Some(free) = self.free.try_lock() {
            return free;
        }
        recorder.spun(Spin::TransactionId, Spun { spins: 1, ..Spun::default() });
        lock_counted(&self.free, recorder, LatchClass::Transaction)
    }

    fn wait_for_change(&self, free: &mut MutexGuard<'_, Free>, recorder: &Recorder) {
        let mut waiting = recorder.wait(Wait::TransactionConflict);
        self.changed.wait(free);
        waiting.signalled_at(free.changed_at);
    }

    pub(crate) fn status(&self, number: u32) -> TransactionStatus {
        match self.states[number as usize].load(Ordering::Acquire) {
            FREE | PENDING => TransactionStatus::Pending,
            ABORTED => TransactionStatus::Aborted,
            committed => TransactionStatus::Committed(Lsn(committed >> 2)),
        }
    }

    /// Sets the status, once; only a memory write. [`announce`](Self::announce) follows.
    pub(crate) fn decide(&self, number: u32, committed_at: Option<Lsn>) {
        let state = committed_at.map_or(ABORTED, |lsn| lsn.0 << 2 | COMMITTED);
        self.states[number as usize].store(state, Ordering::Release);
    }

    /// Wakes those who wait for an outcome.
    pub(crate) fn announce(&self, recorder: &Recorder) {
        let mut free = self.lock(recorder);
        free.changed_at = Instant::now();
        self.changed.notify_all();
    }

    /// Gives the number back, once no intent names it.
    pub(crate) fn end(&self, number: u32, recorder: &Recorder) {
        let mut free = self.lock(recorder);
        self.states[number as usize].store(FREE, Ordering::Release);
        free.numbers.push(number);
        free.changed_at = Instant::now();
        self.changed.notify_all();
    }

    /// The transaction that has this number. The caller sees an intent of it, under the latch of the intent's leaf:
    /// the number is not given back before the intent is resolved under that latch.
    pub(crate) fn pending(&self, number: u32) -> PendingTransaction {
        let incarnation = self.incarnations[number as usize].load(Ordering::Relaxed);
        PendingTransaction { number, incarnation }
    }

    /// Waits until the transaction may have an outcome. Whoever has its number behind it is not waited for, as it may
    /// wait for the caller.
    pub(crate) fn wait(&self, transaction: PendingTransaction, recorder: &Recorder) {
        let mut free = self.lock(recorder);
        let number = transaction.number as usize;
        let is_pending = self.pending(transaction.number) == transaction
            && self.states[number].load(Ordering::Acquire) == PENDING;
        if is_pending && !free.is_stopped {
            self.wait_for_change(&mut free, recorder);
        }
    }
}

impl StopsWaiting for TransactionStates {
    fn stop(&self) {
        let mut free = self.free.lock();
        free.is_stopped = true;
        free.changed_at = Instant::now();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether they come before the engine stops or after, nobody waits for an outcome that is never
    /// given.
    #[test]
    fn nobody_waits_once_the_engine_has_stopped() {
        let states = TransactionStates::new();
        let registry = onrush_waits::Registry::new();
        let number = states.begin(&Recorder::new(&registry, "panicked")).unwrap();
        let panicked = states.pending(number);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| states.wait(panicked, &Recorder::new(&registry, "waits")));
            }
            states.stop();
        });
        assert_eq!(states.status(number), TransactionStatus::Pending);
        assert_eq!(states.begin(&Recorder::new(&registry, "late")), None);
    }

    /// Two transactions, each of which saw an intent of one that has ended, and has that one's number, would otherwise
    /// wait for each other.
    #[test]
    fn nobody_waits_for_whoever_has_the_number_next() {
        let states = TransactionStates::new();
        let registry = onrush_waits::Registry::new();
        let recorder = Recorder::new(&registry, "waits");
        let number = states.begin(&recorder).unwrap();
        let seen = states.pending(number);
        states.decide(number, Some(Lsn(8)));
        states.end(number, &recorder);
        assert_eq!(states.begin(&recorder), Some(number));
        assert_ne!(states.pending(number), seen);
        states.wait(seen, &recorder);
        assert_eq!(states.status(number), TransactionStatus::Pending);
    }
}
