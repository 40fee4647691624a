//! The sizes of a run, all from the largest size that its folder may have.

use onrush::{LargePages, Options};

use super::model::Limits;

/// Sessions of the process.
pub(crate) const SESSIONS: u64 = 8;

/// See the module.
pub(crate) struct Settings {
    /// Bytes of rows that the waves of inserts and deletes rise to, roughly.
    pub(crate) live_bytes: u64,
    pub(crate) options: Options,
}

impl Settings {
    /// A sixteenth of it is rows, an eighth log; half of the rows fit into memory.
    pub(crate) fn of(max_bytes: u64) -> Settings {
        let live_bytes = max_bytes / 16;
        let log_capacity_bytes = (max_bytes / 8).max(4 << 20);
        let options = Options {
            log_capacity_bytes,
            log_segment_bytes: (log_capacity_bytes / 16 / 4096 * 4096).max(64 << 10),
            log_ring_bytes: 256 << 10,
            checkpoint_log_bytes: log_capacity_bytes / 4,
            checkpoint_seconds: 60,
            leaf_memory_bytes: usize::try_from(live_bytes / 2).unwrap_or(usize::MAX).max(4 << 20),
            // So that what the process takes does not grow because more of it has been touched.
            prefault_leaf_memory: true,
            large_pages: LargePages::Off,
            ..Options::small()
        };
        Settings { live_bytes, options }
    }

    pub(crate) fn limits(&self, sessions: u64) -> Limits {
        Limits::of(self.live_bytes, sessions)
    }
}
