//! Waiting for durability and for log space, and leading the round that ends the wait.
//!
//! Invariants
//! 1. Whoever leads calls `close`, runs the round, and calls `finish`, whatever the round says.
//! 2. A wait for an LSN returns Ok only when `durable` is there.
//! 3. No timers: the leader gathers those who were just woken by giving them the processor, and
//!    gives up as soon as nobody comes.
//! 4. Polling changes nothing that others see: whoever polls could as well be asleep.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

use onrush_lsn::Lsn;
use onrush_waits::{Counter, Recorder, Spin, Spun, Wait};

use crate::core::Core;
use crate::error::LogError;
use crate::group::{Joined, Woken};
use crate::options::LogWriter;
use crate::pool::Prepared;

/// How often in a row the leader may give the processor away without anybody joining: those who
/// sleep must first be woken; those who poll have all had their turn when it gets it back.
const GATHER_IDLE_YIELDS_MAX: u32 = 8;
const GATHER_IDLE_YIELDS_MAX_POLLING: u32 = 2;
/// A leader that gathered longer than this in vain leaves it for some rounds: others are busy with
/// something else.
const GATHER_MICROS_MAX: u128 = 200;
const GATHER_HOLIDAY_ROUNDS: u64 = 64;
/// A wait that polled in vain stops all polling for so many rounds: the disk is slow just now, or the
/// processors are busy with something else.
const POLLING_HOLIDAY_ROUNDS: u64 = 64;
/// Somebody who is inserting row after row publishes the next one well within this.
const GATHER_SILENCE_MAX: Duration = Duration::from_micros(3);

impl Core {
    /// Returns when `durable >= lsn`; writes if nobody else does.
    pub(crate) fn wait_durable(
        &self,
        lsn: Lsn,
        wait: Wait,
        recorder: &Recorder,
    ) -> Result<(), LogError> {
        if self.durable() >= lsn {
            return Ok(());
        }
        let mut waiting = recorder.wait(wait);
        loop {
            let is_done = || self.durable() >= lsn || self.failure().is_some();
            let poll = |is_changed: &dyn Fn() -> bool| self.poll(recorder, is_changed);
            let over = self.join_round(recorder, is_done, poll);
            if self.durable() >= lsn {
                over.into_iter().for_each(|when| waiting.signalled_at(when));
                return Ok(());
            }
            self.check()?;
            if lsn > self.in_flight.prefix() {
                // A record before ours is still being copied by a thread that does not run.
                yield_for_prefix(recorder);
            }
        }
    }

    /// Leads one round, or waits until somebody else's is over, or until `is_done` when woken.
    /// When it was over, if that was somebody else's doing.
    fn join_round(
        &self,
        recorder: &Recorder,
        is_done: impl Fn() -> bool,
        poll: impl Fn(&dyn Fn() -> bool) -> bool,
    ) -> Option<Instant> {
        match self.groups.join() {
            Joined::Lead => self.lead(true, recorder),
            Joined::Follow(ticket) => match self.groups.wait(ticket, is_done, poll) {
                Woken::Lead => self.lead(true, recorder),
                Woken::Over => {
                    let over = Duration::from_nanos(self.groups.over_nanos(ticket));
                    return Some(self.started + over);
                }
                Woken::Done => {}
            },
        }
        None
    }

    /// One round that begins after this call did.
    pub(crate) fn write_or_wait(&self, recorder: &Recorder) {
        if self.groups.try_lead() {
            self.lead(false, recorder);
        } else {
            self.join_round(recorder, || false, |_| false);
        }
    }

    /// One round if nobody leads, shared with those who are just committing.
    pub(crate) fn write_if_idle(&self, recorder: &Recorder) {
        if self.groups.is_idle() && self.groups.try_lead() {
            self.gather_records();
            self.lead(false, recorder);
        }
    }

    /// Whether waiting commits poll: being woken costs more than the sync where more of them wait
    /// than there are processors.
    fn is_polling(&self) -> bool {
        self.options.commit_polling_us > 0
            && self.groups.expected_members() as usize > self.options.processors
            && self.polling_holiday.load(Relaxed) == 0
    }

    /// Looks for a change, and gives the processor away after each look. False: there was none for
    /// longer than it pays.
    fn poll(&self, recorder: &Recorder, is_changed: &dyn Fn() -> bool) -> bool {
        if !self.is_polling() {
            return false;
        }
        let patience = Duration::from_micros(self.options.commit_polling_us);
        let began = Instant::now();
        let mut spun = Spun { spins: 0, backoffs: 0, sleeps: 0 };
        loop {
            std::thread::yield_now();
            spun.spins += 1;
            spun.backoffs += 1;
            let has_changed = is_changed();
            if has_changed || began.elapsed() > patience {
                spun.sleeps = u64::from(!has_changed);
                recorder.spun(Spin::CommitGroup, spun);
                if !has_changed {
                    self.polling_holiday.store(POLLING_HOLIDAY_ROUNDS, Relaxed);
                }
                return has_changed;
            }
        }
    }

