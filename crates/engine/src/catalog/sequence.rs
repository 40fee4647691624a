//! A durable counter behind the generated keys of a column.
//!
//! Invariants
//! 1. A number is handed out once, also after a crash: only numbers below the durable mark are,
//!    and after a crash counting goes on at the mark.
//! 2. At the end of the 64-bit range there are no more numbers, never a wrap.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onrush_latch::lock_counted;
use onrush_types::SessionSlot;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};
use parking_lot::Mutex;

use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::logging::sequence_record;
use crate::runtime::Appends;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// The next number. Held while the mark is moved.
    next: Mutex<u64>,
    /// Numbers below are durably ours, or will be before they are handed out: raised before the
    /// record that says so is appended, so that a checkpoint above that record has it. Changed
    /// under `next`; read by checkpoints.
    reserved: AtomicU64,
    /// Of a column that an open transaction has made: its marks are told by the transaction's record.
    is_private: AtomicBool,
    /// Slots of session-offset generators whose sessions have ended.
    slots: Mutex<Vec<SessionSlot>>,
}

impl Sequence {
    /// A counter that goes on at `next`: below it anything may have been handed out.
    pub(crate) fn starting_at(next: u64) -> Sequence {
        let (next, reserved) = (Mutex::new(next), AtomicU64::new(next));
        let (is_private, slots) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        Sequence { next, reserved, is_private, slots }
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
        *self.next.lock()
    }

    /// Replay: numbers below `reserved` may have been handed out.
    pub(crate) fn raise(&self, reserved: u64) {
        let mut next = self.next.lock();
        *next = (*next).max(reserved);
        self.reserved.fetch_max(reserved, Ordering::AcqRel);
    }

    /// Takes `count` numbers, fewer or none where the counter ends. `granted` runs before anyone can
    /// take the numbers after them.
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
        let mut next = lock_counted(&self.next, recorder, LatchClass::KeyGenerator);
        let end = next.saturating_add(count);
        if end == *next {
            return Ok(end..end);
        }
        if end > self.reserved() {
            let reserved = end.saturating_add(log.runtime().options.key_reserve);
            self.reserve(log, (table, column), reserved, recorder)?;
        }
        let range = *next..end;
        *next = end;
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
        let mut next = lock_counted(&self.next, recorder, LatchClass::KeyGenerator);
        if least > self.reserved() {
            self.reserve(log, column, least, recorder)?;
        }
        *next = (*next).max(least);
        Ok(())
    }

    /// Makes a higher mark durable; `next` is held.
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

    /// A slot that an ended session left, to go on with.
    pub(crate) fn take_slot(&self) -> Option<SessionSlot> {
        self.slots.lock().pop()
    }

    /// Leaves a slot for a later session of this process.
    pub(crate) fn leave_slot(&self, slot: SessionSlot) {
        self.slots.lock().push(slot);
    }
}
