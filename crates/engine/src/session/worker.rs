//! Into the engine and out again: an admission permit, log space, and what to do, without
//! either, when an operation is blocked.
//!
//! Invariant: nobody waits for a disk, a frame, a slot or another transaction while inside.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onrush_latch::Ticket;
use onrush_log::{Log, Lsn};
use onrush_waits::{Phase, Recorder, Spin, Spun, Wait};

use super::generated::GeneratedValues;
use crate::catalog::{LockWait, Waiter};
use crate::engine::Engine;
use crate::error::Result;
use crate::transaction::make_space;
use crate::tree::{Blocked, GROUP_LEAVES_MAX, Refusal, SPARE_FRAMES, Seat, Spares};

/// One thread's way into the engine.
pub(crate) struct Worker {
    pub(crate) engine: Arc<Engine>,
    pub(crate) recorder: Arc<Recorder>,
    ticket: Ticket,
    spares: Spares,
    /// Changes so far.
    changes: u32,
    /// Tells workers apart; from 1.
    number: u64,
    /// Calls for which the thread still counts as shared.
    shared_calls: u32,
    /// How long it waits for definitions of others.
    pub(super) lock_wait: LockWait,
    /// What it was given of identity columns.
    pub(super) generated: Arc<GeneratedValues>,
}

/// After another session was seen on its thread, a session counts as sharing it for so many calls.
const SHARED_CALLS: u32 = 64;

/// A batch takes this share of the memory for leaves beforehand, at most.
const BATCHES_AT_A_TIME: usize = 256;

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The worker that was inside last on this thread.
    static LAST_ON_THREAD: Cell<u64> = const { Cell::new(0) };
}

impl Worker {
    pub(crate) fn new(engine: &Arc<Engine>, recorder: Arc<Recorder>) -> Worker {
        Worker {
            engine: Arc::clone(engine),
            recorder,
            ticket: engine.admission.ticket(),
            spares: Spares::default(),
            changes: 0,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            shared_calls: 0,
            lock_wait: LockWait::default(),
            generated: Arc::default(),
        }
    }

    /// Runs an operation inside, again and again until it is not blocked.
    pub(crate) fn inside<T>(
        &mut self,
        operation: impl FnMut(&Engine, &mut Seat<'_>) -> std::result::Result<T, Refusal>,
    ) -> Result<std::result::Result<T, Refusal>> {
        self.inside_with_log_space(0, operation)
    }

    /// As [`inside`](Self::inside), with log space for one record of `payload` bytes
    /// promised to the operation.
    #[inline]
    pub(crate) fn inside_with_log_space<T>(
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
            let permit = entered.permit();
            if payload > 0 && !self.engine.log.has_space(permit, Log::framed_bytes(payload)) {
                drop(entered);
                self.wait_for_log_space(Log::framed_bytes(payload))?;
                continue;
            }
            let guard = self.engine.stop_on_panic();
            let mut seat = Seat { permit, recorder: &self.recorder, spares: &mut self.spares };
            self.recorder.mark(Phase::Statement);
            let outcome = operation(&self.engine, &mut seat);
            drop(guard);
            drop(entered);
            if self.shares_its_thread() {
                self.ticket.release();
            }
            if let Err(Refusal::Blocked(blocked)) = outcome {
                self.unblock(blocked)?;
                continue;
            }
            if payload > 0 {
                // The next change is of another key.
                self.spares.part = None;
            }
            // Not as a whole: copying an outcome that was written in parts waits for all writes before it.
            return Ok(match outcome {
                Ok(done) => Ok(done),
                Err(refusal) => Err(refusal),
            });
        }
    }

    /// Does what an operation was blocked on, and lets others in meanwhile.
    pub(crate) fn unblock(&mut self, blocked: Blocked) -> Result<()> {
        self.ticket.release();
        if let Blocked::Definition(table) = blocked {
            return self.engine.wait_for_definition(table, &self.lock_wait, &self.recorder);
        }
        self.engine.unblock(blocked, &mut self.spares, &self.recorder)
    }

