//! Which calls of a session are timed, and what the time between them says.
//!
//! A call that is timed stands for all calls since the one before. How many that are is drawn anew
//! each time, so that no rhythm of the caller is hit again and again, and follows the calls' own
//! time: about one in [`TIMED_EVERY_NANOS`] of work, and every call of a session whose calls are
//! longer than that.
//!
//! Reading the clock at every mark makes a short call longer. So half of the timed calls are timed
//! as a whole only, and say how long calls are; the other half say how that is divided.
//!
//! A thread that loses its processor in the middle of a timed call would make the call stand for
//! hours. Such a call is left out and the next one stands for it too. The lost time itself shows
//! between two timed calls, which then lie further apart than their calls explain. If the
//! scheduler confirms that the thread was ready to run, it is the wait CPU_QUEUE; else the client
//! did something else meanwhile.
//!
//! What is neither a phase nor a wait is the client's time between calls.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::Instant;

use crate::catalog::{Phase, Wait};
use crate::numbers::{Number, Numbers};
use crate::scheduler;

/// One call is timed in so much time of calls: timing one takes half a microsecond.
const TIMED_EVERY_NANOS: u64 = 128_000;
/// But never fewer than one in about twice so many.
pub const SAMPLE_INTERVAL_MAX: u64 = 1024;
/// A gap is not looked into below this: threads lose their processor for longer.
const GAP_NANOS: u64 = 200_000;
/// Nor unless it is so many times what was expected.
const GAP_FACTOR: u64 = 4;
/// A call is left out if it took so many times the usual, and this longer.
const OUTLIER_FACTOR: u64 = 16;
const OUTLIER_NANOS: u64 = 50_000;
/// Means move by one part in so many.
const MEAN_PART: u64 = 8;

static CLOCK_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What a mark itself takes: too much of the time of a call to be left in it.
static MARK_NANOS: LazyLock<u64> = LazyLock::new(mark_nanos);

fn mark_nanos() -> u64 {
    let sampling = Sampling::new(true, 1);
    let (mark, mark_waited) = (Number::default(), Number::default());
    let once = || {
        // As `mark`, on memory of its own.
        let now = now_nanos();
        let nanos = now.saturating_sub(mark.get()).saturating_sub(mark_waited.get());
        mark.set(now);
        mark_waited.set(0);
        let time = &sampling.phases[0];
        time.set(time.get().max(1) + std::hint::black_box(nanos));
        nanos
    };
    once();
    (0..100).map(|_| once()).min().unwrap_or(0)
}

