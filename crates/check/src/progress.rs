//! How far a check is, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes done and to do; the latter is an estimate until the directory has been read. Any thread may
/// look while a check runs.
#[derive(Debug, Default)]
pub struct Progress {
    done_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

impl Progress {
    /// Bytes read and checked so far.
    #[must_use]
    pub fn done_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed)
    }

    /// Bytes to read in all, as far as is known.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Ordering::Relaxed).max(self.done_bytes())
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
