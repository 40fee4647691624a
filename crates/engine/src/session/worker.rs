//! Into the engine and out again: a place inside, room in the log, and what to do, without
//! either, when an operation is blocked.
//!
//! Invariant: nobody waits for a disk, a frame, a slot or another transaction while inside.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onrush_latch::Ticket;
use onrush_log::{Log, Lsn};
use onrush_waits::{Recorder, Wait};

use crate::btree::{Refusal, Seat};
use crate::engine::Engine;
use crate::error::Result;
use crate::memory::Frame;

/// One thread's way into the engine.
pub(crate) struct Worker {
    pub(crate) engine: Arc<Engine>,
    pub(crate) recorder: Arc<Recorder>,
    ticket: Ticket,
    spares: Vec<Frame>,
    /// Changes so far.
    changes: u32,
}

/// Stops the engine if a thread panics inside it: a latch may have been held over a half-made
/// change, or a reserved piece of the log never filled.
struct StopOnPanic<'a>(&'a Engine);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_for("a thread panicked inside the engine");
        }
    }
}

impl Worker {
    pub(crate) fn new(engine: &Arc<Engine>, name: &str) -> Worker {
        Worker {
            engine: Arc::clone(engine),
            recorder: Recorder::new(&engine.registry, name),
            ticket: engine.admission.ticket(),
            spares: Vec::with_capacity(crate::btree::SPARE_FRAMES),
            changes: 0,
        }
    }

    /// Runs an operation inside, again and again until it is not blocked.
    pub(crate) fn inside<T>(
        &mut self,
        operation: impl FnMut(&Engine, &mut Seat<'_>) -> std::result::Result<T, Refusal>,
    ) -> Result<std::result::Result<T, Refusal>> {
        self.inside_with_room(0, operation)
    }

    /// As [`inside`](Self::inside), with room in the log for one record of `payload` bytes
    /// promised to the operation.
    #[inline]
    pub(crate) fn inside_with_room<T>(
        &mut self,
        payload: usize,
        mut operation: impl FnMut(&Engine, &mut Seat<'_>) -> std::result::Result<T, Refusal>,
    ) -> Result<std::result::Result<T, Refusal>> {
        if payload > 0 {
            self.pause_if_asked();
        }
        loop {
            let entered = self.engine.admission.enter(&mut self.ticket, &self.recorder);
            // Inside, not before: who closes waits until all that did not see it have left.
            self.engine.check_open()?;
            let place = entered.place();
            if payload > 0 && !self.engine.log.has_room(place, Log::framed_bytes(payload)) {
                drop(entered);
                self.wait_for_room(Log::framed_bytes(payload))?;
                continue;
            }
            let guard = StopOnPanic(&self.engine);
            let mut seat = Seat {
                place,
                recorder: &self.recorder,
                spares: &mut self.spares,
                timer: self.recorder.phase_sample(),
            };
            let outcome = operation(&self.engine, &mut seat);
            drop(guard);
            let Err(Refusal::Blocked(blocked)) = outcome else { return Ok(outcome) };
            drop(entered);
            self.ticket.release();
            self.engine.unblock(blocked, &mut self.spares, &self.recorder)?;
        }
    }

    /// Every 64th change pauses while the log is getting full.
    #[inline]
    fn pause_if_asked(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        if self.changes.is_multiple_of(64) {
            let micros = self.engine.pause_micros.load(Ordering::Relaxed);
            if micros > 0 {
                self.ticket.release();
                let _wait = self.recorder.wait(Wait::CheckpointLag);
                std::thread::sleep(Duration::from_micros(u64::from(micros)));
            }
        }
    }

    #[cold]
    fn wait_for_room(&mut self, bytes: usize) -> Result<()> {
        self.ticket.release();
        self.engine.wait_for_room(bytes, &self.recorder)
    }

    /// Lets others in while this thread waits for something long.
    pub(crate) fn release(&mut self) {
        self.ticket.release();
    }

    /// Waits until all below `lsn` is complete, so that a snapshot opened now sees it. Only
    /// memory copies are waited for.
    pub(crate) fn wait_complete(&self, lsn: Lsn) {
        if self.engine.log.prefix() >= lsn {
            return;
        }
        let _wait = self.recorder.wait(Wait::SnapshotPrefix);
        while self.engine.log.prefix() < lsn && !self.engine.has_failed() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        for frame in self.spares.drain(..) {
            self.engine.frames.give_back(frame);
        }
    }
}
