//! One write round: completed records become blocks, in as few writes as possible, and then they
//! are durable.
//!
//! Invariants
//! 1. A round ends at the completed prefix, which is the end of a record; `durable` moves only
//!    there, after the sync.
//! 2. Record bytes are copied into memory of the writer's own before they are written: what is
//!    under a checksum does not change during the write, and their place in the ring is free as
//!    soon as they are copied.
//! 3. A block that was handed to the system is never written again.
//! 4. Nothing is written after the first error.

use std::num::NonZero;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Instant, SystemTime};

use onrush_files::AlignedBuffer;
use onrush_lsn::Lsn;
use onrush_waits::{Counter, Phase, Recorder};

use crate::block::{self, FORMAT_VERSION, Header};
use crate::core::Core;
use crate::error::LogError;
use crate::options::{DISK_BLOCK_BYTES, LogOptions};
use crate::pool::Prepared;
use crate::segment::{SEGMENT_HEADER_BYTES, Segment};
use crate::units::LogPosition;

/// The most bytes of one write call.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// Where the log is written, by whoever leads.
#[derive(Debug)]
pub(crate) struct Writer {
    next_block: NextBlock,
    segment: Segment,
    staging: AlignedBuffer,
    payload_bytes_max: usize,
    padded_bytes_max: usize,
    last_durable_to: Lsn,        // of the last block
    last_round: Option<Instant>, // None: it left nothing to write
}

/// Where the next block of the chain goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextBlock {
    pub(crate) database_id: u128,
    pub(crate) incarnation: u64,
    /// No block of this incarnation has been written yet.
    pub(crate) is_first: bool,
    pub(crate) next: Lsn,
    pub(crate) offset: u64,
    pub(crate) previous_checksum: Option<NonZero<u32>>,
    /// When the newest block before this one was built, in microseconds since 1970.
    pub(crate) newest_block_us: Option<u64>,
}

impl Writer {
    pub(crate) fn new(options: &LogOptions, next_block: NextBlock, segment: Segment) -> Self {
        let padded_bytes_max = options.padded_block_bytes_max();
        let staging_bytes =
            (options.ring_bytes * 2).clamp(padded_bytes_max, WRITE_BYTES_MAX.max(padded_bytes_max));
        Self {
            next_block,
            segment,
            staging: AlignedBuffer::new(staging_bytes),
            payload_bytes_max: block::payload_bytes_max(options),
            padded_bytes_max,
            last_durable_to: next_block.next,
            last_round: None,
        }
    }

    /// The LSN that the next block starts with.
    pub(crate) fn next(&self) -> Lsn {
        self.next_block.next
    }

    /// When the newest block was built that was there already.
    pub(crate) fn newest_block_us(&self) -> Option<u64> {
        self.next_block.newest_block_us
    }

