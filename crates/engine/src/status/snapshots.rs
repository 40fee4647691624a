//! Which snapshots are open, and so which old versions are still needed.
//!
//! Invariants
//! 1. A snapshot is registered and its LSN read under one mutex, the same under which the
//!    horizon is computed; so no version that a new snapshot needs is dropped before it registers.
//! 2. The horizon never goes back. A snapshot that was given up is never below it again, and none that opens
//!    later is given up already.

use std::collections::BTreeMap;

use onrush_latch::lock_counted;
use onrush_log::{Log, Lsn};
use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

/// See the module.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// How many there are at each LSN.
    at: BTreeMap<Lsn, usize>,
    /// Those below it were given up.
    held_from: Lsn,
}

impl Open {
    fn add(&mut self, lsn: Lsn) -> Lsn {
        *self.at.entry(lsn).or_insert(0) += 1;
        lsn
    }

    /// The oldest that was not given up, and how many are there.
    fn oldest_held(&self) -> Option<(Lsn, usize)> {
        self.at.range(self.held_from..).next().map(|(lsn, count)| (*lsn, *count))
    }
}

impl Snapshots {
    /// Opens a snapshot of everything complete now.
    pub(crate) fn open(&self, log: &Log, recorder: &Recorder) -> Lsn {
        let mut open = lock_counted(&self.0, recorder, LatchClass::Versions);
        open.add(log.prefix())
    }

    /// Opens a snapshot of everything durable now.
    pub(crate) fn open_durable(&self, log: &Log, recorder: &Recorder) -> Lsn {
        let mut open = lock_counted(&self.0, recorder, LatchClass::Versions);
        open.add(log.durable())
    }

    /// Opens a snapshot at the LSN of one that is open; given up like that one.
    pub(crate) fn reopen(&self, lsn: Lsn) -> Lsn {
        self.0.lock().add(lsn)
    }

    pub(crate) fn close(&self, lsn: Lsn) {
        let mut open = self.0.lock();
        if let Some(count) = open.at.get_mut(&lsn) {
            *count -= 1;
            if *count == 0 {
                open.at.remove(&lsn);
            }
        }
    }

    /// No snapshot that was not given up, open or to be opened, is below this LSN: versions that ended below
    /// it can go.
    pub(crate) fn horizon(&self, log: &Log) -> Lsn {
        let open = self.0.lock();
        let next = next(log);
        open.oldest_held().map_or(next, |(lowest, _)| lowest.min(next))
    }

    /// Gives up the oldest snapshots that hold versions, all at one LSN, and says how many; none if no
    /// snapshot holds any.
    pub(crate) fn give_up_oldest(&self, log: &Log, recorder: &Recorder) -> u64 {
        let mut open = lock_counted(&self.0, recorder, LatchClass::Versions);
        let next = next(log);
        let Some((lowest, count)) = open.oldest_held().filter(|(lowest, _)| *lowest < next) else {
            return 0;
        };
        open.held_from = lowest + 1;
        count as u64
    }
}

/// No snapshot will be opened below it. A durable one may be opened at the durable LSN, which is below the
/// prefix.
fn next(log: &Log) -> Lsn {
    log.durable().min(log.prefix())
}
