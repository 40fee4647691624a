//! Reader-writer latch with the data inside: held for nanoseconds, never across I/O or another's
//! verdict.
//!
//! | state word | meaning |
//! |---|---|
//! | bit 31 | held exclusively |
//! | bit 30 | somebody waits for the readers to leave; new readers keep out |
//! | bit 29 | poisoned: a panic happened under exclusive access |
//! | bits 0-28 | readers inside |
//!
//! Invariants
//! 1. Bit 31 and readers exclude each other.
//! 2. While bit 31 is set, only its holder writes the word: letting go is a plain store.
//! 3. Bit 30 is set only over readers, and cleared by whoever gets exclusive access next.
//! 4. Nobody is ever woken, so no wake-up is lost: waiters look again, see
//!    `backoff.rs`.
//!
//! Exclusive access is preferred: by 3, a stream of readers cannot keep a writer out. The reverse
//! is not promised, nor any order among writers: under a stream of writers a waiter gets its turn
//! in one of the gaps between them.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use onrush_waits::{LatchClass, Recorder, Wait};

use crate::backoff::Backoff;
use crate::guards::{ExclusiveGuard, SharedGuard};
use crate::rank::{Held, LatchRank};
use crate::sync::{AtomicU32, UnsafeCell};

const EXCLUSIVE: u32 = 1 << 31;
const WRITER_WAITS: u32 = 1 << 30;
const POISONED: u32 = 1 << 29;
const READERS: u32 = POISONED - 1;

/// A value of which any number of readers, or one writer, holds a guard at a time.
pub struct Latch<T> {
    state: AtomicU32,    // see the table above
    data: UnsafeCell<T>, // through guards only, or by `&mut self`
}

// SAFETY: the latch hands the data itself to one thread at a time (T: Send) and references to it to
// several (T: Sync). Checked by tests/loom_latch.rs.
unsafe impl<T: Send + Sync> Sync for Latch<T> {}
// SAFETY: sending the latch sends its data, and nothing in the latch knows its thread.
unsafe impl<T: Send> Send for Latch<T> {}

impl<T> Latch<T> {
    /// A free latch around `value`.
    pub fn new(value: T) -> Self {
        Self { state: AtomicU32::new(0), data: UnsafeCell::new(value) }
    }

    /// Waits until nobody else holds it. One compare-and-swap if it is free.
    #[inline]
    pub fn exclusive(&self, recorder: &Recorder, class: LatchClass) -> ExclusiveGuard<'_, T> {
        let held = Held::enter(LatchRank::of(class));
        if self.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed).is_err() {
            self.wait(recorder, class, class.exclusive_wait(), Self::ask_exclusive);
        }
        ExclusiveGuard::new(self, held)
    }

    /// Waits until nobody holds it exclusively or waits to. One compare-and-swap if that is so.
    #[inline]
    pub fn shared(&self, recorder: &Recorder, class: LatchClass) -> SharedGuard<'_, T> {
        let held = Held::enter(LatchRank::of(class));
        if !self.take_shared() {
            self.wait(recorder, class, class.shared_wait(), Self::take_shared);
        }
        SharedGuard::new(self, held)
    }

    /// Sole access if nobody holds it. Does not wait, so any order of latches will do; but the
    /// check of that order does not know that this latch is held.
    #[inline]
    pub fn try_exclusive(&self) -> Option<ExclusiveGuard<'_, T>> {
        self.take_exclusive().then(|| ExclusiveGuard::new(self, Held::unknown()))
    }

    /// Read access if nobody holds it exclusively or waits to. Otherwise as
    /// [`Latch::try_exclusive`].
    #[inline]
    pub fn try_shared(&self) -> Option<SharedGuard<'_, T>> {
        self.take_shared().then(|| SharedGuard::new(self, Held::unknown()))
    }

    /// Whether a thread panicked under exclusive access: the data may be half changed.
    ///
    /// The latch itself goes on working; what to do is for those who know the data. Certain only
    /// under a guard.
    pub fn is_poisoned(&self) -> bool {
        self.state.load(Relaxed) & POISONED != 0
    }

    /// The data, without latching: `&mut self` shows that nobody holds a guard.
    pub fn get_mut(&mut self) -> &mut T {
        let data = self.data.get_mut();
        let data: *mut T = {
            // SAFETY: `&mut self` excludes every guard, and with it every other reference to the
            // data.
            unsafe { data.deref() }
        };
        // SAFETY: as above, for as long as `self` is borrowed mutably.
        unsafe { &mut *data }
    }

    /// The data, at the end of the latch.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    pub(crate) fn data(&self) -> &UnsafeCell<T> {
        &self.data
    }

    /// Invariant 2: while held exclusively nobody else writes the word.
    #[inline]
    pub(crate) fn release_exclusive(&self, poison: bool) {
        let before = self.state.load(Relaxed) & POISONED;
        self.state.store(if poison { POISONED } else { before }, Release);
    }

    #[inline]
    pub(crate) fn release_shared(&self) {
        self.state.fetch_sub(1, Release);
    }

    /// True if it is ours now.
    #[inline]
    fn take_exclusive(&self) -> bool {
        let state = self.state.load(Relaxed);
        if state & (EXCLUSIVE | READERS) != 0 {
            return false;
        }
        let taken = EXCLUSIVE | (state & POISONED);
        self.state.compare_exchange(state, taken, Acquire, Relaxed).is_ok()
    }

    /// True if it is ours now; else new readers are kept out from now on, so that those inside are
    /// the last.
    fn ask_exclusive(&self) -> bool {
        if self.take_exclusive() {
            return true;
        }
        let state = self.state.load(Relaxed);
        if state & READERS != 0 && state & WRITER_WAITS == 0 {
            // Readers may have come or gone meanwhile; then the next try asks again.
            let asked = state | WRITER_WAITS;
            let _ = self.state.compare_exchange(state, asked, Relaxed, Relaxed);
        }
        false
    }

    /// True if we are one of its readers now.
    #[inline]
    fn take_shared(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        // Another reader coming or going is no reason to wait. A full count of readers is: it must
        // not overflow.
        while state & (EXCLUSIVE | WRITER_WAITS) == 0 && state & READERS != READERS {
            match self.state.compare_exchange_weak(state, state + 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[cold]
    fn wait(&self, recorder: &Recorder, class: LatchClass, wait: Wait, take: fn(&Self) -> bool) {
        let started = std::time::Instant::now();
        let waiting = recorder.wait(wait);
        let mut backoff = Backoff::new();
        while !take(self) {
            backoff.wait();
        }
        drop(waiting);
        recorder.latch_wait(class, started.elapsed(), backoff.spun);
    }
}

impl<T: Default> Default for Latch<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Latch<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Relaxed);
        formatter
            .debug_struct("Latch")
            .field("exclusive", &(state & EXCLUSIVE != 0))
            .field("writer_waits", &(state & WRITER_WAITS != 0))
            .field("poisoned", &(state & POISONED != 0))
            .field("readers", &(state & READERS))
            .finish_non_exhaustive()
    }
}
