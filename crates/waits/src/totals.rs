//! Sums of recorders, and the difference of two sums: what happened in between.
//!
//! A total is plain data. Its lists are in the order of the catalog and always complete, so two of
//! them can be added or subtracted entry by entry.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::catalog::{Counter, LatchClass, Phase, PhaseClass, Spin, Wait};
use crate::numbers::{BUCKETS, Numbers, SpinNumbers, WaitNumbers, bucket_end};
use crate::recorder::nanos_of;
use crate::registry::RecorderKind;

/// One wait: how often and how long. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitTotal {
    /// Which.
    pub wait: Wait,
    /// Waits that are over.
    pub count: u64,
    /// Time from beginning to end.
    pub nanos: u64,
    /// The part of it after what was waited for was there (runnable until running).
    pub signal_nanos: u64,
    /// The longest. In a difference: the longest since the earlier sum, rounded up to the end of
    /// its bucket if a longer one came before.
    pub nanos_max: u64,
    /// Entry n counts waits of 2^n up to 2^(n+1) - 1 ns; the last one has no upper end.
    pub histogram: Vec<u64>,
}

impl WaitTotal {
    fn new(wait: Wait) -> Self {
        let histogram = vec![0; BUCKETS];
        Self { wait, count: 0, nanos: 0, signal_nanos: 0, nanos_max: 0, histogram }
    }

    /// What one recorder has written so far.
    pub(crate) fn of(wait: Wait, numbers: &Numbers) -> Self {
        let mut total = Self::new(wait);
        total.add_numbers(&numbers.waits[wait.index()]);
        total
    }

    fn add_numbers(&mut self, numbers: &WaitNumbers) {
        self.count += numbers.count.get();
        self.nanos = self.nanos.saturating_add(numbers.nanos.get());
        self.signal_nanos = self.signal_nanos.saturating_add(numbers.signal_nanos.get());
        self.nanos_max = self.nanos_max.max(numbers.nanos_max.get());
        for (mine, theirs) in self.histogram.iter_mut().zip(&numbers.histogram) {
            *mine += theirs.get();
        }
    }

    /// Time until what was waited for was there, in nanoseconds.
    pub fn resource_nanos(&self) -> u64 {
        self.nanos.saturating_sub(self.signal_nanos)
    }

    /// A time that `percent` of the waits did not exceed, in nanoseconds, rounded up to the end of
    /// its bucket; none if there was none.
    pub fn percentile_nanos(&self, percent: f64) -> Option<u64> {
        let nanos = percentile(&self.histogram, self.count, percent);
        nanos.map(|nanos| nanos.min(self.nanos_max))
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.signal_nanos = self.signal_nanos.saturating_add(other.signal_nanos);
        self.nanos_max = self.nanos_max.max(other.nanos_max);
        for (mine, theirs) in self.histogram.iter_mut().zip(&other.histogram) {
            *mine += theirs;
        }
    }

    fn subtract(&mut self, earlier: &Self) {
        self.count = self.count.saturating_sub(earlier.count);
        self.nanos = self.nanos.saturating_sub(earlier.nanos);
        self.signal_nanos = self.signal_nanos.saturating_sub(earlier.signal_nanos);
        for (mine, theirs) in self.histogram.iter_mut().zip(&earlier.histogram) {
            *mine = mine.saturating_sub(*theirs);
        }
        if self.nanos_max == earlier.nanos_max {
            let longest = self.histogram.iter().rposition(|count| *count > 0);
            self.nanos_max = longest.map_or(0, |bucket| bucket_end(bucket).min(self.nanos_max));
        }
    }
}

/// The end of the bucket in which the entry of this rank lies, if there is one.
fn percentile(histogram: &[u64], count: u64, percent: f64) -> Option<u64> {
    let rank = (percent.clamp(0.0, 100.0) / 100.0 * count as f64).ceil().max(1.0);
    let mut seen = 0;
    for (bucket, count) in histogram.iter().enumerate() {
        seen += count;
        if *count > 0 && seen as f64 >= rank {
            return Some(bucket_end(bucket));
        }
    }
    None
}

/// Collisions at one word, or on one class of latch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collisions {
    /// Times that somebody else was there.
    pub collisions: u64,
    /// Looks in vain.
    pub spins: u64,
    /// Times that a thread gave its processor away.
    pub backoffs: u64,
    /// Of these, times that it slept.
    pub sleeps: u64,
}

