//! Those who wait for a permit, first come, first served.
//!
//! Invariants
//! 1. A waiter is in the queue, or has been granted a permit, or has taken one itself: one mutex
//!    makes it so.
//! 2. The first in the queue knows that it is the first: whoever makes it so wakes it.
//! 3. A waiter parks only after it has put itself into the queue, and looks at its grant after
//!    every wake-up. So a wake-up that comes early, or belongs to something else, does no harm.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Instant;

use crate::sync::{AtomicUsize, Mutex, Parker, fence};

/// A permit given to a waiter, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) permit: usize,
    pub(crate) when: Instant,
}

/// One waiter's entry, owned by its ticket and used again for every wait.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket_id: u64,
    grant: Mutex<Option<Grant>>, // set under the queue's mutex, taken by the waiter
}

impl Waiter {
    pub(crate) fn new(ticket_id: u64) -> Arc<Self> {
        Arc::new(Self { ticket_id, grant: Mutex::new(None) })
    }

    pub(crate) fn take_grant(&self) -> Option<Grant> {
        self.grant.lock().take()
    }
}

#[derive(Debug)]
struct Entry {
    waiter: Arc<Waiter>,
    parker: Parker,
}

/// The queue for permits.
#[derive(Debug)]
pub(crate) struct Queue {
    entries: Mutex<VecDeque<Entry>>,
    len: AtomicUsize, // written under the mutex; read by whoever gives up a permit
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::new(VecDeque::new()), len: AtomicUsize::new(0) }
    }

    /// A hint: whether anybody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Puts a waiter at the end. A permit given up from now on either sees it or is seen by it: both
    /// sides write, fence (SeqCst), then read what the other one writes.
    pub(crate) fn push(&self, waiter: &Arc<Waiter>, parker: &Parker) {
        let mut entries = self.entries.lock();
        entries.push_back(Entry { waiter: Arc::clone(waiter), parker: parker.clone() });
        self.len.store(entries.len(), Relaxed);
        drop(entries);
        fence(SeqCst);
    }

    /// Whether this waiter is the first.
    pub(crate) fn is_first(&self, waiter: &Arc<Waiter>) -> bool {
        let entries = self.entries.lock();
        entries.front().is_some_and(|entry| Arc::ptr_eq(&entry.waiter, waiter))
    }

    /// A permit may be free: the first waiter should look.
    pub(crate) fn wake_first(&self) {
        let first = self.entries.lock().front().map(|entry| entry.parker.clone());
        if let Some(parker) = first {
            parker.unpark();
        }
    }

    /// Offers the first waiter a permit: `give` makes it that ticket's own and says which it is, or
    /// `None` if it is gone already. True if a waiter has got it.
    pub(crate) fn grant_first(&self, give: impl FnOnce(u64) -> Option<usize>) -> bool {
        let mut entries = self.entries.lock();
        let Some(first) = entries.front() else { return false };
        let Some(permit) = give(first.waiter.ticket_id) else { return false };
        *first.waiter.grant.lock() = Some(Grant { permit, when: Instant::now() });
        let woken = entries.pop_front().map(|entry| entry.parker);
        let next = entries.front().map(|entry| entry.parker.clone());
        self.len.store(entries.len(), Relaxed);
        drop(entries);
        for parker in [woken, next].into_iter().flatten() {
            parker.unpark();
        }
        true
    }
}
