//! Delayed commits: acknowledged before they are durable, within the declared window.
//!
//! Bytes are a hard bound. For the milliseconds the clock is read once a round by the first delayed
//! commit after it, and by further ones only while a round is being written: that is when a stalled
//! disk would show.
//!
//! Invariants
//! 1. `since` is not above the time of the oldest delayed commit that no round has begun to write,
//!    or none if there is none.
//! 2. `writing_since` is when the round began that is being written and takes a delayed commit, or none if none is.

use std::sync::atomic::Ordering::Relaxed;

use crate::shared_time::SharedTime;

/// Times of delayed commits, as [`Clock::now_micros`](crate::clock::Clock::now_micros) has them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Delayed {
    since: SharedTime,         // set by the first delayed commit, taken by the leader
    writing_since: SharedTime, // stored by the leader
}

impl Delayed {
    /// Notes that there is a delayed commit; whether it is the first since the last round began.
    #[inline]
    pub(crate) fn note(&self, now_micros: impl FnOnce() -> u64) -> bool {
        self.since.get(Relaxed).is_none() && self.since.set_first(now_micros())
    }

    /// When the first delayed commit came that no round has begun to write.
    pub(crate) fn since(&self) -> Option<u64> {
        self.since.get(Relaxed)
    }

    /// Whether a round with a delayed commit is being written for longer than the window: the disk has
    /// stalled.
    #[inline]
    pub(crate) fn is_stalled(&self, window_milliseconds: u64, now: impl FnOnce() -> u64) -> bool {
        let window_micros = window_milliseconds.saturating_mul(1000);
        self.writing_since
            .get(Relaxed)
            .is_some_and(|since| now().saturating_sub(since) > window_micros)
    }

    /// For the leader, before it computes the prefix.
    pub(crate) fn begin_round(&self, now_micros: impl FnOnce() -> u64) -> Option<u64> {
        let since = self.since.take();
        self.writing_since.set(since.map(|_| now_micros()));
        since
    }

    /// For the leader, at the end; `is_more`: some records were not complete. Whether the writer
    /// must come again.
    pub(crate) fn end_round(&self, since: Option<u64>, is_more: bool) -> bool {
        self.writing_since.set(None);
        is_more && since.is_some_and(|since| self.since.set_first(since))
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
        assert_eq!(delayed.begin_round(|| 6), Some(5));
        assert!(delayed.note(|| 7));
    }

    #[test]
    fn a_round_longer_than_the_window_is_a_stall() {
        let delayed = Delayed::default();
        assert!(!delayed.is_stalled(1, || panic!("the clock was read")));
        assert!(delayed.note(|| 5));
        let since = delayed.begin_round(|| 500);
        assert!(!delayed.is_stalled(1, || 1500));
        assert!(delayed.is_stalled(1, || 1501));
        assert!(!delayed.end_round(since, false));
        assert!(!delayed.is_stalled(1, || panic!("the clock was read")));
    }

    #[test]
    fn a_commit_that_the_round_could_not_cover_is_remembered() {
        let delayed = Delayed::default();
        assert!(delayed.note(|| 5));
        let since = delayed.begin_round(|| 6);
        assert!(delayed.end_round(since, true));
        assert_eq!(delayed.since(), Some(5));
    }
}