impl Collisions {
    fn of(numbers: &SpinNumbers) -> Self {
        Self {
            collisions: numbers.collisions.get(),
            spins: numbers.spins.get(),
            backoffs: numbers.backoffs.get(),
            sleeps: numbers.sleeps.get(),
        }
    }

    fn each(&mut self, other: &Self, change: impl Fn(u64, u64) -> u64) {
        self.collisions = change(self.collisions, other.collisions);
        self.spins = change(self.spins, other.spins);
        self.backoffs = change(self.backoffs, other.backoffs);
        self.sleeps = change(self.sleeps, other.sleeps);
    }

    /// Looks in vain for each collision; none without any.
    pub fn spins_per_collision(&self) -> Option<f64> {
        (self.collisions > 0).then(|| self.spins as f64 / self.collisions as f64)
    }
}

/// One class of latch. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatchTotal {
    /// Which.
    pub latch: LatchClass,
    /// Times that one was asked for. Of leaves: one for each call and each split.
    pub requests: u64,
    /// Times that it was not free at once.
    pub spun: Collisions,
    /// Time until the latch was had.
    pub nanos: u64,
    /// The longest since the recorders began; a difference keeps the later one.
    pub nanos_max: u64,
}

/// One word where threads meet without a latch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpinTotal {
    /// Which.
    pub spin: Spin,
    /// What was done there.
    pub spun: Collisions,
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterTotal {
    /// Which.
    pub counter: Counter,
    /// Its value.
    pub value: u64,
}

/// Time of one phase; those of sessions are estimated from the calls that were timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTotal {
    /// Which.
    pub phase: Phase,
    /// How often it was gone through.
    pub count: u64,
    /// Its time without waits, in nanoseconds.
    pub nanos: u64,
}

/// The sum of any number of recorders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// How long the recorders existed, one beside the other: what the waits and phases of sessions
    /// add up to.
    pub recorded_nanos: u64,
    /// Calls of sessions begun, timed or not.
    pub operations: u64,
    /// Every wait.
    pub waits: Vec<WaitTotal>,
    /// Every latch class.
    pub latches: Vec<LatchTotal>,
    /// Every spin.
    pub spins: Vec<SpinTotal>,
    /// Every counter.
    pub counters: Vec<CounterTotal>,
    /// Every phase.
    pub phases: Vec<PhaseTotal>,
}

impl Default for Totals {
    fn default() -> Self {
        let spun = Collisions::default();
        let latch = |latch| LatchTotal { latch, requests: 0, spun, nanos: 0, nanos_max: 0 };
        let counter = |counter| CounterTotal { counter, value: 0 };
        let phase = |phase| PhaseTotal { phase, count: 0, nanos: 0 };
        Self {
            recorded_nanos: 0,
            operations: 0,
            waits: Wait::ALL.iter().copied().map(WaitTotal::new).collect(),
            latches: LatchClass::ALL.iter().copied().map(latch).collect(),
            spins: Spin::ALL.iter().map(|spin| SpinTotal { spin: *spin, spun }).collect(),
            counters: Counter::ALL.iter().copied().map(counter).collect(),
            phases: Phase::ALL.iter().copied().map(phase).collect(),
        }
    }
}

impl Totals {
    /// One wait.
    pub fn wait(&self, wait: Wait) -> &WaitTotal {
        &self.waits[wait.index()]
    }

    /// One latch class.
    pub fn latch(&self, class: LatchClass) -> &LatchTotal {
        &self.latches[class.index()]
    }

    /// One spin.
    pub fn spin(&self, spin: Spin) -> &SpinTotal {
        &self.spins[spin.index()]
    }

