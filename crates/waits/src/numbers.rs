//! The memory of a recorder: numbers written by one session, read by whoever sums.
//!
//! Invariants
//! 1. Numbers of the fast path have one writer: changing one is a load and a store.
//! 2. Those of the slow path (waits, latches, spins) are added to atomically, so that a recorder
//!    that several threads share, as the engine's own is, loses nothing.

use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::catalog::{Counter, LatchClass, Phase, Spin, Wait};
use crate::sampling::Sampling;

/// Buckets of a histogram: bucket n counts times of 2^n up to 2^(n+1) - 1 nanoseconds; the last one
/// (9 minutes and more) has no upper end.
pub(crate) const BUCKETS: usize = 40;

/// The bucket of a time.
pub(crate) fn bucket_of(nanos: u64) -> usize {
    let log2 = nanos.checked_ilog2().unwrap_or(0);
    usize::try_from(log2).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
}

/// The longest time that a bucket counts.
pub(crate) fn bucket_end(bucket: usize) -> u64 {
    if bucket + 1 >= BUCKETS { u64::MAX } else { (2 << bucket) - 1 }
}

/// One number.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// For the only writer.
    #[inline]
    pub(crate) fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    /// For slow paths that several threads may share.
    pub(crate) fn add_shared(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    /// For slow paths that several threads may share.
    pub(crate) fn raise_to(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}

/// Count, times and histogram of one wait.
#[derive(Debug)]
pub(crate) struct WaitNumbers {
    pub(crate) count: Number,
    pub(crate) nanos: Number,
    pub(crate) signal_nanos: Number,
    pub(crate) nanos_max: Number,
    pub(crate) histogram: [Number; BUCKETS],
}

impl WaitNumbers {
    fn new() -> Self {
        Self {
            count: Number::default(),
            nanos: Number::default(),
            signal_nanos: Number::default(),
            nanos_max: Number::default(),
            histogram: from_fn(|_| Number::default()),
        }
    }

    pub(crate) fn record(&self, nanos: u64, signal_nanos: u64) {
        self.count.add_shared(1);
        self.nanos.add_shared(nanos);
        self.signal_nanos.add_shared(signal_nanos.min(nanos));
        self.nanos_max.raise_to(nanos);
        self.histogram[bucket_of(nanos)].add_shared(1);
    }
}

/// What a thread did until it got what others had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spun {
    /// Looks in vain.
    pub spins: u64,
    /// Times that the thread gave its processor away, by yielding or sleeping.
    pub backoffs: u64,
    /// Of these, times that it slept.
    pub sleeps: u64,
}

/// Collisions on one word.
#[derive(Debug, Default)]
pub(crate) struct SpinNumbers {
    pub(crate) collisions: Number,
    pub(crate) spins: Number,
    pub(crate) backoffs: Number,
    pub(crate) sleeps: Number,
}

impl SpinNumbers {
    pub(crate) fn record(&self, collisions: u64, spun: Spun) {
        self.collisions.add_shared(collisions);
        self.spins.add_shared(spun.spins);
        self.backoffs.add_shared(spun.backoffs);
        self.sleeps.add_shared(spun.sleeps);
    }
}

/// Requests and collisions on one class of latch.
#[derive(Debug, Default)]
pub(crate) struct LatchNumbers {
    pub(crate) requests: Number,
    pub(crate) spin: SpinNumbers,
    pub(crate) nanos: Number,
    pub(crate) nanos_max: Number,
}

/// Time of one phase, both already multiplied by what the sample stands for.
#[derive(Debug, Default)]
pub(crate) struct PhaseNumbers {
    pub(crate) count: Number,
    pub(crate) nanos: Number,
}

/// All numbers of one recorder.
#[derive(Debug)]
#[repr(align(128))] // two cache lines: the neighbour line is prefetched with ours
pub(crate) struct Numbers {
    /// First, beside the counters: what every call touches lies together.
    pub(crate) sampling: Sampling,
    pub(crate) counters: [Number; Counter::COUNT],
    /// What is waited for now: the wait's index + 1, or 0.
    pub(crate) waits_now: Number,
    /// All waits of this recorder that are over, in nanoseconds.
    pub(crate) waited_nanos: Number,
    /// All calls together, waits left out: estimated from those that were timed as a whole.
    pub(crate) call_nanos: Number,
    pub(crate) latches: [LatchNumbers; LatchClass::COUNT],
    pub(crate) spins: [SpinNumbers; Spin::COUNT],
    pub(crate) phases: [PhaseNumbers; Phase::COUNT],
    pub(crate) waits: [WaitNumbers; Wait::COUNT],
}

impl Numbers {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            counters: from_fn(|_| Number::default()),
            waits_now: Number::default(),
            waited_nanos: Number::default(),
            call_nanos: Number::default(),
            latches: from_fn(|_| LatchNumbers::default()),
            spins: from_fn(|_| SpinNumbers::default()),
            phases: from_fn(|_| PhaseNumbers::default()),
            waits: from_fn(|_| WaitNumbers::new()),
        }
    }

    pub(crate) fn waited(&self, wait: Wait, nanos: u64, signal_nanos: u64) {
        self.waits[wait.index()].record(nanos, signal_nanos);
        self.waited_nanos.add_shared(nanos);
    }

    /// What is waited for right now.
    pub(crate) fn waits_now(&self) -> Option<Wait> {
        let index = usize::try_from(self.waits_now.get()).unwrap_or(0).checked_sub(1)?;
        Wait::ALL.get(index).copied()
    }
}
