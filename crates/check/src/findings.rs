//! Where all threads put what they find. Looked at once a piece, written to only when something is
//! wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::finding::Finding;

/// See the module.
pub(crate) struct Findings {
    list: Mutex<Vec<Finding>>,
    limit: usize,
    /// Set once the list is full; never cleared.
    full: AtomicBool,
}

impl Findings {
    pub(crate) fn new(limit: usize) -> Findings {
        Findings { list: Mutex::default(), limit, full: AtomicBool::new(false) }
    }

    #[cold]
    pub(crate) fn add(&self, finding: Finding) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < self.limit {
            list.push(finding);
        }
        if list.len() >= self.limit {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it is time to give up.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Takes out what was found so far.
    pub(crate) fn take(&self) -> Vec<Finding> {
        std::mem::take(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All findings, by invariant, file and offset.
    pub(crate) fn into_sorted(self) -> Vec<Finding> {
        let mut list = self.list.into_inner().unwrap_or_else(PoisonError::into_inner);
        list.sort_by(|a, b| {
            let place = |finding: &Finding| (finding.invariant, finding.offset);
            (place(a), &a.file).cmp(&(place(b), &b.file))
        });
        list
    }
}
