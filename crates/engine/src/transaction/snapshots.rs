//! Which snapshots are open, and so which old versions are still needed.
//!
//! Invariant: a snapshot is registered and its LSN read under one mutex, the same under which the
//! horizon is computed; so no version that a new snapshot needs is dropped before it registers.

use std::collections::BTreeMap;

use onrush_latch::lock_counted;
use onrush_log::{Log, Lsn};
use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

/// See the module.
#[derive(Default)]
pub(crate) struct Snapshots {
    open: Mutex<BTreeMap<Lsn, usize>>,
}

impl Snapshots {
    /// Opens a snapshot of everything complete now.
    pub(crate) fn open(&self, log: &Log, recorder: &Recorder) -> Lsn {
        let mut open = lock_counted(&self.open, recorder, LatchClass::Versions);
        let lsn = log.prefix();
        *open.entry(lsn).or_insert(0) += 1;
        lsn
    }

    /// Opens a snapshot of everything durable now.
    pub(crate) fn open_durable(&self, log: &Log, recorder: &Recorder) -> Lsn {
        let mut open = lock_counted(&self.open, recorder, LatchClass::Versions);
        let lsn = log.durable();
        *open.entry(lsn).or_insert(0) += 1;
        lsn
    }

    /// Opens a snapshot at the LSN of one that is open.
    pub(crate) fn reopen(&self, lsn: Lsn) -> Lsn {
        *self.open.lock().entry(lsn).or_insert(0) += 1;
        lsn
    }

    pub(crate) fn close(&self, lsn: Lsn) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&lsn) {
            *count -= 1;
            if *count == 0 {
                open.remove(&lsn);
            }
        }
    }

    /// No snapshot, open or to be opened, is below this LSN: versions that ended below it can go.
    pub(crate) fn horizon(&self, log: &Log) -> Lsn {
        let open = self.open.lock();
        // A durable snapshot may be opened later at the durable LSN, which is below the prefix.
        let next = log.durable().min(log.prefix());
        open.keys().next().map_or(next, |lowest| (*lowest).min(next))
    }
}
