//! The numbers of one session or background thread.
//!
//! Invariants
//! 1. One writer at a time (a session is used by one thread at a time). A second one would lose
//!    counts of the fast path, nothing else.
//! 2. Numbers stand on cache lines that no other recorder touches.
//! 3. Without the feature `statistics` every call here does nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::ENABLED;
use crate::catalog::{Counter, LatchClass, Phase, Spin, Wait};
use crate::guard::WaitGuard;
use crate::numbers::{Numbers, Spun};
use crate::registry::{RecorderKind, Shared};
use crate::sampling::{Sampling, now_nanos};
use crate::task_guard::TaskWaitGuard;

/// The numbers of one session or background thread, written by it alone.
///
/// Retired when its last handle is dropped: its numbers then live on in the registry's sum.
#[derive(Debug)]
#[repr(align(128))] // whoever made the session may have made another's right beside it
pub struct Recorder {
    numbers: Arc<Numbers>,
    registry: Arc<Shared>, // touched at the start and the end only
    id: u64,
    name: String,
    on: bool,
}

impl Recorder {
    /// A new recorder of a background thread, known to `registry` until it is dropped. The name is
    /// for listings and need not be unique.
    pub fn new(registry: &crate::Registry, name: impl Into<String>) -> Arc<Self> {
        Self::of_kind(registry, name, RecorderKind::Background)
    }

    /// A new recorder of a session: what is neither a phase nor a wait is its client's time.
    pub fn for_session(registry: &crate::Registry, name: impl Into<String>) -> Arc<Self> {
        Self::of_kind(registry, name, RecorderKind::Session)
    }

    fn of_kind(
        registry: &crate::Registry,
        name: impl Into<String>,
        kind: RecorderKind,
    ) -> Arc<Self> {
        let name = name.into();
        let shared = Arc::clone(registry.shared());
        let on = ENABLED && shared.is_on();
        let numbers = Arc::new(Numbers::new(Sampling::new(on, now_nanos())));
        let id = shared.enlist(&name, kind, &numbers);
        Arc::new(Self { numbers, on, registry: shared, id, name })
    }

    /// Its name in listings.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in listings, which no other recorder of the database ever has.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn is_on(&self) -> bool {
        ENABLED && self.on
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Begins a wait, which lasts until the guard is dropped. Reads the clock: for slow paths.
    #[inline]
    pub fn wait(&self, wait: Wait) -> WaitGuard<'_> {
        WaitGuard::start(self, wait)
    }

    /// Begins a wait of a task, between two calls of its session, which lasts until the guard is
    /// dropped, on whatever thread.
    pub fn task_wait(self: &Arc<Self>, wait: Wait) -> TaskWaitGuard {
        TaskWaitGuard::start(self, wait)
    }

    /// Adds a wait that is over: `total` from beginning to end, of which `signal` after what was
    /// waited for was there.
    pub fn waited(&self, wait: Wait, total: Duration, signal: Duration) {
        if self.is_on() {
            self.numbers.waited(wait, nanos_of(total), nanos_of(signal));
        }
    }

    /// Adds `n` to a counter.
    #[inline]
    pub fn count(&self, counter: Counter, n: u64) {
        // Also where statistics are off: asking would cost as much as counting.
        if ENABLED {
            self.numbers.counters[counter.index()].add(n);
        }
    }

    /// Adds requests of latches, where that costs nothing that matters.
    #[inline]
    pub fn latch_requests(&self, class: LatchClass, n: u64) {
        if self.is_on() {
            self.numbers.latches[class.index()].requests.add(n);
        }
    }

    /// Adds a collision on a latch: how long it took to get it, and what was done meanwhile. The
    /// time as a wait is counted apart, by a [`WaitGuard`].
    pub fn latch_wait(&self, class: LatchClass, total: Duration, spun: Spun) {
        if !self.is_on() {
            return;
        }
        let nanos = nanos_of(total);
        let numbers = &self.numbers.latches[class.index()];
        numbers.spin.record(1, spun);
        numbers.nanos.add_shared(nanos);
        numbers.nanos_max.raise_to(nanos);
    }

    /// Adds a collision at a word that has no latch, and what was done until it was over.
    pub fn spun(&self, spin: Spin, spun: Spun) {
        if self.is_on() {
            self.numbers.spins[spin.index()].record(1, spun);
        }
    }

    /// A call of the session begins. Ended by [`Recorder::end_call`]; calls inside it are part of
    /// it.
    #[inline]
    pub fn begin_call(&self) {
        if ENABLED {
            self.numbers.sampling.begin_call(&self.numbers);
        }
    }

    /// The call is over; its time since the last mark was spent in `last`.
    #[inline]
    pub fn end_call(&self, last: Phase) {
        if ENABLED && self.numbers.sampling.is_call_timed() {
            self.numbers.sampling.end_timed(&self.numbers, last);
        }
    }

    /// Whether the call is one of those whose phases are timed.
    #[inline]
    pub fn is_timing(&self) -> bool {
        ENABLED && self.numbers.sampling.is_timing()
    }

    /// The time since the last mark was spent in `phase`, if the call is timed; waits are left out.
    #[inline]
    pub fn mark(&self, phase: Phase) {
        if self.is_timing() {
            self.numbers.sampling.mark(&self.numbers, phase);
        }
    }

    /// A timed call met somebody at a word: it stands for as many collisions as for calls. For
    /// places where looking costs too much for every call.
    #[cold]
    pub fn spin_sampled(&self, spin: Spin) {
        let weight = self.numbers.sampling.weight();
        let spun = Spun { spins: weight, ..Spun::default() };
        self.numbers.spins[spin.index()].record(weight, spun);
    }

    /// Times a piece of background work until the guard is dropped; its waits are left out.
    pub fn work(&self, phase: Phase) -> WorkGuard<'_> {
        let began = self.is_on().then(|| (now_nanos(), self.numbers.waited_nanos.get()));
        WorkGuard { recorder: self, phase, began }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.registry.retire(self.id);
    }
}

/// A piece of background work; see [`Recorder::work`].
#[must_use = "the work lasts as long as its guard"]
#[derive(Debug)]
pub struct WorkGuard<'a> {
    recorder: &'a Recorder,
    phase: Phase,
    began: Option<(u64, u64)>, // when, and what had been waited then; None: statistics are off
}

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        let Some((began, waited_before)) = self.began else { return };
        let numbers = &self.recorder.numbers;
        let waited = numbers.waited_nanos.get().wrapping_sub(waited_before);
        let nanos = now_nanos().saturating_sub(began).saturating_sub(waited);
        let phase = &numbers.phases[self.phase.index()];
        phase.count.add_shared(1);
        phase.nanos.add_shared(nanos);
    }
}

/// Whole nanoseconds; more than 584 years count as so many.
pub(crate) fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