    fn lead(&self, joined: bool, recorder: &Recorder) {
        if joined {
            self.gather();
        }
        let holiday = self.polling_holiday.load(Relaxed);
        if holiday > 0 {
            // Only leaders count it down; one that has just begun is at most a round shorter.
            self.polling_holiday.store(holiday - 1, Relaxed);
        }
        let closed = self.groups.close();
        if let Err(error) = self.writer().round(self, recorder) {
            self.fail(error);
        }
        self.groups.finish(closed, joined, self.now_nanos());
        let woken = self.wakers.wake(self.durable());
        let served = u64::from(closed.members) + woken;
        self.numbers.waiters_served.fetch_add(served, Relaxed);
        recorder.count(Counter::CommitGroups, 1);
    }

    /// Lets those who were woken by the last round come back, so that they share this one.
    fn gather(&self) {
        let expected = self.groups.expected_members();
        let mut members = self.groups.open_members();
        if members >= expected {
            return;
        }
        if self.gather_holiday.load(Relaxed) > 0 {
            self.gather_holiday.fetch_sub(1, Relaxed);
            return;
        }
        let began = Instant::now();
        let idle_yields_max = match self.is_polling() {
            true => GATHER_IDLE_YIELDS_MAX_POLLING,
            false => GATHER_IDLE_YIELDS_MAX,
        };
        let mut idle_yields = 0;
        while members < expected && idle_yields < idle_yields_max {
            std::thread::yield_now();
            let now = self.groups.open_members();
            idle_yields = if now == members { idle_yields + 1 } else { 0 };
            members = now;
            if began.elapsed().as_micros() > GATHER_MICROS_MAX {
                if members < expected {
                    self.gather_holiday.store(GATHER_HOLIDAY_ROUNDS, Relaxed);
                }
                return;
            }
        }
    }

    /// Lets others who also poll for durability publish what they are about to: as much as was
    /// published in and around the last round, or until nothing comes any more.
    fn gather_records(&self) {
        let expected = self.written.load(Relaxed) + self.last_round_bytes.load(Relaxed);
        let began = Instant::now();
        let (mut seen, mut seen_at) = (self.in_flight.tail(), began);
        while seen < expected {
            std::hint::spin_loop();
            let (tail, now) = (self.in_flight.tail(), Instant::now());
            if tail != seen {
                (seen, seen_at) = (tail, now);
            } else if now.duration_since(seen_at) > GATHER_SILENCE_MAX {
                return;
            }
            if now.duration_since(began).as_micros() > GATHER_MICROS_MAX {
                return;
            }
        }
    }

    /// Waits until a permit would get space for `bytes`.
    pub(crate) fn wait_for_space(&self, bytes: usize, recorder: &Recorder) -> Result<(), LogError> {
        if bytes > self.options.record_bytes_max {
            return Err(LogError::RecordTooLarge {
                bytes,
                bytes_max: self.options.record_bytes_max,
            });
        }
        loop {
            self.check()?;
            let seen = self.pool.changes();
            if self.append_space.is_free(bytes as u64, || self.in_flight.tail()) {
                return Ok(());
            }
            if self.is_ring_the_limit() {
                self.wait_for_ring(recorder);
                continue;
            }
            let mut waiting = recorder.wait(Wait::LogSpace);
            match self.prepare_segment(recorder)? {
                Prepared::Made | Prepared::Enough => self.writer().publish_space(self),
                Prepared::AtCapacity if self.options.writer == LogWriter::Callers => {
                    return Err(LogError::CapacityReached);
                }
                Prepared::AtCapacity => waiting.signalled_at(self.pool.wait_for_change(seen)),
            }
        }
    }

    #[inline]
    pub(crate) fn has_space(&self, permit: usize, bytes: usize) -> bool {
        self.append_space.has(permit, bytes as u64, || self.in_flight.tail())
    }

    fn is_ring_the_limit(&self) -> bool {
        let copied = self.written.load(Acquire);
        !self.pool.is_short()
            || self.append_space.limit() >= copied + self.options.ring_bytes as u64
    }

    fn wait_for_ring(&self, recorder: &Recorder) {
        let mut waiting = recorder.wait(Wait::LogBuffer);
        let before = self.append_space.limit();
        let over = self.join_round(recorder, || self.failure().is_some(), |_| false);
        over.into_iter().for_each(|when| waiting.signalled_at(when));
        if self.append_space.limit() == before {
            yield_for_prefix(recorder); // records of others are in flight still
        }
    }
}

/// Gives the processor to whoever has a record in flight.
fn yield_for_prefix(recorder: &Recorder) {
    let _waiting = recorder.wait(Wait::LogCompletion);
    recorder.spun(Spin::CompletedPrefix, Spun { spins: 1, backoffs: 1, sleeps: 0 });
    std::thread::yield_now();
}