    /// Where the next block goes.
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition {
            lsn: self.next_block.next,
            segment: self.segment.number,
            offset: self.next_block.offset,
            incarnation: self.next_block.incarnation,
            previous_checksum: self.next_block.previous_checksum,
        }
    }

    /// Writes everything complete and makes it durable.
    pub(crate) fn round(&mut self, core: &Core, recorder: &Recorder) -> Result<(), LogError> {
        if core.check().is_err() {
            return Ok(()); // those who wait will see it
        }
        let delayed_since = core.delayed.begin_round(|| core.clock.now_micros());
        let prefix = core.in_flight.prefix();
        if prefix > self.next_block.next {
            self.write_to(core, prefix, recorder)?;
        }
        if core.delayed.end_round(delayed_since, core.in_flight.tail() > prefix) {
            core.bell.ring_for_delayed();
        }
        Ok(())
    }

    /// A block without records, after everything is durable: it says so, which makes damage below
    /// it visible for ever.
    pub(crate) fn write_marker(
        &mut self,
        core: &Core,
        recorder: &Recorder,
    ) -> Result<(), LogError> {
        if self.last_durable_to < self.next_block.next && core.failure().is_none() {
            let used = self.build_marker(core)?;
            self.write(core, used, 1, recorder)?;
            core.set_position(self.position());
        }
        Ok(())
    }

    fn write_to(&mut self, core: &Core, prefix: Lsn, recorder: &Recorder) -> Result<(), LogError> {
        let began = Instant::now();
        let before = self.next_block.next;
        while self.next_block.next < prefix {
            self.change_segment(core)?;
            let (used, blocks) = {
                let _work = recorder.work(Phase::LogWrite);
                self.build(core, prefix)
            };
            self.write(core, used, blocks, recorder)?;
        }
        core.set_position(self.position());
        core.durable.store(prefix, Release);
        core.last_round_bytes.store(core.in_flight.tail() - before, Relaxed);
        let gap = self.last_round.map(|last| last.elapsed());
        let has_more = core.in_flight.tail() > prefix;
        self.last_round = has_more.then(Instant::now);
        core.numbers.round(prefix - before, began.elapsed(), gap);
        recorder.count(Counter::LogRounds, 1);
        Ok(())
    }

    /// Goes on to the next segment if this one is full.
    fn change_segment(&mut self, core: &Core) -> Result<(), LogError> {
        if self.next_block.offset < self.segment.bytes {
            return Ok(());
        }
        let segment = loop {
            if let Some(segment) = core.pool.take() {
                break segment;
            }
            // Admission leaves space for what was reserved; only the first segments of a log may
            // still be on their way.
            match core.pool.prepare()? {
                Prepared::Made | Prepared::Enough => {}
                Prepared::AtCapacity => return Err(LogError::CapacityReached),
            }
        };
        self.segment = segment;
        self.next_block.offset = SEGMENT_HEADER_BYTES;
        Ok(())
    }

    /// Builds the blocks for one write call; returns its bytes and blocks.
    fn build(&mut self, core: &Core, prefix: Lsn) -> (usize, u64) {
        let (durable_to, now_us) = (core.durable(), wall_clock_us());
        let mut used = 0;
        let mut blocks = 0;
        while self.next_block.next < prefix {
            let in_segment = self.segment.bytes - (self.next_block.offset + used as u64);
            let space = usize::try_from(in_segment).map_or(usize::MAX, |bytes| bytes);
            let space = space.min(self.padded_bytes_max).min(self.staging.len() - used);
            if space < DISK_BLOCK_BYTES {
                break;
            }
            let payload_max = (space - block::HEADER_BYTES).min(self.payload_bytes_max);
            let rest = usize::try_from(prefix - self.next_block.next).unwrap_or(usize::MAX);
            used += self.seal(core, used, rest.min(payload_max), (durable_to, now_us));
            blocks += 1;
        }
        (used, blocks)
    }

    fn build_marker(&mut self, core: &Core) -> Result<usize, LogError> {
        self.change_segment(core)?;
        Ok(self.seal(core, 0, 0, (core.durable(), wall_clock_us())))
    }

    /// Builds one block at `at` of the staging memory, with its durable-up-to LSN and time; returns
    /// its bytes.
    fn seal(
        &mut self,
        core: &Core,
        at: usize,
        payload_bytes: usize,
        (durable_to, built_at_us): (Lsn, u64),
    ) -> usize {
        let header = Header {
            format_version: FORMAT_VERSION,
            is_first: self.next_block.is_first,
            database_id: self.next_block.database_id,
            incarnation: self.next_block.incarnation,
            segment: self.segment.number,
            offset: self.next_block.offset + at as u64,
            start: self.next_block.next,
            durable_to,
            built_at_us,
            payload_bytes,
            previous_checksum: self.next_block.previous_checksum,
        };
        core.note_block(built_at_us);
        let padded = header.padded_bytes();
        let block = &mut self.staging[at..at + padded];
        let checksum = header.seal(block, |from, piece| {
            // SAFETY: below the prefix that this round computed, and not released before it is
            // copied here. Covered by tests/appends.rs.
            unsafe { core.ring.read(header.start + from as u64, piece) };
        });
        self.next_block.previous_checksum = NonZero::new(checksum);
        self.next_block.is_first = false;
        self.next_block.next = header.end();
        self.last_durable_to = durable_to;
        core.numbers.block(padded, padded - block::HEADER_BYTES - payload_bytes);
        padded
    }

    fn write(
        &mut self,
        core: &Core,
        used: usize,
        blocks: u64,
        recorder: &Recorder,
    ) -> Result<(), LogError> {
        let offset = self.next_block.offset;
        self.next_block.offset += used as u64;
        self.publish_space(core); // the ring bytes are copied
        core.written.store(self.next_block.next, Release);
        let began = Instant::now();
        self.segment.file.write_at_durable(&self.staging[..used], offset)?;
        core.numbers.write(began.elapsed());
        recorder.count(Counter::LogBlocks, blocks);
        recorder.count(Counter::LogBytes, used as u64);
        recorder.count(Counter::LogSyncs, 1);
        Ok(())
    }

    /// Tells inserters up to where they may go: the ring bytes not copied yet, and what fits into
    /// the log files.
    pub(crate) fn publish_space(&self, core: &Core) {
        let spare = ((2 * core.options.permits + 4) * DISK_BLOCK_BYTES) as u64;
        let here = self.segment.bytes.saturating_sub(self.next_block.offset);
        let mut capacity = self.payload_capacity(here.saturating_sub(spare));
        let mut spare = spare.saturating_sub(here);
        core.pool.note_space_left(here);
        core.pool.for_each_ready(|bytes| {
            capacity += self.payload_capacity(bytes.saturating_sub(spare));
            spare = spare.saturating_sub(bytes);
        });
        core.append_space
            .publish(self.next_block.next + capacity.min(core.options.ring_bytes as u64));
        if core.check().is_err() {
            core.append_space.close(); // whoever failed or closed it may have come in between
        }
    }

    /// Record bytes that fit into so many bytes of one segment.
    fn payload_capacity(&self, bytes: u64) -> u64 {
        let whole = bytes / self.padded_bytes_max as u64 * self.payload_bytes_max as u64;
        let rest = bytes % self.padded_bytes_max as u64;
        whole + rest.saturating_sub(block::HEADER_BYTES as u64)
    }
}

/// Microseconds since 1970; 0 for a clock that stands before.
fn wall_clock_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