    /// The value of one counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter.index()].value
    }

    /// One phase.
    pub fn phase(&self, phase: Phase) -> &PhaseTotal {
        &self.phases[phase.index()]
    }

    /// Adds another sum to this one.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
        for (mine, theirs) in self.waits.iter_mut().zip(&other.waits) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.latches.iter_mut().zip(&other.latches) {
            mine.nanos_max = mine.nanos_max.max(theirs.nanos_max);
        }
    }

    /// What happened since an earlier sum of the same registry.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        difference.combine(earlier, u64::saturating_sub);
        for (mine, theirs) in difference.waits.iter_mut().zip(&earlier.waits) {
            mine.subtract(theirs);
        }
        for latch in &mut difference.latches {
            // The longest of all may be an earlier one; none of these was longer than all of them.
            latch.nanos_max = latch.nanos_max.min(latch.nanos);
        }
        difference
    }

    /// Changes everything but the waits and the longest times.
    fn combine(&mut self, other: &Self, change: impl Fn(u64, u64) -> u64 + Copy) {
        self.recorded_nanos = change(self.recorded_nanos, other.recorded_nanos);
        self.operations = change(self.operations, other.operations);
        for (mine, theirs) in self.latches.iter_mut().zip(&other.latches) {
            mine.requests = change(mine.requests, theirs.requests);
            mine.spun.each(&theirs.spun, change);
            mine.nanos = change(mine.nanos, theirs.nanos);
        }
        for (mine, theirs) in self.spins.iter_mut().zip(&other.spins) {
            mine.spun.each(&theirs.spun, change);
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            mine.value = change(mine.value, theirs.value);
        }
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.count = change(mine.count, theirs.count);
            mine.nanos = change(mine.nanos, theirs.nanos);
        }
    }

    /// Adds what one recorder has written so far.
    pub(crate) fn add_numbers(&mut self, numbers: &Numbers, kind: RecorderKind, life: Duration) {
        let lifetime_nanos = nanos_of(life);
        self.recorded_nanos = self.recorded_nanos.saturating_add(lifetime_nanos);
        self.operations += numbers.sampling.calls.get();
        for (total, number) in self.waits.iter_mut().zip(&numbers.waits) {
            total.add_numbers(number);
        }
        for (total, number) in self.latches.iter_mut().zip(&numbers.latches) {
            total.requests += number.requests.get();
            total.spun.each(&Collisions::of(&number.spin), u64::saturating_add);
            total.nanos = total.nanos.saturating_add(number.nanos.get());
            total.nanos_max = total.nanos_max.max(number.nanos_max.get());
        }
        for (total, number) in self.spins.iter_mut().zip(&numbers.spins) {
            total.spun.each(&Collisions::of(number), u64::saturating_add);
        }
        for (total, number) in self.counters.iter_mut().zip(&numbers.counters) {
            total.value += number.get();
        }
        let commits = Counter::COMMIT_KINDS.iter().map(|kind| numbers.counters[kind.index()].get());
        self.counters[Counter::Commits.index()].value += commits.sum::<u64>();
        let session = kind == RecorderKind::Session;
        for (total, number) in self.phases.iter_mut().zip(&numbers.phases) {
            total.count += number.count.get();
            if !session || total.phase.class() != PhaseClass::Session {
                total.nanos = total.nanos.saturating_add(number.nanos.get());
            }
        }
        self.add_leaf_requests(numbers);
        if session {
            self.add_session_phases(numbers, lifetime_nanos);
        }
    }

    /// Counting them would cost the insert path more than they tell: every call latches one leaf,
    /// every split one more.
    fn add_leaf_requests(&mut self, numbers: &Numbers) {
        let splits = [
            Counter::SplitsRightEdge,
            Counter::SplitsLocalRun,
            Counter::SplitsMiddle,
            Counter::SplitsBlockGrant,
        ];
        let splits: u64 = splits.iter().map(|split| numbers.counters[split.index()].get()).sum();
        let requests = numbers.sampling.calls.get() + splits;
        self.latches[LatchClass::Leaf.index()].requests += requests;
    }

    /// What is neither a phase nor a wait is the client's time between calls. The time of calls is
    /// estimated from some that are timed as a whole, its parts from others that are timed by
    /// phase. Where the estimate says more than there was, it is made to fit.
    fn add_session_phases(&mut self, numbers: &Numbers, lifetime_nanos: u64) {
        let of_sessions = |phase: &&Phase| phase.class() == PhaseClass::Session;
        let nanos = |phase: &Phase| numbers.phases[phase.index()].nanos.get();
        let parts: u64 = Phase::ALL.iter().filter(of_sessions).map(nanos).sum();
        let there_was = lifetime_nanos.saturating_sub(numbers.waited_nanos.get());
        let calls = numbers.call_nanos.get().min(there_was);
        let scale = calls as f64 / parts.max(1) as f64;
        for phase in Phase::ALL.iter().filter(of_sessions) {
            let total = &mut self.phases[phase.index()];
            total.nanos = total.nanos.saturating_add((nanos(phase) as f64 * scale) as u64);
        }
        let idle = &mut self.phases[Phase::Idle.index()];
        idle.count += numbers.sampling.calls.get();
        idle.nanos = idle.nanos.saturating_add(there_was - calls);
    }
}
