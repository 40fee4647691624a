//! Version word for data made of atomics: readers write nothing shared, and find out afterwards
//! whether they were disturbed.
//!
//! The word is even while the data is whole and odd while it is being changed; every change makes
//! it larger. It protects words that are themselves atomics, read and written relaxed: a reader may
//! see a mix of two changes, but [`VersionLatch::validate`] then tells it so.
//!
//! Invariants
//! 1. Whoever reads a word of a change sees, after `validate`'s fence, the odd version that came
//!    before it: the writer's release fence and the reader's acquire fence synchronize through that
//!    word.
//! 2. Whoever reads an even version sees all words of the change that made it: a release store read
//!    by an acquire load.
//! 3. Versions do not come back: 64 bits last for longer than any process.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use onrush_waits::{LatchClass, Recorder, Wait};

use crate::backoff::Backoff;
use crate::sync::{AtomicU64, fence};

/// A version under which data was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// The version word of one inner node, or of other data made of atomics.
#[derive(Debug)]
pub struct VersionLatch {
    word: AtomicU64, // odd: being changed, by the holder of the one write guard
}

impl Default for VersionLatch {
    fn default() -> Self {
        Self::new()
    }
}

impl VersionLatch {
    /// Nobody is changing the data.
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Begins to read; `None` while the data is being changed.
    #[inline]
    pub fn read_begin(&self) -> Option<Version> {
        let word = self.word.load(Acquire);
        is_whole(word).then_some(Version(word))
    }

    /// Begins to read, after waiting until nobody is changing the data.
    #[inline]
    pub fn wait_readable(&self, recorder: &Recorder) -> Version {
        match self.read_begin() {
            Some(version) => version,
            None => wait(recorder, Wait::LatchSh, || self.read_begin()),
        }
    }

    /// Whether all that was read since `version` began belongs together. If not, it means nothing:
    /// begin again.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // Keeps the reads of the data before the read of the word (invariant 1).
        fence(Acquire);
        self.word.load(Relaxed) == version.0
    }

    /// Begins a change, after waiting until nobody else is changing the data.
    #[inline]
    pub fn write(&self, recorder: &Recorder) -> VersionWriteGuard<'_> {
        match self.try_write() {
            Some(guard) => guard,
            None => wait(recorder, Wait::LatchEx, || self.try_write()),
        }
    }

    /// Begins a change; `None` if somebody else is changing the data.
    #[inline]
    pub fn try_write(&self) -> Option<VersionWriteGuard<'_>> {
        let word = self.word.load(Relaxed);
        if is_whole(word) { self.write_from(word) } else { None }
    }

    /// Begins a change of what was read since `version` began; `None` if it has changed meanwhile.
    #[inline]
    pub fn try_upgrade(&self, version: Version) -> Option<VersionWriteGuard<'_>> {
        self.write_from(version.0)
    }

    #[inline]
    fn write_from(&self, word: u64) -> Option<VersionWriteGuard<'_>> {
        self.word.compare_exchange(word, word + 1, Acquire, Relaxed).ok()?;
        // Keeps the writes of the data after the write of the odd word (invariant 1).
        fence(Release);
        Some(VersionWriteGuard { latch: self, word: word + 1 })
    }
}

/// The right to change the data, until dropped.
///
/// A panic meanwhile lets readers in to what is there: change words in an order in which that does
/// no harm, or abort.
#[must_use = "the change is over as soon as the guard is dropped"]
#[derive(Debug)]
pub struct VersionWriteGuard<'a> {
    latch: &'a VersionLatch,
    word: u64, // the odd one that is there now
}

impl Drop for VersionWriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.latch.word.store(self.word + 1, Release);
    }
}

fn is_whole(word: u64) -> bool {
    word.is_multiple_of(2)
}

#[cold]
fn wait<R>(recorder: &Recorder, wait: Wait, mut attempt: impl FnMut() -> Option<R>) -> R {
    let started = std::time::Instant::now();
    let waiting = recorder.wait(wait);
    let mut backoff = Backoff::new();
    loop {
        backoff.wait();
        if let Some(result) = attempt() {
            drop(waiting);
            let time = started.elapsed();
            recorder.latch_wait(LatchClass::Inner, time, backoff.spun);
            return result;
        }
    }
}
