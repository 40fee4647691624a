//! The settings of the log, each with unit, range and reason.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use onrush_waits::Registry;

use crate::error::LogError;
use crate::progress::ReadProgress;

/// Bytes of the blocks that the disk writes whole; log blocks are a multiple of it.
pub(crate) const DISK_BLOCK_BYTES: usize = onrush_files::BLOCK_BYTES;

/// How much a delayed commit may stay behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedWindow {
    /// The sync is issued before the oldest delayed commit is this old; while a stalled disk makes
    /// it older, further delayed commits wait. At least 1.
    pub milliseconds: u64,
    /// Never more than this many record bytes of acknowledged delayed commits are not durable. Hard
    /// bound.
    pub bytes: u64,
}

/// Who writes the log when no durable commit waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWriter {
    /// Background threads: one writes for delayed commits and futures, one prepares log segments.
    /// Durable commits are written by whoever waits for them all the same.
    Thread {
        /// Pin the writer to this processor; `None` lets the system choose.
        cpu: Option<usize>,
    },
    /// No thread at all: whoever waits writes, `write_now` writes for futures, and the milliseconds
    /// of the delayed window are the caller's duty ([`Log::write_due`](crate::Log::write_due)).
    /// Single-threaded simulation uses this.
    Callers,
}

/// Everything there is to choose about a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The folder of the segments; it exists, and holds nothing else.
    pub folder: PathBuf,
    /// Where segments that no checkpoint needs are moved, instead of being used again. It exists, on
    /// the file system of `folder`. None: they are not kept.
    pub kept_folder: Option<PathBuf>,
    /// Opening leaves the segments from this number on where they are, though no checkpoint needs them: whoever
    /// keeps the log elsewhere has not read them yet. None: they are removed, or moved to `kept_folder`.
    pub keep_from_segment: Option<u64>,
    /// Which database this log belongs to; part of every block.
    pub database_id: u128,
    /// Records that may be between `reserve` and `complete` at the same time: one permit each. 1 to
    /// 4096.
    pub permits: usize,
    /// Bytes between inserters and disk, a power of two. Larger rides out longer stalls of the
    /// disk.
    pub ring_bytes: usize,
    /// Bytes of a segment file, a multiple of 4096, at least 16 KiB.
    pub segment_bytes: u64,
    /// The largest block, 512 B to 1 MiB, padded to 4 KiB on disk. One block takes one checksum.
    pub block_bytes_max: usize,
    /// All segments together. At least what the ring can hold and three segments more.
    pub capacity_bytes: u64,
    /// The largest record with its frame. At most a quarter of the ring.
    pub record_bytes_max: usize,
    /// How much delayed commits may stay behind.
    pub window: DelayedWindow,
    /// How long a commit that waits may poll before it sleeps, in microseconds; 0 is never. It gives
    /// its processor away at each look, and does so only while more commits wait than there are
    /// processors.
    pub commit_polling_us: u64,
    /// How many processors that is.
    pub processors: usize,
    /// Who writes when nobody waits.
    pub writer: LogWriter,
    /// Where the background threads count what they do.
    pub registry: Arc<Registry>,
    /// Who is told how far [`Log::recover`](crate::Log::recover) is; one more look at the segments.
    pub progress: Option<Arc<ReadProgress>>,
}

impl LogOptions {
    /// Sensible settings for `permits` concurrent inserters.
    #[must_use]
    pub fn new(
        folder: PathBuf,
        database_id: u128,
        permits: usize,
        registry: Arc<Registry>,
    ) -> Self {
        Self {
            folder,
            kept_folder: None,
            keep_from_segment: None,
            database_id,
            permits,
            ring_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            block_bytes_max: 1 << 20,
            capacity_bytes: 4 << 30,
            record_bytes_max: 4 << 20,
            window: DelayedWindow { milliseconds: 10, bytes: 4 << 20 },
            commit_polling_us: 1000,
            processors: available_parallelism().map_or(1, NonZero::get),
            writer: LogWriter::Thread { cpu: None },
            registry,
            progress: None,
        }
    }

    /// The largest block on disk, in bytes, padding included.
    pub(crate) fn padded_block_bytes_max(&self) -> usize {
        self.block_bytes_max.next_multiple_of(DISK_BLOCK_BYTES)
    }

    /// The least capacity for the ring, segments and blocks there are.
    #[must_use]
    pub fn capacity_bytes_min(&self) -> u64 {
        self.reserve_bytes().saturating_add(self.segment_bytes.saturating_mul(3))
    }

    /// Checks every setting against its range, as creating and opening a log do first.
    ///
    /// # Errors
    /// [`LogError::InvalidOption`]: the first setting that is out of its range.
    pub fn validate(&self) -> Result<(), LogError> {
        let Self {
            folder: _,
            kept_folder: _,
            keep_from_segment: _,
            database_id: _,
            permits,
            ring_bytes,
            segment_bytes,
            block_bytes_max,
            capacity_bytes,
            record_bytes_max,
            window,
            commit_polling_us: _,
            processors: _,
            writer: _,
            registry: _,
            progress: _,
        } = self;
        let check = |holds: bool, name: &'static str, reason: &str| {
            if holds {
                Ok(())
            } else {
                Err(LogError::InvalidOption { name, reason: reason.into() })
            }
        };
        check((1..=4096).contains(permits), "permits", "1 to 4096")?;
        check(ring_bytes.is_power_of_two(), "ring_bytes", "a power of two")?;
        check(*ring_bytes >= 16 << 10, "ring_bytes", "at least 16 KiB")?;
        check(
            *ring_bytes >= permits * 512,
            "ring_bytes",
            "at least 512 bytes for each permit, which takes its space from it in advance",
        )?;
        check(
            segment_bytes.is_multiple_of(DISK_BLOCK_BYTES as u64) && *segment_bytes >= 16 << 10,
            "segment_bytes",
            "a multiple of 4096, at least 16 KiB",
        )?;
        check((512..=1 << 20).contains(block_bytes_max), "block_bytes_max", "512 B to 1 MiB")?;
        check(
            *record_bytes_max >= 16 && *record_bytes_max <= ring_bytes / 4,
            "record_bytes_max",
            "16 bytes to a quarter of the ring, so that others can go on beside the largest",
        )?;
        check(
            *capacity_bytes >= self.capacity_bytes_min(),
            "capacity_bytes",
            "at least what the ring can hold on disk and three segments more",
        )?;
        check(window.milliseconds >= 1, "window.milliseconds", "at least 1")?;
        check(window.bytes >= 1, "window.bytes", "at least 1")
    }

    /// File bytes that a full ring can need in the worst case, short rounds included.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        let blocks = self.ring_bytes.div_ceil(crate::block::payload_bytes_max(self)) + 1;
        let short_rounds = (2 * self.permits + 4) * DISK_BLOCK_BYTES;
        (blocks * self.padded_block_bytes_max() + short_rounds) as u64
    }
}
