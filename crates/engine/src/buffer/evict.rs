//! Makes frames free: a clock over all leaves drops the rows of those not used lately, after
//! imaging the dirty ones.
//!
//! Invariant: a frame is dropped only when the leaf is clean and its image is written.

use std::sync::Arc;

use onrush_latch::lock_counted;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::imager::Imager;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::memory::Frame;
use crate::units::LeafId;

/// Where the clock stands, and the batch of images it writes. One thread at a time.
pub(crate) struct Evictor {
    hand: u32,
    imager: Imager,
}

/// What became of a leaf that the clock's hand came to.
enum Visit {
    Kept,
    Dropped,
    Captured,
}

impl Evictor {
    pub(crate) fn new() -> Evictor {
        Evictor { hand: 0, imager: Imager::new() }
    }

    /// Frees about `wanted` frames; returns how many it freed.
    fn run(&mut self, engine: &Engine, recorder: &Recorder, wanted: usize) -> Result<usize> {
        let _stop = engine.stop_on_panic();
        let leaves = engine.leaves.len();
        let mut freed = 0;
        let mut captured = 0;
        // Twice around: the first round may only clear the marks of recent use.
        for _ in 0..u64::from(leaves) * 2 + 1 {
            if freed + captured >= wanted {
                break;
            }
            self.hand = if self.hand + 1 >= leaves { 1 } else { self.hand + 1 };
            match self.visit(engine, recorder, LeafId(self.hand)) {
                Visit::Kept => {}
                Visit::Dropped => freed += 1,
                Visit::Captured => captured += 1,
            }
            if self.imager.is_full() {
                freed += self.write_and_drop(engine, recorder)?;
                captured = 0;
            }
        }
        Ok(freed + self.write_and_drop(engine, recorder)?)
    }

    fn visit(&mut self, engine: &Engine, recorder: &Recorder, id: LeafId) -> Visit {
        let Some(leaf) = engine.leaves.try_get(id.0) else { return Visit::Kept };
        if leaf.take_recently_used() {
            return Visit::Kept;
        }
        let Some(mut state) = leaf.latch.try_exclusive() else { return Visit::Kept };
        let Some(rows) = &state.rows else { return Visit::Kept };
        if rows.intents() > 0 {
            return Visit::Kept;
        }
        if rows.len() == 0 && (state.is_dirty() || !state.logged) {
            // Nothing to image: a leaf without rows and without an image is empty. It stays on its
            // list, from where a checkpoint takes it out of the tree.
            engine.drop_rows(&mut state);
            state.image = None;
            recorder.count(Counter::Evictions, 1);
            return Visit::Dropped;
        }
        if state.is_dirty() {
            let place = engine.background_place();
            return if self.imager.capture(engine, place, id, &mut state) {
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
            engine.frames.give_back(rows.into_frame());
        }
        recorder.count(Counter::Evictions, 1);
        Visit::Dropped
    }

    /// Writes the captured leaves, then drops those that nobody changed or used meanwhile.
    fn write_and_drop(&mut self, engine: &Engine, recorder: &Recorder) -> Result<usize> {
        let written = self.imager.write(engine, recorder)?;
        recorder.count(Counter::ImagesEviction, written.len() as u64);
        let mut freed = 0;
        for captured in written {
            let leaf = engine.leaves.get(captured.leaf.0);
            let Some(mut state) = leaf.latch.try_exclusive() else { continue };
            let same = state.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, &captured.image));
            let idle = state.rows.as_ref().is_some_and(|rows| rows.intents() == 0);
            if same
                && idle
                && !state.is_dirty()
                && let Some(rows) = state.rows.take()
            {
                engine.frames.give_back(rows.into_frame());
                freed += 1;
            }
        }
        recorder.count(Counter::Evictions, freed as u64);
        Ok(freed)
    }
}

impl Engine {
    /// A free frame; evicts leaves if there is none. Called without latches and without a place.
    ///
    /// # Errors
    /// When every leaf is in use by unfinished work: the memory for leaves is too small.
    pub(crate) fn take_frame(&self, recorder: &Recorder) -> Result<Frame> {
        const TRIES: usize = 1000;
        if let Some(frame) = self.frames.take(recorder) {
            if self.frames.available() == eviction_batch(self.frames.frames()) {
                self.wake_evictor();
            }
            return Ok(frame);
        }
        self.wake_evictor();
        let _wait = recorder.wait(Wait::FrameFree);
        for attempt in 0..TRIES {
            if let Some(frame) = self.frames.take(recorder) {
                return Ok(frame);
            }
            let mut evictor = lock_counted(&self.evictor, recorder, LatchClass::FrameTable);
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
        self.evictor.is_locked()
    }

    /// Keeps some frames free ahead of need; for the background thread. Returns whether there was
    /// anything to do.
    pub(crate) fn evict_ahead(&self, recorder: &Recorder) -> Result<bool> {
        let reserve = eviction_batch(self.frames.frames()) * 2;
        let available = self.frames.available();
        if available >= reserve {
            return Ok(false);
        }
        lock_counted(&self.evictor, recorder, LatchClass::FrameTable).run(
            self,
            recorder,
            reserve - available,
        )?;
        Ok(true)
    }
}

/// Frames to free at once: enough for one large write, a small part of a small memory.
fn eviction_batch(frames: usize) -> usize {
    (frames / 16).clamp(1, 256)
}
