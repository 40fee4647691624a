//! How far a repair is, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

use onrush_check::Progress;

/// Any thread may look while a repair runs.
#[derive(Debug, Default)]
pub struct RepairProgress {
    rows: AtomicU64,
    /// Bytes of the damaged database that were read and are to be read.
    pub read: Progress,
}

impl RepairProgress {
    /// Rows written so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}