/// Nanoseconds on a clock that all recorders share.
pub(crate) fn now_nanos() -> u64 {
    u64::try_from(CLOCK_START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The state of sampling, of one recorder. Everything here is written by its session alone.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Calls begun.
    pub(crate) calls: Number,
    /// The number of the call that is timed next, or is being timed.
    next: Number,
    /// 1 while the phases of a call are timed.
    timing: Number,
    /// 0: no call is being timed; else how many are, one inside the other.
    depth: Number,
    /// How many calls there are from one timed call to the next.
    interval: Number,
    /// How many calls the next one timed as a whole stands for, and the next one timed by phase.
    whole_weight: Number,
    phases_weight: Number,
    /// The last mark, and what had been waited until then.
    mark: Number,
    mark_waited: Number,
    /// The beginning of the last timed call, and what had been waited until then.
    point: Number,
    point_waited: Number,
    /// Usual time of a call, waits left out; and from one call to the next.
    call_mean: Number,
    cycle_mean: Number,
    random: Number,
    /// Times of the call that is being timed, each one more than it is; 0 if not gone through.
    phases: [Number; Phase::COUNT],
}

impl Sampling {
    pub(crate) fn new(on: bool, seed: u64) -> Sampling {
        let number = |value| {
            let number = Number::default();
            number.set(value);
            number
        };
        Sampling {
            calls: number(0),
            next: number(if on { 1 } else { u64::MAX }),
            timing: number(0),
            depth: number(0),
            interval: number(1),
            whole_weight: number(0),
            phases_weight: number(0),
            mark: number(0),
            mark_waited: number(0),
            point: number(0),
            point_waited: number(0),
            call_mean: number(0),
            cycle_mean: number(0),
            random: number(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            phases: std::array::from_fn(|_| number(0)),
        }
    }

    #[inline]
    pub(crate) fn begin_call(&self, numbers: &Numbers) {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        if calls >= self.next.get() {
            self.begin_timed(numbers);
        }
    }

    #[inline]
    pub(crate) fn is_timing(&self) -> bool {
        self.timing.get() != 0
    }

    #[inline]
    pub(crate) fn is_call_timed(&self) -> bool {
        self.calls.get() >= self.next.get()
    }

    /// How many calls the one whose phases are being timed stands for.
    pub(crate) fn weight(&self) -> u64 {
        self.phases_weight.get()
    }

    #[cold]
    fn begin_timed(&self, numbers: &Numbers) {
        let around = self.depth.get();
        self.depth.set(around + 1);
        if around > 0 {
            return;
        }
        let now = now_nanos();
        let interval = self.interval.get();
        self.whole_weight.add(interval);
        self.phases_weight.add(interval);
        if interval > 1 {
            let waited = numbers.waited_nanos.get().wrapping_sub(self.point_waited.get());
            let rest = now.saturating_sub(self.point.get()).saturating_sub(waited);
            self.explain(numbers, rest, interval);
        }
        let waited = numbers.waited_nanos.get();
        self.point.set(now);
        self.point_waited.set(waited);
        self.mark_waited.set(waited);
        let by_phase = interval == 1 || self.random.get() & 1 == 0;
        self.timing.set(u64::from(by_phase));
        self.mark.set(now_nanos());
    }

    /// Gives a gap between timed calls that is longer than usual calls explain a name.
    fn explain(&self, numbers: &Numbers, rest: u64, calls: u64) {
        let mean = self.cycle_mean.get();
        let expected = mean.saturating_mul(calls);
        let usual_max = expected.saturating_mul(GAP_FACTOR);
        if mean > 0 && rest > usual_max.saturating_add(GAP_NANOS) {
            let queued = scheduler::queued_nanos_since_last().min(rest - expected);
            if queued > 0 {
                numbers.waited(Wait::CpuQueue, queued, queued);
            }
        }
        let counted = if mean > 0 { rest.min(usual_max) } else { rest };
        move_mean(&self.cycle_mean, counted / calls);
    }

    #[cold]
    pub(crate) fn mark(&self, numbers: &Numbers, phase: Phase) {
        let nanos = self.since_mark(numbers);
        let time = &self.phases[phase.index()];
        time.set(time.get().max(1) + nanos);
    }

    /// Time since the last mark, its waits and the mark itself left out.
    fn since_mark(&self, numbers: &Numbers) -> u64 {
        let now = now_nanos();
        let waited = numbers.waited_nanos.get();
        let since = now.saturating_sub(self.mark.get());
        let waited_since = waited.wrapping_sub(self.mark_waited.get());
        self.mark.set(now);
        self.mark_waited.set(waited);
        since.saturating_sub(waited_since).saturating_sub(*MARK_NANOS)
    }

    #[cold]
    pub(crate) fn end_timed(&self, numbers: &Numbers, last: Phase) {
        let around = self.depth.get().saturating_sub(1);
        self.depth.set(around);
        if around > 0 {
            return;
        }
        let by_phase = self.is_timing();
        self.mark(numbers, last);
        self.timing.set(0);
        let total = self.phases.iter().map(|time| time.get().saturating_sub(1)).sum::<u64>();
        let usual_max =
            self.call_mean.get().saturating_mul(OUTLIER_FACTOR).saturating_add(OUTLIER_NANOS);
        let exact = self.interval.get() == 1;
        if exact || total <= usual_max {
            if exact || !by_phase {
                let weight = self.whole_weight.get();
                numbers.call_nanos.add(total.saturating_mul(weight));
                self.whole_weight.set(0);
            }
            if by_phase {
                self.add_phases(numbers);
            }
        }
        self.phases.iter().for_each(|time| time.set(0));
        if exact || !by_phase || self.call_mean.get() == 0 {
            move_mean(&self.call_mean, total.min(usual_max));
        }
        let interval = self.draw();
        self.interval.set(interval);
        self.next.set(self.calls.get().wrapping_add(interval));
    }

    fn add_phases(&self, numbers: &Numbers) {
        let weight = self.phases_weight.get();
        for (time, number) in self.phases.iter().zip(&numbers.phases) {
            let Some(nanos) = time.get().checked_sub(1) else { continue };
            number.count.add(weight);
            number.nanos.add(nanos.saturating_mul(weight));
        }
        self.phases_weight.set(0);
    }

    /// How many calls the next timed one stands for: as likely one number as another from 1 up to
    /// what has the right mean.
    fn draw(&self) -> u64 {
        let mean = TIMED_EVERY_NANOS / self.call_mean.get().max(1);
        let mean = mean.clamp(1, SAMPLE_INTERVAL_MAX);
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        1 + (random >> 16) % (2 * mean - 1)
    }
}

fn move_mean(mean: &Number, value: u64) {
    let before = mean.get();
    let part = (value / MEAN_PART).saturating_sub(before / MEAN_PART);
    let less = (before / MEAN_PART).saturating_sub(value / MEAN_PART);
    mean.set(if before == 0 { value } else { before + part - less });
}

thread_local! {
    /// Time of all waits on this thread that are over, those inside others counted once.
    static WAITED_ON_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Time of the waits on this thread that are over.
pub(crate) fn waited_on_thread() -> u64 {
    WAITED_ON_THREAD.get()
}

/// A wait is over: the waits inside it are part of it.
pub(crate) fn set_waited_on_thread(nanos: u64) {
    WAITED_ON_THREAD.set(nanos);
}