    /// Whether another session was used on this thread since this one was last: then this one may
    /// be away for long, and must not keep a permit that the others wait for. A session with a
    /// thread of its own keeps its permit from one call to the next, which costs less.
    #[inline]
    fn shares_its_thread(&mut self) -> bool {
        let before = LAST_ON_THREAD.replace(self.number);
        if before != self.number {
            self.shared_calls = SHARED_CALLS;
        }
        self.shared_calls = self.shared_calls.saturating_sub(1);
        self.shared_calls > 0
    }

    /// Takes the frames that a batch over so many new leaves needs, as far as some are free and
    /// memory is enough for many such batches: one that lacks a frame under its latches begins anew.
    pub(crate) fn take_spares_for(&mut self, leaves: usize) -> Result<()> {
        let Worker { engine, spares, recorder, .. } = self;
        let share = engine.frames.frames() / BATCHES_AT_A_TIME;
        let new_leaves = leaves.min(GROUP_LEAVES_MAX).min(share);
        while spares.len() <= new_leaves && engine.frames.available() > 0 {
            spares.push(engine.take_frame(recorder)?);
        }
        Ok(())
    }

    /// Gives back the frames that the batch did not need.
    pub(crate) fn give_back_spares(&mut self) {
        let kept = SPARE_FRAMES.min(self.spares.len());
        for frame in self.spares.drain(kept..) {
            self.engine.frames.give_back(frame);
        }
    }

    /// Every 64th change pauses while the log is getting full.
    #[inline]
    fn pause_if_asked(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        if self.changes.is_multiple_of(64) {
            let pause = self.engine.throttle.pause();
            if !pause.is_zero() {
                self.ticket.release();
                let _wait = self.recorder.wait(Wait::CheckpointLag);
                std::thread::sleep(pause);
            }
        }
    }

    /// As [`inside_with_log_space`](Self::inside_with_log_space), for one who holds what a checkpoint needs to make
    /// space: None where there is none. The operation cannot be blocked.
    pub(crate) fn inside_if_log_space<T>(
        &mut self,
        payload: usize,
        operation: impl FnOnce(&Engine, &mut Seat<'_>) -> T,
    ) -> Result<Option<T>> {
        let entered = self.engine.admission.enter(&mut self.ticket, &self.recorder);
        self.engine.check_open()?;
        let permit = entered.permit();
        if !self.engine.log.has_space(permit, Log::framed_bytes(payload)) {
            return Ok(None);
        }
        let _guard = self.engine.stop_on_panic();
        let mut seat = Seat { permit, recorder: &self.recorder, spares: &mut self.spares };
        Ok(Some(operation(&self.engine, &mut seat)))
    }

    /// Waits for space for one record of `payload` bytes.
    pub(crate) fn wait_for_log_space_of(&mut self, payload: usize) -> Result<()> {
        self.wait_for_log_space(Log::framed_bytes(payload))
    }

    #[cold]
    fn wait_for_log_space(&mut self, bytes: usize) -> Result<()> {
        self.ticket.release();
        self.engine.wait_for_log_space(bytes, &self.recorder)
    }

    /// As [`make_space_for_versions`](Self::make_space_for_versions), where they take too much.
    pub(crate) fn make_space_if_over(&mut self) {
        if self.engine.old_versions.is_over() {
            self.make_space_for_versions();
        }
    }

    /// Drops old versions until they take no more than they may, which may have to wait for the log.
    #[cold]
    pub(crate) fn make_space_for_versions(&mut self) {
        self.ticket.release();
        let engine = &self.engine;
        make_space(engine, &self.recorder, &|| engine.all_trees());
    }

    /// Its number among the owners of locks.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What a wait for another transaction's locks needs to know. To be [released](Self::release) before.
    pub(super) fn waiter(&self) -> Waiter<'_> {
        Waiter { runtime: &self.engine, recorder: &self.recorder, wait: &self.lock_wait }
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
        let mut looks = 0;
        while self.engine.log.prefix() < lsn && !self.engine.has_failed() {
            looks += 1;
            std::thread::yield_now();
        }
        self.recorder
            .spun(Spin::CompletedPrefix, Spun { spins: looks, backoffs: looks, sleeps: 0 });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        for frame in self.spares.drain(..) {
            self.engine.frames.give_back(frame);
        }
    }
}
