//! The numbers of one session or background thread.
//!
//! Invariants
//! 1. One writer at a time (a session is used by one thread at a time). A second one would lose
//!    counts, nothing else.
//! 2. Numbers stand on cache lines that no other recorder touches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::catalog::{Counter, LatchClass, Phase, Wait};
use crate::guard::WaitGuard;
use crate::registry::Shared;

/// One operation in so many has its phases timed. A power of two.
pub const SAMPLE_INTERVAL: u64 = 256;
const _: () = assert!(SAMPLE_INTERVAL.is_power_of_two());

/// Buckets of a histogram: bucket n counts times of 2^n up to 2^(n+1) - 1 nanoseconds; the last one
/// (9 minutes and more) has no upper end.
pub(crate) const BUCKETS: usize = 40;

/// The bucket of a time.
pub(crate) fn bucket_of(nanos: u64) -> usize {
    let log2 = nanos.checked_ilog2().unwrap_or(0);
    usize::try_from(log2).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
}

/// A number with one writer. Not a read-modify-write: nobody else writes it.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    fn raise_to(&self, value: u64) {
        self.set(self.get().max(value));
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

/// Collisions on one class of latch.
#[derive(Debug, Default)]
pub(crate) struct LatchNumbers {
    pub(crate) collisions: Number,
    pub(crate) spins: Number,
    pub(crate) sleeps: Number,
    pub(crate) nanos: Number,
    pub(crate) nanos_max: Number,
}

/// Time of one phase, both already multiplied by the sample interval.
#[derive(Debug, Default)]
pub(crate) struct PhaseNumbers {
    pub(crate) count: Number,
    pub(crate) nanos: Number,
}

/// All numbers of one recorder: written by its session, read by whoever sums.
#[derive(Debug)]
#[repr(align(128))] // two cache lines: the neighbour line is prefetched with ours
pub(crate) struct Numbers {
    pub(crate) operations: Number,
    pub(crate) counters: [Number; Counter::COUNT],
    pub(crate) latches: [LatchNumbers; LatchClass::COUNT],
    pub(crate) phases: [PhaseNumbers; Phase::COUNT],
    pub(crate) waits: [WaitNumbers; Wait::COUNT],
}

impl Numbers {
    fn new() -> Self {
        use std::array::from_fn;
        Self {
            operations: Number::default(),
            counters: from_fn(|_| Number::default()),
            latches: from_fn(|_| LatchNumbers::default()),
            phases: from_fn(|_| PhaseNumbers::default()),
            waits: from_fn(|_| WaitNumbers {
                count: Number::default(),
                nanos: Number::default(),
                signal_nanos: Number::default(),
                nanos_max: Number::default(),
                histogram: from_fn(|_| Number::default()),
            }),
        }
    }
}

/// The numbers of one session or background thread, written by it alone.
///
/// Made by [`Recorder::new`], retired when its last handle is dropped: its numbers then live on in
/// the registry's sum.
#[derive(Debug)]
pub struct Recorder {
    numbers: Arc<Numbers>,
    registry: Arc<Shared>, // touched at the start and the end only
    id: u64,
    name: String,
    on: bool,
}

impl Recorder {
    /// A new recorder, known to `registry` until it is dropped. The name is for listings and need
    /// not be unique.
    pub fn new(registry: &crate::Registry, name: impl Into<String>) -> Arc<Self> {
        let name = name.into();
        let numbers = Arc::new(Numbers::new());
        let shared = Arc::clone(registry.shared());
        let id = shared.enlist(&name, &numbers);
        Arc::new(Self { numbers, on: shared.is_on(), registry: shared, id, name })
    }

    /// Its name in listings.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Begins a wait, which lasts until the guard is dropped. Reads the clock: for slow paths.
    #[inline]
    pub fn wait(&self, wait: Wait) -> WaitGuard<'_> {
        WaitGuard::start(self, wait)
    }

    /// Adds a wait that is over: `total` from beginning to end, of which `signal` after what was
    /// waited for was there.
    pub fn waited(&self, wait: Wait, total: Duration, signal: Duration) {
        if !self.on {
            return;
        }
        let nanos = nanos_of(total);
        let numbers = &self.numbers.waits[wait.index()];
        numbers.count.add(1);
        numbers.nanos.add(nanos);
        numbers.signal_nanos.add(nanos_of(signal).min(nanos));
        numbers.nanos_max.raise_to(nanos);
        numbers.histogram[bucket_of(nanos)].add(1);
    }

    /// Adds `n` to a counter.
    #[inline]
    pub fn count(&self, counter: Counter, n: u64) {
        if self.on {
            self.numbers.counters[counter.index()].add(n);
        }
    }

    /// Adds a collision on a latch: how long it took to get it, how often it was tried in vain, how
    /// often the thread slept. The time as a wait is counted apart, by a [`WaitGuard`].
    pub fn latch_wait(&self, class: LatchClass, total: Duration, spins: u64, sleeps: u64) {
        if !self.on {
            return;
        }
        let nanos = nanos_of(total);
        let numbers = &self.numbers.latches[class.index()];
        numbers.collisions.add(1);
        numbers.spins.add(spins);
        numbers.sleeps.add(sleeps);
        numbers.nanos.add(nanos);
        numbers.nanos_max.raise_to(nanos);
    }

    /// Called once per operation: for one in [`SAMPLE_INTERVAL`] a timer of its phases, else
    /// `None`.
    #[inline]
    pub fn phase_sample(&self) -> Option<PhaseTimer<'_>> {
        let operations = self.numbers.operations.get().wrapping_add(1);
        self.numbers.operations.set(operations);
        if operations.is_multiple_of(SAMPLE_INTERVAL) {
            return self.start_timer(SAMPLE_INTERVAL);
        }
        None
    }

    /// A timer that is not sampled, for the long rounds of background threads; `None` if statistics
    /// are off.
    pub fn phase_timer(&self) -> Option<PhaseTimer<'_>> {
        self.start_timer(1)
    }

    #[cold]
    fn start_timer(&self, weight: u64) -> Option<PhaseTimer<'_>> {
        self.on.then(|| PhaseTimer { recorder: self, last: Instant::now(), weight })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.registry.retire(self.id);
    }
}

/// Stamps the phases of one operation: each [`PhaseTimer::mark`] gives the time since the one
/// before to a phase.
#[derive(Debug)]
pub struct PhaseTimer<'a> {
    recorder: &'a Recorder,
    last: Instant,
    weight: u64, // how many operations this one stands for
}

impl PhaseTimer<'_> {
    /// The time since the last mark, or since the timer was made, was spent in `phase`.
    pub fn mark(&mut self, phase: Phase) {
        let now = Instant::now();
        let nanos = nanos_of(now.saturating_duration_since(self.last));
        self.last = now;
        let numbers = &self.recorder.numbers.phases[phase.index()];
        numbers.count.add(self.weight);
        numbers.nanos.add(nanos.saturating_mul(self.weight));
    }

    /// The time since the last mark belongs to no phase.
    pub fn skip(&mut self) {
        self.last = Instant::now();
    }
}

/// Whole nanoseconds; more than 584 years count as so many.
fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
