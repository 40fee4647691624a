//! What old versions of all tables take, and who is given up when it is too much.
//!
//! Old versions stay in memory as long as an open snapshot may read them. When those of all tables take more than
//! `old_versions_bytes`, the oldest snapshot is *given up*: it does not hold versions any more, and those that nobody
//! else needs go. It stays open, and whatever it finds in leaves or among what is left is right; where something
//! has gone that it may have seen it is told `SnapshotTooOld`. Why so: `docs/decisions/0016-snapshots-are-given-up.md`.
//!
//! Invariants
//! 1. What is not durable yet never goes: *no such row* rests on who removed it, and a durable snapshot may open
//!    there. Where that alone is too much, whoever makes more waits until it is durable.
//! 2. A snapshot is given up before a version goes that it may need, and a store says what has gone before it
//!    goes; a reader asks after its look. So a reader finds the version or is told.
//! 3. A transaction looks for conflicts by old versions, too: where it does not find a row, and something has gone
//!    that would tell who removed it, it is refused as if somebody had.

use std::sync::atomic::{AtomicUsize, Ordering};

use onrush_latch::lock_counted;
use onrush_waits::{Counter, LatchClass, Recorder};
use parking_lot::Mutex;

use crate::engine::Engine;

/// See the module.
pub(crate) struct OldVersions {
    /// Of all tables, about. Written by whoever keeps and drops versions.
    bytes: AtomicUsize,
    limit: usize,
    /// Held by the one who makes room; who comes meanwhile waits, so that it adds no more.
    making_room: Mutex<()>,
}

impl OldVersions {
    pub(crate) fn new(limit: u64) -> OldVersions {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        OldVersions { bytes: AtomicUsize::new(0), limit, making_room: Mutex::new(()) }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether they take more than they may.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.limit
    }
}

/// Drops old versions until those that are left take no more than they may. The caller is not inside the engine and
/// holds no latch: it may wait for the log.
#[cold]
pub(crate) fn make_room(engine: &Engine, recorder: &Recorder) {
    let all = &engine.old_versions;
    let _one = lock_counted(&all.making_room, recorder, LatchClass::Versions);
    let mut has_waited = false;
    collect_all(engine);
    while all.is_over() {
        let given_up = engine.snapshots.give_up_oldest(&engine.log, recorder);
        if given_up > 0 {
            recorder.count(Counter::SnapshotsGivenUp, given_up);
        } else if std::mem::replace(&mut has_waited, true)
            || engine.log.wait_durable(engine.log.prefix(), recorder).is_err()
        {
            // What came meanwhile has its own writer to make room for it.
            return;
        }
        collect_all(engine);
    }
}

fn collect_all(engine: &Engine) {
    let horizon = engine.horizon();
    for table in engine.catalog.all() {
        table.tree.versions.collect(&engine.old_versions, horizon);
    }
}
