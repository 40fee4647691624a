//! What an operator has to know of the disk, told once where it happens: that it failed, and that it is full.
//!
//! Invariant: a full disk that every insert meets is told once a minute at most, and once more when there is space.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::DiskError;

/// Between two messages that the disk is full.
const FULL_EVERY: Duration = Duration::from_secs(60);

/// The first failed write or sync: nobody writes any more.
pub(crate) fn failed(error: &DiskError) {
    tracing::error!(
        %error,
        "the disk failed, so the engine has stopped: nothing more is written, and no commit is acknowledged; \
         see to the disk, then close the database and open it again"
    );
}

/// Whether the disk is full, as far as it was told.
#[derive(Debug, Default)]
pub(crate) struct FullDisk {
    is_told: AtomicBool, // by whoever finds the disk full; back by whoever finds space again
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    told: Option<Instant>,
    /// Failed calls since then.
    untold: u64,
}

impl FullDisk {
    /// A call found no space.
    pub(crate) fn met(&self, error: &DiskError) {
        if let Some(untold) = self.is_to_be_told(Instant::now()) {
            tracing::warn!(
                %error,
                untold,
                "the disk is full: inserts wait or fail until there is space; nothing was lost"
            );
        }
    }

    /// A call found space.
    pub(crate) fn is_over(&self) {
        if self.is_told.load(Relaxed) && self.is_told.swap(false, Relaxed) {
            tracing::info!("there is space on the disk again");
        }
    }

    /// How many were not told before this one; none if this one is not told either.
    fn is_to_be_told(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |told: Instant| now.saturating_duration_since(told) < FULL_EVERY;
        if last.told.is_some_and(is_recent) {
            last.untold += 1;
            return None;
        }
        last.told = Some(now);
        self.is_told.store(true, Relaxed);
        Some(std::mem::take(&mut last.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_stays_full_is_told_once_a_minute_with_a_count() {
        let (full, begin) = (FullDisk::default(), Instant::now());
        assert_eq!(full.is_to_be_told(begin), Some(0));
        for second in 1..60 {
            assert_eq!(full.is_to_be_told(begin + Duration::from_secs(second)), None);
        }
        assert_eq!(full.is_to_be_told(begin + FULL_EVERY), Some(59));
    }
}
