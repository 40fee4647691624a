//! Makes frames free: a clock over all leaves drops the rows of those not used lately, after
//! imaging the dirty ones.
//!
//! Several threads do it at once, each with images of its own: the clock's hand gives each a stretch of
//! leaves, so that leaves that lie side by side in the tree's order of making are imaged side by side.
//!
//! Invariant: a frame is dropped only when the leaf is clean and its image is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use onrush_latch::lock_counted;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};
use parking_lot::{Mutex, MutexGuard};

use super::Storage;
use super::imager::Imager;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::memory::Frame;
use crate::units::{EXTENT_SLOTS, LeafId};

/// How many threads make frames free at once. While one waits for its images to be written, others
/// copy theirs.
pub(crate) const EVICTORS: usize = 4;

/// Leaves that the clock's hand gives to a thread at a time: as many as one write of images holds.
const STRETCH: u32 = EXTENT_SLOTS as u32;

/// All that make frames free, and the clock that they share.
pub(crate) struct Evictors {
    /// The first leaf that no one has been given in this round.
    hand: AtomicU32,
    /// Who waits for the next one, when all are at work.
    turn: AtomicUsize,
    evictors: [Mutex<Evictor>; EVICTORS],
}

/// A stretch of leaves, and the batch of images that is written for it.
struct Evictor {
    next: u32,
    end: u32,
    imager: Imager,
}

/// What became of a leaf that the clock's hand came to.
enum Visit {
    Kept,
    Dropped,
    Captured,
}

impl Evictors {
    pub(crate) fn new() -> Evictors {
        let one = || Mutex::new(Evictor { next: 0, end: 0, imager: Imager::new() });
        Evictors {
            hand: AtomicU32::new(1),
            turn: AtomicUsize::new(0),
            evictors: std::array::from_fn(|_| one()),
        }
    }

    /// The first that is not at work; waits for one if all are.
    fn lock(&self, recorder: &Recorder) -> MutexGuard<'_, Evictor> {
        if let Some(evictor) = self.evictors.iter().find_map(Mutex::try_lock) {
            recorder.latch_requests(LatchClass::FrameTable, 1);
            return evictor;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % EVICTORS;
        lock_counted(&self.evictors[turn], recorder, LatchClass::FrameTable)
    }

    /// The leaves that nobody has been given in this round; the last are followed by the first.
    fn next_stretch(&self, leaves: u32) -> u32 {
        let begin = |hand: u32| if hand < leaves { hand } else { 1 };
        let step = |hand| Some(begin(hand) + STRETCH);
        // Nothing else is published by the hand.
        let hand = self.hand.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        begin(hand.unwrap_or_else(|hand| hand))
    }
}

impl Evictor {
    /// The next leaf to look at.
    fn step(&mut self, storage: &Storage, leaves: u32) -> LeafId {
        if self.next >= self.end.min(leaves) {
            self.next = storage.evictors.next_stretch(leaves);
            self.end = self.next + STRETCH;
        }
        self.next += 1;
        LeafId(self.next - 1)
    }

    /// Frees about `wanted` frames; returns how many it freed.
    fn run(&mut self, storage: &Storage, recorder: &Recorder, wanted: usize) -> Result<usize> {
        let _stop = storage.stop_on_panic();
        let leaves = storage.leaves.len();
        let mut freed = 0;
        let mut captured = 0;
        // Twice around: the first round may only clear the marks of recent use.
        for _ in 0..u64::from(leaves) * 2 + 1 {
            if freed + captured >= wanted {
                break;
            }
            let leaf = self.step(storage, leaves);
            match self.visit(storage, recorder, leaf) {
                Visit::Kept => {}
                Visit::Dropped => freed += 1,
                Visit::Captured => captured += 1,
            }
            if self.imager.is_full() {
                freed += self.write_and_drop(storage, recorder)?;
                captured = 0;
            }
        }
        Ok(freed + self.write_and_drop(storage, recorder)?)
    }

    fn visit(&mut self, storage: &Storage, recorder: &Recorder, id: LeafId) -> Visit {
        let Some(leaf) = storage.leaves.try_get(id.0) else { return Visit::Kept };
        if leaf.take_recently_used() {
            return Visit::Kept;
        }
        let Some(mut state) = leaf.latch.try_exclusive() else { return Visit::Kept };
        let Some(rows) = &state.rows else { return Visit::Kept };
        if rows.holds_small_intents() {
            return Visit::Kept;
        }
        if state.range.is_some() && !planted(Fault::FrontLeafImaged) {
            // Rows leave it by a flush.
            let is_empty = rows.len() == 0;
            return if is_empty && storage.drop_rows(&mut state) {
                Visit::Dropped
            } else {
                Visit::Kept
            };
        }
        if rows.len() == 0 && (state.is_dirty() || !state.logged) {
            // Nothing to image: a leaf without rows and without an image is empty. It stays on its
            // list, from where a checkpoint takes it out of the tree.
            storage.drop_rows(&mut state);
            state.image = None;
            recorder.count(Counter::Evictions, 1);
            return Visit::Dropped;
        }
        if state.is_dirty() {
            let permit = storage.background_permit();
            return if self.imager.capture(storage, permit, id, &mut state) {
                Visit::Captured
            } else {
                Visit::Kept
            };
        }
        let is_unwritten = state.image.as_ref().is_some_and(|image| !image.is_written());
        if is_unwritten && !planted(Fault::DropUnwritten) {
            return Visit::Kept;
        }
        if let Some(rows) = state.rows.take() {
            storage.frames.give_back(rows.into_frame());
        }
        recorder.count(Counter::Evictions, 1);
        Visit::Dropped
    }

