//! The log as its users see it. (Skeleton: the calls and their contracts.)
#![allow(clippy::todo, unused_variables)]

use std::sync::Arc;
use std::task::Waker;

use onrush_files::Disk;
use onrush_waits::Recorder;

use crate::error::{Cause, LogError};
use crate::options::LogOptions;
use crate::units::{LogPosition, Lsn, Reservation};

/// What the log has done since it was opened.
#[derive(Clone, Debug, Default)]
pub struct LogStatistics {
    /// Log blocks written.
    pub blocks: u64,
    /// Bytes written, headers and padding included.
    pub bytes: u64,
    /// Of these, padding.
    pub padding_bytes: u64,
    /// Record bytes written.
    pub record_bytes: u64,
    /// Durable writes: one system call that writes and syncs, or a write and a sync.
    pub syncs: u64,
    /// Write rounds.
    pub rounds: u64,
    /// Waits for durability that were satisfied by a round (threads and futures).
    pub waiters_served: u64,
    /// The longest time between the ends of two rounds, in microseconds.
    pub longest_gap_micros: u64,
    /// Rounds by their time in microseconds: bucket n counts those below 2^n.
    pub sync_micros_histogram: [u64; 32],
}

/// The write-ahead log. Shared by all sessions behind an `Arc` or a reference.
pub struct Log {}

/// A log that has been read to its end, before anything is appended.
pub struct RecoveredLog {}

impl RecoveredLog {
    /// Where the log ends: the next record gets this LSN.
    pub fn end(&self) -> Lsn {
        todo!()
    }
    /// The highest incarnation that a block of the log carries; 0 if there is no block.
    pub fn last_incarnation(&self) -> u64 {
        todo!()
    }
    /// Rewrites and syncs what may be in the page cache only, then opens the log for appending under `incarnation`,
    /// which the caller has raised and made durable.
    pub fn resume(self, incarnation: u64) -> Result<Log, LogError> {
        todo!()
    }
}

impl Log {
    /// A new, empty log, incarnation 1; its files are durable when this returns.
    pub fn create(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Log, LogError> {
        todo!()
    }
    /// Reads the log from `from` to its end and hands every complete record to `apply` once, in LSN order. A torn tail
    /// is cut (at resume); damage below what was durable, or an end before `must_reach`, is an error.
    pub fn recover(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        from: LogPosition,
        must_reach: Lsn,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), LogError>,
    ) -> Result<RecoveredLog, LogError> {
        todo!()
    }
    /// May `bytes` (payload and frame: [`Log::framed_bytes`]) be reserved at `place`? Cheap: a credit of the place.
    /// What was promised stays promised to the place until it reserves.
    pub fn has_room(&self, place: usize, bytes: usize) -> bool {
        todo!()
    }
    /// Waits until `has_room` is true; may write the log itself. Call it without latches.
    pub fn wait_for_room(
        &self,
        place: usize,
        bytes: usize,
        recorder: &Recorder,
    ) -> Result<(), LogError> {
        todo!()
    }
    /// Bytes that a record takes: its payload and the frame around it.
    pub const fn framed_bytes(payload_bytes: usize) -> usize {
        payload_bytes + 5
    }
    /// Takes the next LSNs for a record of `payload_bytes`, and marks `place` as in flight. The caller has the place for
    /// itself and `has_room` has said yes. Never blocks.
    pub fn reserve(&self, place: usize, payload_bytes: usize) -> Reservation {
        todo!()
    }
    /// Copies the record, all `parts` one after the other, into the ring.
    pub fn fill(&self, reservation: &Reservation, parts: &[&[u8]]) {
        todo!()
    }
    /// The record is in the ring and its change is applied: the place is free again.
    pub fn complete(&self, place: usize) {
        todo!()
    }
    /// Below it every record is complete. Never goes back.
    pub fn prefix(&self) -> Lsn {
        todo!()
    }
    /// Below it every record is on disk.
    pub fn durable(&self) -> Lsn {
        todo!()
    }
    /// Below it every record has been handed to the system.
    pub fn written(&self) -> Lsn {
        todo!()
    }
    /// Where the next record will start.
    pub fn tail(&self) -> Lsn {
        todo!()
    }
    /// Returns when `durable() >= lsn`; may write the log itself.
    pub fn wait_durable(&self, lsn: Lsn, recorder: &Recorder) -> Result<(), LogError> {
        todo!()
    }
    /// For futures: `Some` if the outcome is known already, else `waker` is woken when it may be.
    pub fn register_waker(&self, lsn: Lsn, waker: &Waker) -> Option<Result<(), LogError>> {
        todo!()
    }
    /// One write round for whoever waits, if nobody else is writing. Returns `durable()`.
    pub fn write_now(&self, recorder: &Recorder) -> Result<Lsn, LogError> {
        todo!()
    }
    /// A delayed commit ends at `end`: returns at once unless that would break the declared window.
    pub fn note_delayed(&self, end: Lsn, recorder: &Recorder) -> Result<(), LogError> {
        todo!()
    }
    /// Where the next block will start: what a checkpoint remembers as C. All below it is durable.
    pub fn position(&self) -> LogPosition {
        todo!()
    }
    /// Gives segments wholly below `position` free for reuse. Call it after the superblock that names it is durable.
    pub fn recycle_below(&self, position: &LogPosition) -> Result<(), LogError> {
        todo!()
    }
    /// Bytes of log files that cannot be recycled yet, and the capacity: when to start a checkpoint.
    pub fn space(&self) -> (u64, u64) {
        todo!()
    }
    /// Makes the failure sticky: every waiter, now and later, gets `OutcomeUnknown`.
    pub fn fail(&self, cause: Cause) {
        todo!()
    }
    /// The failure, if there was one.
    pub fn failure(&self) -> Option<LogError> {
        todo!()
    }
    /// Makes everything durable and writes nothing after that.
    pub fn close(self, recorder: &Recorder) -> Result<LogPosition, LogError> {
        todo!()
    }
    /// What the log has done since it was opened.
    pub fn statistics(&self) -> LogStatistics {
        todo!()
    }
}
