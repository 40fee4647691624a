//! The log as its users see it.
//!
//! Appending is split so that the caller can put it around its own latch: log space is promised before
//! the latch ([`Log::has_space`]), the LSN is taken under it ([`Log::reserve`]), and the copy into
//! the ring comes after ([`Log::fill`], [`Log::complete`]). Nothing between `reserve` and
//! `complete` blocks or fails.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use onrush_fault::{Fault, planted};
use onrush_files::Disk;
use onrush_lsn::Lsn;
use onrush_waits::{Recorder, Wait};

use crate::background::{Background, time_until_due};
use crate::core::Core;
use crate::error::{Cause, LogError};
use crate::frame;
use crate::options::LogOptions;
use crate::pool::SegmentPool;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentFolder};
use crate::statistics::LogStatistics;
use crate::tail::LogTail;
use crate::units::{LogPosition, Reservation};
use crate::writer::{NextBlock, Writer};

/// Log space, for deciding when to take a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpace {
    /// Bytes of the segments that hold records not recycled yet, as far as they are written; without those that are
    /// kept beyond the capacity.
    pub in_use_bytes: u64,
    /// The most that all segments together may take.
    pub capacity_bytes: u64,
}

/// The write-ahead log, shared by all sessions. Dropped without [`Log::close`] it stops as in a
/// crash.
#[derive(Debug)]
pub struct Log {
    core: Arc<Core>,
    background: Mutex<Background>,
    /// Keeps what an earlier opening has kept, until somebody reads it.
    kept_at_opening: Mutex<Option<LogHold>>,
}

impl Log {
    /// A new, empty log of incarnation 1 in a folder that exists and holds no segments. Its first
    /// segment is durable when this returns.
    ///
    /// # Errors
    /// `InvalidOption`, `DiskFull`, `Disk`.
    pub fn create(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Log, LogError> {
        options.validate()?;
        let folder = SegmentFolder::new(disk, &options);
        folder.check_kept(1)?;
        let segment = folder.create(1)?;
        let next_block = NextBlock {
            database_id: options.database_id,
            incarnation: 1,
            is_first: true,
            next: Lsn::FIRST,
            offset: SEGMENT_HEADER_BYTES,
            previous_checksum: None,
            newest_block_us: None,
        };
        let writer = Writer::new(&options, next_block, segment.clone());
        let pool = SegmentPool::new(folder, &options, [segment].into());
        Log::start(options, pool, writer)
    }

    pub(crate) fn start(
        options: LogOptions,
        pool: SegmentPool,
        writer: Writer,
    ) -> Result<Log, LogError> {
        let core = Arc::new(Core::new(options, pool, writer));
        core.writer().publish_space(&core);
        let background =
            Background::start(&core).map_err(|error| LogError::Thread(Arc::new(error)))?;
        Ok(Log { core, background: Mutex::new(background), kept_at_opening: Mutex::default() })
    }

    /// Bytes that a record takes in the log: its payload and the frame around it.
    #[inline]
    #[must_use]
    pub const fn framed_bytes(payload_bytes: usize) -> usize {
        frame::header_bytes(payload_bytes) + payload_bytes
    }

    /// Whether `permit` may reserve `bytes` (see [`Log::framed_bytes`]). Ask before latching
    /// anything. Cheap: the permit has a credit. A yes stays good for the permit until it has
    /// reserved.
    #[inline]
    #[must_use]
    pub fn has_space(&self, permit: usize, bytes: usize) -> bool {
        self.core.has_space(permit, bytes)
    }

    /// Waits until there is space for a record of `bytes`; may write the log itself. The caller
    /// holds no latch, has no record in flight and needs no permit: it asks [`Log::has_space`] again
    /// once it has one.
    ///
    /// # Errors
    /// `RecordTooLarge`; `DiskFull`: no space for another segment, try again later;
    /// `CapacityReached`: only with the log writer `Callers`, take a checkpoint;
    /// `OutcomeUnknown`, `Closed`.
    pub fn wait_for_space(&self, bytes: usize, recorder: &Recorder) -> Result<(), LogError> {
        self.core.wait_for_space(bytes, recorder)
    }

    /// Takes the next LSNs for a record of `payload_bytes`, and marks `permit` as in flight. The
    /// caller has the permit for itself, and `has_space` has said yes. Never blocks, never fails.
    #[inline]
    pub fn reserve(&self, permit: usize, payload_bytes: usize) -> Reservation {
        let bytes = Self::framed_bytes(payload_bytes) as u64;
        let lsn = self.core.in_flight.reserve(permit, bytes);
        self.core.append_space.used(permit, bytes);
        Reservation { lsn, end: lsn + bytes, permit }
    }

    /// Copies the record, all `parts` one after the other, into the ring. May be called again
    /// before `complete`; the last call counts.
    ///
    /// # Panics
    /// When the parts are not as long as was reserved, or the permit is not in flight with this
    /// reservation.
    #[inline]
    pub fn fill(&self, reservation: &Reservation, parts: &[&[u8]]) {
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let (header, header_bytes) = frame::encode(payload_bytes);
        let start = reservation.lsn;
        assert_eq!(
            reservation.end - start,
            (header_bytes + payload_bytes) as u64,
            "length reserved"
        );
        assert!(
            self.core.in_flight.holds(reservation.permit, start),
            "a record is filled in flight"
        );
        let mut at = start;
        for part in std::iter::once(&header[..header_bytes]).chain(parts.iter().copied()) {
            // SAFETY: `[start, end)` is ours until the permit is completed: checked above. Covered
            // by tests/appends.rs.
            unsafe { self.core.ring.write(at, part) };
            at += part.len() as u64;
        }
    }

    /// The record of `permit` is in the ring, and what it says has been applied: it may become
    /// durable.
    #[inline]
    pub fn complete(&self, permit: usize) {
        self.core.in_flight.complete(permit);
    }

    /// The completed prefix: below it every record is complete. Never goes back. Looks at every
    /// permit.
    #[must_use]
    pub fn prefix(&self) -> Lsn {
        self.core.in_flight.prefix()
    }

    /// Below it every record is on disk.
    #[inline]
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.core.durable()
    }

