//! Keys of session-offset: each session ascends in a range of its own.
//!
//! key = range x 10^10 + n, n from 0. A range's number is leased, so no two sessions ever share
//! one, also after a restart; within a range n only rises. When n reaches 10^10 a new range is
//! leased. Ranges end at 922,337,202, the last one all of which fits 63 bits.
//!
//! A session that ends may hand its range back with its next n, and a later session of the same
//! process goes on there: short sessions then do not use up ranges. Ranges that were handed back are
//! kept in memory only; after a restart new ones are leased, because n was not durable.

use std::ops::Range;

/// Keys of one range.
pub(super) const RANGE_KEYS: i64 = 10_000_000_000;
/// First range that does not fit.
pub(super) const RANGES_END: u64 = i64::MAX as u64 / RANGE_KEYS as u64;

/// A range of keys and the first n in it that was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRange {
    /// Its leased number.
    pub number: u64,
    /// The next n, 0 to 10^10.
    pub next: u64,
}

/// The keys left in the current range: `next_key..end_key`; both 0 without a range.
#[derive(Debug)]
pub(super) struct SessionOffset {
    next_key: i64,
    end_key: i64,
}

impl SessionOffset {
    pub(super) fn new() -> SessionOffset {
        SessionOffset { next_key: 0, end_key: 0 }
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<i64> {
        if self.next_key == self.end_key {
            return None;
        }
        let key = self.next_key;
        self.next_key += 1;
        Some(key)
    }

    /// Moves to the first range of the lease (not empty) and takes its first key.
    pub(super) fn refill(&mut self, numbers: Range<u64>) -> Result<i64, Box<str>> {
        if numbers.start < RANGES_END {
            self.resume(SessionRange { number: numbers.start, next: 0 });
        }
        self.take().ok_or_else(|| {
            format!("all {RANGES_END} session ranges are used; export and reload the table").into()
        })
    }

    pub(super) fn resume(&mut self, range: SessionRange) {
        let (keys, next) = (RANGE_KEYS, range.next.min(RANGE_KEYS.unsigned_abs()).cast_signed());
        let Ok(number) = i64::try_from(range.number.min(RANGES_END)) else { return };
        if range.number < RANGES_END {
            self.next_key = number * keys + next;
            self.end_key = (number + 1) * keys;
        }
    }

    pub(super) fn give_back(&mut self) -> Option<SessionRange> {
        let (next_key, end_key) = (self.next_key, self.end_key);
        self.next_key = 0;
        self.end_key = 0;
        if next_key == end_key {
            return None;
        }
        let start = end_key - RANGE_KEYS;
        Some(SessionRange {
            number: (start / RANGE_KEYS).unsigned_abs(),
            next: (next_key - start).unsigned_abs(),
        })
    }
}
