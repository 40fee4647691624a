//! A durable counter behind the generated keys of a column.
//!
//! Invariants
//! 1. A number is handed out once, also after a crash: only numbers below the durable mark are,
//!    and after a crash counting goes on at the mark.
//! 2. Numbers that an ended session did not use are handed out again, lowest first, before the counter goes on:
//!    each is in one session's range or in the list, never in both. The list is not kept across a restart.
//! 3. At the end of the 64-bit range there are no more numbers, never a wrap.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use onrush_latch::lock_counted;
use onrush_types::{SessionRange, Unused};
use onrush_waits::{Counter, LatchClass, Recorder, Wait};
use parking_lot::Mutex;

use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::logging::sequence_record;
use crate::runtime::Appends;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Held while the mark is moved.
    numbers: CachePadded<Mutex<Numbers>>,
    /// Numbers below are durably ours, or will be before they are handed out: raised before the
    /// record that says so is appended, so that a checkpoint above that record has it. Changed
    /// under `numbers`; read by checkpoints.
    reserved: AtomicU64,
    /// Of a column that an open transaction has made: its marks are told by the transaction's record.
    is_private: AtomicBool,
    /// How often it was set anew: numbers that were leased before are not used any more.
    restarts: AtomicU64,
    /// Ranges of session-offset generators whose sessions have ended.
    session_ranges: Mutex<Vec<SessionRange>>,
}

/// What can be handed out without moving the mark.
#[derive(Debug, Default)]
struct Numbers {
    /// Nothing from here on was handed out.
    next: u64,
    /// No unused number below is handed out again.
    least: u64,
    /// What ended sessions did not use: ranges that do not overlap, by their first number, all below `next`.
    unused: BTreeMap<u64, u64>,
}

impl Numbers {
    /// The lowest unused numbers, at most `count`.
    fn take_unused(&mut self, count: u64) -> Option<Range<u64>> {
        let (start, end) = self.unused.pop_first()?;
        let taken = start..end.min(start.saturating_add(count));
        if taken.end < end {
            self.unused.insert(taken.end, end);
        }
        Some(taken)
    }

    /// Keeps numbers for the next who asks.
    fn take_back(&mut self, unused: Range<u64>) {
        let start = unused.start.max(self.least);
        if start < unused.end {
            self.unused.insert(start, unused.end);
        }
    }

    /// Hands out no number below `least` from now on.
    fn skip_to(&mut self, least: u64) {
        self.next = self.next.max(least);
        self.least = self.least.max(least);
        for (start, end) in std::mem::take(&mut self.unused) {
            self.take_back(start..end);
        }
    }
}

impl Sequence {
    /// A counter that goes on at `next`: below it anything may have been handed out.
    pub(crate) fn starting_at(next: u64) -> Sequence {
        let reserved = AtomicU64::new(next);
        let numbers = CachePadded::new(Mutex::new(Numbers { next, ..Numbers::default() }));
        let (is_private, session_ranges) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        Sequence { numbers, reserved, is_private, restarts: AtomicU64::new(0), session_ranges }
    }

    /// The counter of a column that an open transaction has made, until [`publish`](Self::publish).
    pub(crate) fn private() -> Sequence {
        Sequence { is_private: AtomicBool::new(true), ..Sequence::starting_at(0) }
    }

    /// Everybody knows the column from now on.
    pub(crate) fn publish(&self) {
        self.is_private.store(false, Ordering::Release);
    }

    pub(crate) fn is_private(&self) -> bool {
        self.is_private.load(Ordering::Acquire)
    }

