//! Keys of session-offset: each session ascends in a range of its own.
//!
//! key = slot x 10^10 + n, n from 0. The slot is a leased number, so no two sessions ever share
//! one, also after a restart; within a slot n only rises. When n reaches 10^10 a new slot is
//! leased. Slots end at 922,337,202, the last one whose whole range fits 63 bits.
//!
//! A session that ends may hand its slot back with its next n, and a later session of the same
//! process goes on there: short sessions then do not use up slots. Slots that were handed back are
//! kept in memory only; after a restart new ones are leased, because n was not durable.

use std::ops::Range;

/// Keys of one slot.
pub(super) const SLOT_ROWS: i64 = 10_000_000_000;
/// First slot that does not fit.
pub(super) const SLOTS_END: u64 = i64::MAX as u64 / SLOT_ROWS as u64;

/// A slot and the first n in it that was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSlot {
    /// The leased slot number.
    pub slot: u64,
    /// The next n, 0 to 10^10.
    pub next: u64,
}

/// The keys left in the current slot: `next_key..end_key`; both 0 without a slot.
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

    /// Moves to the first slot of the lease (not empty) and takes its first key.
    pub(super) fn refill(&mut self, range: Range<u64>) -> Result<i64, Box<str>> {
        if range.start < SLOTS_END {
            self.resume(SessionSlot { slot: range.start, next: 0 });
        }
        self.take().ok_or_else(|| {
            format!("all {SLOTS_END} session slots are used; export and reload the table").into()
        })
    }

    pub(super) fn resume(&mut self, slot: SessionSlot) {
        let (rows, next) = (SLOT_ROWS, slot.next.min(SLOT_ROWS.unsigned_abs()).cast_signed());
        let Ok(number) = i64::try_from(slot.slot.min(SLOTS_END)) else { return };
        if slot.slot < SLOTS_END {
            self.next_key = number * rows + next;
            self.end_key = (number + 1) * rows;
        }
    }

    pub(super) fn give_back(&mut self) -> Option<SessionSlot> {
        let (next_key, end_key) = (self.next_key, self.end_key);
        self.next_key = 0;
        self.end_key = 0;
        if next_key == end_key {
            return None;
        }
        let start = end_key - SLOT_ROWS;
        Some(SessionSlot {
            slot: (start / SLOT_ROWS).unsigned_abs(),
            next: (next_key - start).unsigned_abs(),
        })
    }
}
