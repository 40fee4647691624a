//! Sums of recorders, and the difference of two sums: what happened in between.
//!
//! A total is plain data. Its lists are in the order of the catalog and always complete, so two of
//! them can be added or subtracted entry by entry.

use std::time::Duration;

use serde::Serialize;

use crate::catalog::{Counter, LatchClass, Phase, Wait};
use crate::recorder::{BUCKETS, Numbers};

/// One wait: how often and how long. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

    /// Time until what was waited for was there, in nanoseconds.
    pub fn resource_nanos(&self) -> u64 {
        self.nanos.saturating_sub(self.signal_nanos)
    }

    /// A time that `percent` of the waits did not exceed, in nanoseconds, rounded up to the end of
    /// its bucket; 0 if there was none.
    pub fn percentile_nanos(&self, percent: f64) -> u64 {
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in self.histogram.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= rank {
                return bucket_end(bucket).min(self.nanos_max);
            }
        }
        0
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

/// The longest time that a bucket counts.
fn bucket_end(bucket: usize) -> u64 {
    if bucket + 1 >= BUCKETS { u64::MAX } else { (2 << bucket) - 1 }
}

/// Collisions on one class of latch. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LatchTotal {
    /// Which.
    pub latch: LatchClass,
    /// Times that a latch was not free at once.
    pub collisions: u64,
    /// Tries in vain.
    pub spins: u64,
    /// Times that a thread slept until the next try.
    pub sleeps: u64,
    /// Time until the latch was had.
    pub nanos: u64,
    /// The longest since the recorders began; a difference keeps the later one.
    pub nanos_max: u64,
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CounterTotal {
    /// Which.
    pub counter: Counter,
    /// Its value.
    pub value: u64,
}

/// Time of one phase, estimated from a sample of the operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseTotal {
    /// Which.
    pub phase: Phase,
    /// How often it was gone through.
    pub count: u64,
    /// Its time, in nanoseconds.
    pub nanos: u64,
}

/// The sum of any number of recorders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// How long the recorders existed, one beside the other: what waits and phases should add up
    /// to.
    pub recorded_nanos: u64,
    /// Operations begun, sampled or not.
    pub operations: u64,
    /// Every wait.
    pub waits: Vec<WaitTotal>,
    /// Every latch class.
    pub latches: Vec<LatchTotal>,
    /// Every counter.
    pub counters: Vec<CounterTotal>,
    /// Every phase.
    pub phases: Vec<PhaseTotal>,
}

impl Default for Totals {
    fn default() -> Self {
        let latch = |latch| LatchTotal {
            latch,
            collisions: 0,
            spins: 0,
            sleeps: 0,
            nanos: 0,
            nanos_max: 0,
        };
        let counter = |counter| CounterTotal { counter, value: 0 };
        let phase = |phase| PhaseTotal { phase, count: 0, nanos: 0 };
        Self {
            recorded_nanos: 0,
            operations: 0,
            waits: Wait::ALL.iter().copied().map(WaitTotal::new).collect(),
            latches: LatchClass::ALL.iter().copied().map(latch).collect(),
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
        self.recorded_nanos = self.recorded_nanos.saturating_add(other.recorded_nanos);
        self.operations += other.operations;
        for (mine, theirs) in self.waits.iter_mut().zip(&other.waits) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.latches.iter_mut().zip(&other.latches) {
            mine.collisions += theirs.collisions;
            mine.spins += theirs.spins;
            mine.sleeps += theirs.sleeps;
            mine.nanos = mine.nanos.saturating_add(theirs.nanos);
            mine.nanos_max = mine.nanos_max.max(theirs.nanos_max);
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            mine.value += theirs.value;
        }
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.count += theirs.count;
            mine.nanos = mine.nanos.saturating_add(theirs.nanos);
        }
    }

    /// What happened since an earlier sum of the same registry.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        difference.recorded_nanos = self.recorded_nanos.saturating_sub(earlier.recorded_nanos);
        difference.operations = self.operations.saturating_sub(earlier.operations);
        for (mine, theirs) in difference.waits.iter_mut().zip(&earlier.waits) {
            mine.subtract(theirs);
        }
        for (mine, theirs) in difference.latches.iter_mut().zip(&earlier.latches) {
            mine.collisions = mine.collisions.saturating_sub(theirs.collisions);
            mine.spins = mine.spins.saturating_sub(theirs.spins);
            mine.sleeps = mine.sleeps.saturating_sub(theirs.sleeps);
            mine.nanos = mine.nanos.saturating_sub(theirs.nanos);
        }
        for (mine, theirs) in difference.counters.iter_mut().zip(&earlier.counters) {
            mine.value = mine.value.saturating_sub(theirs.value);
        }
        for (mine, theirs) in difference.phases.iter_mut().zip(&earlier.phases) {
            mine.count = mine.count.saturating_sub(theirs.count);
            mine.nanos = mine.nanos.saturating_sub(theirs.nanos);
        }
        difference
    }

    /// Adds what one recorder has written so far.
    pub(crate) fn add_numbers(&mut self, numbers: &Numbers, lifetime: Duration) {
        let lifetime_nanos = u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX);
        self.recorded_nanos = self.recorded_nanos.saturating_add(lifetime_nanos);
        self.operations += numbers.operations.get();
        for (total, number) in self.waits.iter_mut().zip(&numbers.waits) {
            total.count += number.count.get();
            total.nanos = total.nanos.saturating_add(number.nanos.get());
            total.signal_nanos = total.signal_nanos.saturating_add(number.signal_nanos.get());
            total.nanos_max = total.nanos_max.max(number.nanos_max.get());
            for (mine, theirs) in total.histogram.iter_mut().zip(&number.histogram) {
                *mine += theirs.get();
            }
        }
        for (total, number) in self.latches.iter_mut().zip(&numbers.latches) {
            total.collisions += number.collisions.get();
            total.spins += number.spins.get();
            total.sleeps += number.sleeps.get();
            total.nanos = total.nanos.saturating_add(number.nanos.get());
            total.nanos_max = total.nanos_max.max(number.nanos_max.get());
        }
        for (total, number) in self.counters.iter_mut().zip(&numbers.counters) {
            total.value += number.get();
        }
        for (total, number) in self.phases.iter_mut().zip(&numbers.phases) {
            total.count += number.count.get();
            total.nanos = total.nanos.saturating_add(number.nanos.get());
        }
    }
}
