//! What inserters, waiters and writers of one log share, and its failure.
//!
//! Invariants
//! 1. Once `failure` is set it stays set; every wait not yet satisfied returns it, and nothing more
//!    is written.
//! 2. `durable <= written <= prefix <= tail`, and none of them goes back.

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use onrush_lsn::{AtomicLsn, Lsn};
use onrush_waits::{Counter, Recorder};

use crate::append_space::AppendSpace;
use crate::background::Bell;
use crate::clock::Clock;
use crate::delayed::Delayed;
use crate::error::LogError;
use crate::group::CommitGroups;
use crate::options::LogOptions;
use crate::pool::{Prepared, SegmentPool};
use crate::prefix::InFlight;
use crate::ring::Ring;
use crate::shared_time::SharedTime;
use crate::statistics::Numbers;
use crate::units::LogPosition;
use crate::wakers::Wakers;
use crate::writer::Writer;

/// The shared part of a log.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: CachePadded<LogOptions>, // read for each record, as the next two and `failure`
    pub(crate) in_flight: InFlight,
    pub(crate) append_space: AppendSpace,
    pub(crate) ring: CachePadded<Ring>,
    pub(crate) groups: CommitGroups,
    pub(crate) durable: CachePadded<AtomicLsn>, // raised by the leader, once a round
    pub(crate) written: AtomicLsn,              // raised by the leader
    pub(crate) gather_holiday: AtomicU64,       // rounds for which nobody gathers; leader only
    pub(crate) polling_holiday: AtomicU64, // rounds for which nobody polls; set by who did in vain
    pub(crate) last_round_bytes: AtomicU64, // written, or published meanwhile; by the leader
    pub(crate) wakers: Wakers,
    pub(crate) delayed: Delayed,
    pub(crate) clock: Clock, // for the milliseconds of the delayed window
    pub(crate) bell: Bell,
    pub(crate) pool: SegmentPool,
    pub(crate) numbers: Numbers,
    pub(crate) is_closed: AtomicBool, // set once, by close; no round begins after it
    pub(crate) started: Instant,      // zero of all times kept as numbers
    failure: CachePadded<OnceLock<LogError>>, // set once, by whoever saw it first
    writer: Mutex<Writer>,            // locked by the leader, and shortly by whoever made a segment
    newest_block_us: SharedTime,      // when it was built; raised by the leader
    position: Mutex<LogPosition>,     // stored by the leader at the end of a round
    pub(crate) opened_at: LogPosition,
}

impl Core {
    pub(crate) fn new(options: LogOptions, pool: SegmentPool, writer: Writer) -> Self {
        let start = writer.next();
        Self {
            in_flight: InFlight::new(options.permits, start),
            append_space: AppendSpace::new(
                options.permits,
                options.ring_bytes,
                options.record_bytes_max,
                start,
            ),
            ring: CachePadded::new(Ring::new(options.ring_bytes)),
            groups: CommitGroups::new(),
            durable: CachePadded::new(AtomicLsn::new(start)),
            written: AtomicLsn::new(start),
            gather_holiday: AtomicU64::new(0),
            polling_holiday: AtomicU64::new(0),
            last_round_bytes: AtomicU64::new(0),
            wakers: Wakers::default(),
            delayed: Delayed::default(),
            clock: Clock::new(options.writer),
            bell: Bell::default(),
            pool,
            numbers: Numbers::default(),
            is_closed: AtomicBool::new(false),
            started: Instant::now(),
            failure: CachePadded::default(),
            newest_block_us: SharedTime::new(writer.newest_block_us()),
            position: Mutex::new(writer.position()),
            opened_at: writer.position(),
            writer: Mutex::new(writer),
            options: CachePadded::new(options),
        }
    }

    #[inline]
    pub(crate) fn durable(&self) -> Lsn {
        self.durable.load(Acquire)
    }

    /// Nanoseconds since the log was opened.
    pub(crate) fn now_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The right to write, for the leader.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the newest block was built, in microseconds since 1970.
    pub(crate) fn newest_block_us(&self) -> Option<u64> {
        self.newest_block_us.get(Acquire)
    }

    /// A block is about to be written. A clock that was set back does not make it older than those before.
    pub(crate) fn note_block(&self, built_at_us: u64) {
        self.newest_block_us.raise(built_at_us);
    }

    pub(crate) fn position(&self) -> LogPosition {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_position(&self, position: LogPosition) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// The failure, or that the log is closed.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        if self.is_closed.load(Acquire) { Err(LogError::Closed) } else { Ok(()) }
    }

    pub(crate) fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    /// Remembers the first failure and tells everyone. Sleepers in commit groups are told by their
    /// leader.
    pub(crate) fn fail(&self, error: LogError) {
        let error = match error {
            LogError::OutcomeUnknown { .. } => error,
            LogError::Disk(cause) | LogError::DiskFull { cause } => {
                LogError::OutcomeUnknown { cause }
            }
            other => LogError::OutcomeUnknown { cause: std::sync::Arc::new(other) },
        };
        let _ = self.failure.set(error); // the first one stays
        self.append_space.close();
        self.wakers.wake_all();
        self.pool.wake_all();
    }

    /// Makes one more segment ready and publishes the space it gives. A failed disk is a failure of
    /// the log, a full one is not.
    pub(crate) fn prepare_segment(&self, recorder: &Recorder) -> Result<Prepared, LogError> {
        let prepared = self.pool.prepare();
        match &prepared {
            Ok(Prepared::Made) => {
                recorder.count(Counter::LogGrowths, 1);
                self.writer().publish_space(self);
            }
            Err(LogError::Disk(cause)) => {
                self.fail(LogError::OutcomeUnknown { cause: cause.clone() });
                self.check()?;
            }
            Ok(Prepared::Enough | Prepared::AtCapacity) | Err(_) => {}
        }
        prepared
    }
}
