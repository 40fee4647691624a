//! Delayed commits: acknowledged before they are durable, within the declared window.
//!
//! Bytes are a hard bound. For the milliseconds the clock is read once a round by the first delayed
//! commit after it, and by further ones only while a round is being written: that is when a stalled
//! disk would show.
//!
//! Invariants
//! 1. `since` is not above the time of the oldest delayed commit that no round has begun to write,
//!    or 0 if none.
//! 2. `writing_since` is the same for the round that is being written, or 0 if none is.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// Times of delayed commits, as [`Clock::now_micros`](crate::clock::Clock::now_micros) has them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Delayed {
    since: AtomicU64,         // set by the first delayed commit, taken by the leader
    writing_since: AtomicU64, // stored by the leader
}

impl Delayed {
    /// Notes that there is a delayed commit; whether it is the first since the last round began.
    #[inline]
    pub(crate) fn note(&self, now_micros: impl FnOnce() -> u64) -> bool {
        self.since.load(Relaxed) == 0
            && self.since.compare_exchange(0, now_micros(), AcqRel, Relaxed).is_ok()
    }

    /// When the first delayed commit came that no round has begun to write; 0 if there is none.
    pub(crate) fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// Whether the round being written holds a delayed commit older than the window: the disk has
    /// stalled.
    #[inline]
    pub(crate) fn is_stalled(&self, window_milliseconds: u64, now: impl FnOnce() -> u64) -> bool {
        let since = self.writing_since.load(Relaxed);
        since != 0 && now().saturating_sub(since) > window_milliseconds.saturating_mul(1000)
    }

    /// For the leader, before it computes the prefix.
    pub(crate) fn begin_round(&self) -> u64 {
        let since = self.since.swap(0, AcqRel);
        self.writing_since.store(since, Release);
        since
    }

    /// For the leader, at the end; `is_more`: some records were not complete. Whether the writer
    /// must come again.
    pub(crate) fn end_round(&self, since: u64, is_more: bool) -> bool {
        self.writing_since.store(0, Release);
        since != 0 && is_more && self.since.compare_exchange(0, since, AcqRel, Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_after_a_round_began_reads_the_clock() {
        let delayed = Delayed::default();
        assert!(delayed.note(|| 5));
        assert!(!delayed.note(|| panic!("the clock was read")));
        assert_eq!(delayed.begin_round(), 5);
        assert!(delayed.note(|| 7));
    }

    #[test]
    fn a_round_longer_than_the_window_is_a_stall() {
        let delayed = Delayed::default();
        assert!(!delayed.is_stalled(1, || panic!("the clock was read")));
        assert!(delayed.note(|| 5));
        let since = delayed.begin_round();
        assert!(!delayed.is_stalled(1, || 1005));
        assert!(delayed.is_stalled(1, || 1006));
        assert!(!delayed.end_round(since, false));
        assert!(!delayed.is_stalled(1, || panic!("the clock was read")));
    }

    #[test]
    fn a_commit_that_the_round_could_not_cover_is_remembered() {
        let delayed = Delayed::default();
        assert!(delayed.note(|| 5));
        let since = delayed.begin_round();
        assert!(delayed.end_round(since, true));
        assert_eq!(delayed.since(), 5);
    }
}
