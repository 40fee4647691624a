//! How far the reading of a log is, for whoever watches from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the log's files, from the position that is read from. To be given with
/// [`LogOptions::progress`](crate::LogOptions::progress).
#[derive(Debug, Default)]
pub struct ReadProgress {
    read: AtomicU64,
    total: AtomicU64,
}

impl ReadProgress {
    /// Bytes whose records have been handed over.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes in all: while reading at most so many, since the last segment may end before its file
    /// does; afterwards those that were read.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed).max(self.read_bytes())
    }

    pub(crate) fn begin(&self, total_bytes: u64) {
        self.total.store(total_bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.total.store(self.read_bytes(), Ordering::Relaxed);
    }
}
