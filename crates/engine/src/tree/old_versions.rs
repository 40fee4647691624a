//! How much the old versions of all tables take. Who is given up when it is too much: `transaction/old_versions.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};

use onrush_latch::lock_counted;
use onrush_waits::{LatchClass, Recorder};
use parking_lot::{Mutex, MutexGuard};

/// See the module.
pub(crate) struct OldVersions {
    /// Of all tables, about. Written by whoever keeps and drops versions.
    bytes: AtomicUsize,
    limit: usize,
    /// Held by the one who makes space; who comes meanwhile waits, so that it adds no more.
    making_space: Mutex<()>,
}

impl OldVersions {
    pub(crate) fn new(limit: u64) -> OldVersions {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        OldVersions { bytes: AtomicUsize::new(0), limit, making_space: Mutex::new(()) }
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

    /// The right to make space; whoever comes meanwhile waits for it.
    pub(crate) fn lock(&self, recorder: &Recorder) -> MutexGuard<'_, ()> {
        lock_counted(&self.making_space, recorder, LatchClass::Versions)
    }
}