    /// The mark that a checkpoint remembers.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire)
    }

    /// Numbers below were handed out, to who draws keys or in advance to a session.
    pub(crate) fn handed_out(&self) -> u64 {
        self.numbers.lock().next
    }

    /// Replay: numbers below `reserved` may have been handed out.
    pub(crate) fn raise(&self, reserved: u64) {
        let mut numbers = self.numbers.lock();
        numbers.next = numbers.next.max(reserved);
        self.reserved.fetch_max(reserved, Ordering::AcqRel);
    }

    /// Takes `count` numbers, fewer where an ended session left fewer, fewer or none where the counter ends.
    /// `granted` runs for new ones, before anyone can take the numbers after them.
    ///
    /// # Errors
    /// A log that cannot make the new mark durable.
    pub(crate) fn lease(
        &self,
        log: &impl Appends,
        (table, column): (u32, usize),
        count: u64,
        recorder: &Recorder,
        granted: impl FnOnce(&Range<u64>) -> Result<()>,
    ) -> Result<Range<u64>> {
        let mut numbers = lock_counted(&self.numbers, recorder, LatchClass::KeyGenerator);
        if let Some(unused) = numbers.take_unused(count) {
            return Ok(unused);
        }
        let end = numbers.next.saturating_add(count);
        if end == numbers.next {
            return Ok(end..end);
        }
        if end > self.reserved() {
            let reserved = end.saturating_add(log.runtime().options.key_reserve);
            self.reserve(log, (table, column), reserved, recorder)?;
        }
        let range = numbers.next..end;
        numbers.next = end;
        granted(&range)?;
        Ok(range)
    }

    /// Never hands out a number below `least` from now on; durable when this returns.
    ///
    /// # Errors
    /// A log that cannot make the new mark durable.
    pub(crate) fn skip_to(
        &self,
        log: &impl Appends,
        column: (u32, usize),
        least: u64,
        recorder: &Recorder,
    ) -> Result<()> {
        let mut numbers = lock_counted(&self.numbers, recorder, LatchClass::KeyGenerator);
        if least > self.reserved() {
            self.reserve(log, column, least, recorder)?;
        }
        numbers.skip_to(least);
        Ok(())
    }

    /// How often it was set anew.
    #[inline]
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Acquire)
    }

    /// Goes on at this number, for everyone and at once, whatever was handed out. Durable when this returns, but for
    /// a number below the mark: after a crash it goes on at the mark then.
    ///
    /// # Errors
    /// A log that cannot make the new mark durable.
    pub(crate) fn restart_at(
        &self,
        log: &impl Appends,
        column: (u32, usize),
        next: u64,
        recorder: &Recorder,
    ) -> Result<()> {
        let mut numbers = lock_counted(&self.numbers, recorder, LatchClass::KeyGenerator);
        if next > self.reserved() {
            self.reserve(log, column, next, recorder)?;
        }
        *numbers = Numbers { next, least: next, unused: BTreeMap::new() };
        self.restarts.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Goes on where another counter stands, whatever was handed out. That one's mark is durable, or below this one's.
    pub(crate) fn go_on_as(&self, other: &Sequence) {
        let next = other.handed_out();
        let mut numbers = self.numbers.lock();
        *numbers = Numbers { next, least: next, unused: BTreeMap::new() };
        self.reserved.fetch_max(other.reserved(), Ordering::AcqRel);
        self.restarts.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes a higher mark durable; `numbers` is held.
    fn reserve(
        &self,
        log: &impl Appends,
        (table, column): (u32, usize),
        reserved: u64,
        recorder: &Recorder,
    ) -> Result<()> {
        if self.is_private() {
            self.reserved.store(reserved, Ordering::Release);
            return Ok(());
        }
        let _wait = recorder.wait(Wait::KeyLease);
        let record = sequence_record(table, column, reserved);
        let before = self.reserved.swap(reserved, Ordering::AcqRel);
        let durable = log.append(&record, recorder).and_then(|written| {
            if planted(Fault::CounterNotDurable) {
                return Ok(());
            }
            Ok(log.runtime().log.wait_durable(written.end, recorder)?)
        });
        if let Err(error) = durable {
            self.reserved.store(before, Ordering::Release);
            return Err(error);
        }
        recorder.count(Counter::KeyLeases, 1);
        Ok(())
    }

    /// A range that an ended session left, to go on with.
    pub(crate) fn take_session_range(&self) -> Option<SessionRange> {
        self.session_ranges.lock().pop()
    }

    /// Keeps what a session did not use for a later one of this process: numbers, where the session knows how often
    /// the counter had been set anew when they were leased, only if it has not been since.
    pub(crate) fn take_back(&self, unused: Unused, restarts: Option<u64>) {
        match unused {
            Unused::Range(range) => self.session_ranges.lock().push(range),
            Unused::Numbers(range) => {
                let mut numbers = self.numbers.lock();
                if restarts.is_none_or(|restarts| restarts == self.restarts()) {
                    numbers.take_back(range);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_unused(ranges: &[Range<u64>]) -> Numbers {
        let mut numbers = Numbers { next: 1000, ..Numbers::default() };
        ranges.iter().for_each(|range| numbers.take_back(range.clone()));
        numbers
    }

    fn all_unused(mut numbers: Numbers) -> Vec<Range<u64>> {
        std::iter::from_fn(|| numbers.take_unused(4)).collect()
    }

    #[test]
    fn unused_numbers_come_lowest_first_and_once() {
        assert_eq!(all_unused(with_unused(&[40..50, 10..13])), [10..13, 40..44, 44..48, 48..50]);
    }

    #[test]
    fn unused_numbers_below_a_new_start_are_never_handed_out() {
        let mut numbers = with_unused(&[1..5, 10..20, 30..32]);
        numbers.skip_to(18);
        numbers.take_back(6..9);
        numbers.take_back(21..23);
        assert_eq!(all_unused(numbers), [18..20, 21..23, 30..32]);
    }
}