    /// Writes the captured leaves, then drops those that nobody changed or used meanwhile.
    fn write_and_drop(&mut self, storage: &Storage, recorder: &Recorder) -> Result<usize> {
        let written = self.imager.write(storage, recorder)?;
        recorder.count(Counter::ImagesEviction, written.len() as u64);
        let mut freed = 0;
        for captured in written {
            let leaf = storage.leaves.get(captured.leaf.0);
            let Some(mut state) = leaf.latch.try_exclusive() else { continue };
            let same = state.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, &captured.image));
            let idle = state.rows.as_ref().is_some_and(|rows| !rows.holds_small_intents());
            if same
                && idle
                && !state.is_dirty()
                && let Some(rows) = state.rows.take()
            {
                storage.frames.give_back(rows.into_frame());
                freed += 1;
            }
        }
        recorder.count(Counter::Evictions, freed as u64);
        Ok(freed)
    }
}

impl Storage {
    /// A free frame; evicts leaves if there is none. Called without latches and without a permit.
    ///
    /// # Errors
    /// When every leaf is in use by unfinished work: the memory for leaves is too small.
    pub(crate) fn take_frame(&self, recorder: &Recorder) -> Result<Frame> {
        self.take_frame_as(Some(Wait::FrameFree), recorder)
    }

    /// As [`take_frame`](Self::take_frame); a wait counts as `wait`.
    pub(super) fn take_frame_as(&self, wait: Option<Wait>, recorder: &Recorder) -> Result<Frame> {
        const TRIES: usize = 1000;
        if let Some(frame) = self.frames.take(recorder) {
            if self.frames.available() == eviction_batch(self.frames.frames()) {
                self.wake_evictor();
            }
            return Ok(frame);
        }
        self.wake_evictor();
        let _wait = wait.map(|wait| recorder.wait(wait));
        for attempt in 0..TRIES {
            if let Some(frame) = self.frames.take(recorder) {
                return Ok(frame);
            }
            let mut evictor = self.evictors.lock(recorder);
            if self.frames.available() > 0 {
                continue;
            }
            let freed = evictor.run(self, recorder, eviction_batch(self.frames.frames()))?;
            drop(evictor);
            if freed == 0 && attempt > 2 {
                std::thread::yield_now();
            }
        }
        Err(Error::LeafMemoryTooSmall { frames: self.frames.frames() })
    }

    /// Whether a thread is making frames free.
    pub(crate) fn is_evicting(&self) -> bool {
        self.evictors.evictors.iter().any(Mutex::is_locked)
    }

    /// Keeps some frames free ahead of need; for the background thread. Returns whether there was
    /// anything to do.
    pub(crate) fn keep_frames_free(&self, recorder: &Recorder) -> Result<bool> {
        self.fit_frames(recorder);
        let reserve = eviction_batch(self.frames.frames()) * 2;
        let available = self.frames.available();
        if available >= reserve {
            return Ok(false);
        }
        self.evictors.lock(recorder).run(self, recorder, reserve - available)?;
        Ok(true)
    }

    /// What tables need beside frames grows and shrinks; so many frames fewer or more there are. Half of those that are
    /// free give way at a time, as sessions want some, too.
    fn fit_frames(&self, recorder: &Recorder) {
        let Some(fitting) = self.fitting_frames() else { return };
        let frames = self.frames.frames();
        // A few come and go with every fragment: they stay away.
        if fitting > frames + frames / 16 {
            return self.frames.restore(fitting - frames);
        }
        let too_many = frames.saturating_sub(fitting);
        for _ in 0..too_many.min(self.frames.available() / 2) {
            let Some(frame) = self.frames.take(recorder) else { return };
            self.frames.retire(frame);
        }
    }
}

/// Frames to free at once: enough for one large write, a small part of a small memory.
fn eviction_batch(frames: usize) -> usize {
    (frames / 16).clamp(1, 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_is_given_once_in_a_round() {
        let evictors = Evictors::new();
        let round =
            |leaves| -> Vec<u32> { (0..4).map(|_| evictors.next_stretch(leaves)).collect() };
        assert_eq!(round(200), [1, 65, 129, 193]);
        // The hand goes on to leaves that were made meanwhile, and then to the first again.
        assert_eq!(round(400), [257, 321, 385, 1]);
    }
}