    /// Below it every record has been handed to the system.
    #[must_use]
    pub fn written(&self) -> Lsn {
        self.core.written.load(Acquire)
    }

    /// Where the next record will start.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> Lsn {
        self.core.in_flight.tail()
    }

    /// Returns when `durable() >= lsn`, which is the end of a completed record or below. Writes the
    /// log itself if nobody else does.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed, `Closed`.
    #[inline]
    pub fn wait_durable(&self, lsn: Lsn, recorder: &Recorder) -> Result<(), LogError> {
        self.core.wait_durable(lsn, Wait::WriteLog, recorder)
    }

    /// For futures: the outcome if it is known already, else `None`, and `waker` is woken when it
    /// may be. With the log writer `Callers` somebody must call [`Log::write_now`].
    pub fn register_waker(&self, lsn: Lsn, waker: &Waker) -> Option<Result<(), LogError>> {
        if self.durable() >= lsn {
            return Some(Ok(()));
        }
        self.core.wakers.add(lsn, waker);
        if self.durable() >= lsn {
            return Some(Ok(()));
        }
        if let Err(error) = self.core.check() {
            return Some(Err(error));
        }
        self.core.bell.ring_for_write();
        None
    }

    /// How many futures wait for a round: those that [`register_waker`](Self::register_waker) took.
    pub fn waiting_futures(&self) -> usize {
        self.core.wakers.count()
    }

    /// One write round for whoever waits, unless somebody is writing. Does not wait for others.
    /// Returns `durable()`.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed, `Closed`.
    pub fn write_now(&self, recorder: &Recorder) -> Result<Lsn, LogError> {
        self.core.check()?;
        self.core.write_if_idle(recorder);
        self.core.check()?;
        Ok(self.durable())
    }

    /// With the log writer `Callers`: how late it is, by any clock that does not go back. With a
    /// thread the system says so, and this is ignored.
    pub fn set_time(&self, now: Duration) {
        self.core.clock.set(now);
    }

    /// With the log writer `Callers`, the duty of the missing thread: begins the round for delayed
    /// commits if it is due. Returns after how much time to call again; `None` if no delayed commit
    /// waits for its round.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed, `Closed`.
    pub fn write_due(&self, recorder: &Recorder) -> Result<Option<Duration>, LogError> {
        let core = &*self.core;
        core.check()?;
        if core.delayed.since().is_some() && time_until_due(core).is_none() {
            core.write_or_wait(recorder);
            core.check()?;
        }
        let is_waiting = core.delayed.since().is_some();
        Ok(is_waiting.then(|| time_until_due(core).unwrap_or_default()))
    }

    /// A delayed commit whose record ends at `end` is about to be acknowledged. Returns at once,
    /// unless more than the window would not be durable, or the disk has stalled for longer than
    /// the window: then it waits.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed, `Closed`.
    #[inline]
    pub fn note_delayed(&self, end: Lsn, recorder: &Recorder) -> Result<(), LogError> {
        let core = &*self.core;
        let window = core.options.window;
        if core.delayed.note(|| core.clock.now_micros()) {
            core.bell.ring_for_delayed();
        }
        let behind = end.bytes_since(core.durable());
        if behind > window.bytes / 2 {
            core.bell.ring_for_write();
            if behind > window.bytes && !planted(Fault::WindowBytesIgnored) {
                return core.wait_durable(end - window.bytes, Wait::DelayedWindow, recorder);
            }
        }
        if core.delayed.is_stalled(window.milliseconds, || core.clock.now_micros())
            && !planted(Fault::StallIgnored)
        {
            // Until that round has ended. The next one takes this commit, in time.
            let next = end.min(core.durable() + 1);
            return core.wait_durable(next, Wait::DelayedWindow, recorder);
        }
        match core.failure() {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Where the next block will start: a record starts there, and all below it is durable. What a
    /// checkpoint remembers as C. To have it near the prefix, call [`Log::write_now`] first.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.core.position()
    }

    /// When the newest block was built, in microseconds since 1970 by the clock of the machine; none while there is
    /// none. All records below [`Log::position`] are in blocks that are no newer.
    #[must_use]
    pub fn newest_block_us(&self) -> Option<u64> {
        self.core.newest_block_us()
    }

    /// Frees the segments wholly below `position` for reuse. Call it after the superblock that
    /// names it is durable.
    ///
    /// # Errors
    /// `Disk`: a name could not be removed; the log has failed then.
    pub fn recycle_below(&self, position: &LogPosition) -> Result<(), LogError> {
        self.core
            .pool
            .recycle_below(position.segment)
            .inspect_err(|error| self.core.fail(error.clone()))
    }

    /// Keeps the segments from `position` on until the hold is dropped, whatever is recycled: for
    /// whoever reads them while the log goes on. The caller sees to it that they are there still.
    ///
    /// The capacity stays what it is, so a hold that lasts makes those who append wait.
    #[must_use]
    pub fn hold(&self, position: &LogPosition) -> LogHold {
        let core = Arc::clone(&self.core);
        LogHold { id: core.pool.hold(position.segment, false), core }
    }

    /// Reads whole blocks from `position` on, which stay until they are [let go](LogTail::let_go_below): for
    /// whoever keeps the log elsewhere. What only that needs takes space beyond the capacity, so that nobody waits
    /// for it; whoever reads sees to it that it does not take too much.
    #[must_use]
    pub fn tail_from(&self, position: &LogPosition) -> LogTail {
        let core = Arc::clone(&self.core);
        let hold = LogHold { id: core.pool.hold(position.segment, true), core };
        self.keep_from_opening(None);
        LogTail::new(hold, position.segment)
    }

    /// Bytes of log files that opening has kept and nobody reads yet.
    #[must_use]
    pub fn kept_at_opening_bytes(&self) -> u64 {
        let kept = self.kept_at_opening.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(0, |_| self.core.pool.held_bytes(0))
    }

    /// Keeps the segments from `segment` on until somebody reads them, also over a clean close, as opening does that is
    /// told to. None: nobody will read them.
    pub fn keep_from_opening(&self, segment: Option<u64>) {
        let hold = segment.map(|segment| {
            let core = Arc::clone(&self.core);
            LogHold { id: core.pool.hold(segment, true), core }
        });
        let mut kept = self.kept_at_opening.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *kept, hold);
        drop(kept);
        drop(before);
    }

    /// Where the log went on when it was opened: blocks from there on are of its newest incarnation.
    #[must_use]
    pub fn opened_at(&self) -> LogPosition {
        self.core.opened_at
    }

    /// How much of the log files is in use.
    #[must_use]
    pub fn space(&self) -> LogSpace {
        let (in_use_bytes, capacity_bytes) = self.core.pool.space();
        LogSpace { in_use_bytes, capacity_bytes }
    }

    /// Makes the log fail for good: every wait not satisfied, now and later, returns
    /// `OutcomeUnknown`.
    pub fn fail(&self, cause: Cause) {
        self.core.fail(LogError::OutcomeUnknown { cause });
    }

    /// The failure, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.core.failure().cloned()
    }

    /// Makes everything durable and stops the background threads; nothing is written after. The
    /// caller has stopped appending. Returns where the log ends.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed, now or earlier; `Closed` the second time.
    pub fn close(&self, recorder: &Recorder) -> Result<LogPosition, LogError> {
        if !planted(Fault::CloseNotDurable) {
            self.core.wait_durable(self.core.in_flight.tail(), Wait::WriteLog, recorder)?;
        }
        self.core.check()?;
        if let Err(error) = self.core.writer().write_marker(&self.core, recorder) {
            self.core.fail(error);
        }
        self.core.check()?;
        self.stop();
        Ok(self.core.position())
    }

    fn stop(&self) {
        self.core.is_closed.store(true, Release);
        self.core.append_space.close();
        self.core.wakers.wake_all();
        self.background.lock().unwrap_or_else(PoisonError::into_inner).stop(&self.core);
    }

    /// What the log has done since it was opened.
    #[must_use]
    pub fn statistics(&self) -> LogStatistics {
        self.core.numbers.read()
    }
}

/// Keeps segments of the log; see [`Log::hold`].
#[derive(Debug)]
pub struct LogHold {
    pub(crate) core: Arc<Core>,
    pub(crate) id: u64,
}

impl Drop for LogHold {
    fn drop(&mut self) {
        // A log that is closed stays as it is: the next opening may keep what was held.
        if self.core.is_closed.load(Acquire) {
            return;
        }
        if let Err(error) = self.core.pool.release(self.id) {
            self.core.fail(error);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}
