//! Reading the log from a position to its end: every block checked and chained, every record handed
//! over once and whole.
//!
//! The end is where a block does not check or does not follow. Whether that is a torn tail or
//! damage is decided by what is known to have been durable: the LSN the caller needs, the
//! durable-up-to LSN of every block that checks, also of blocks behind the end, and segments, which are made
//! one after the other: one that is missing below another was lost. Nothing else decides; a valid block
//! behind a gap alone is no proof, because blocks of one write may reach the disk in any order.
//!
//! Invariants
//! 1. A block follows if it names the checksum of the one before, its place, and the next LSN of
//!    the same incarnation; or if it is the first of a later incarnation and starts where the last
//!    whole record ended.
//! 2. A record is handed over only when the blocks that hold it have all been checked.
//! 3. Reading changes nothing on disk.
//! 4. A block that follows and is of a later format version is neither damage nor a torn tail: it
//!    refuses to open.
//!
//! Not seen: damage in the very last round before a crash looks like a torn tail. The marker block
//! of a clean close shrinks this to nothing when the database was closed.

use std::collections::VecDeque;
use std::num::NonZero;

use onrush_fault::{Fault, planted};
use onrush_files::{AlignedBuffer, BLOCK_BYTES, DiskErrorKind, OpenMode};
use onrush_lsn::Lsn;

use crate::block::{self, FORMAT_VERSION, Header, NoBlock, PADDED_BYTES_MAX};
use crate::error::LogError;
use crate::frame::{self, Frame};
use crate::progress::ReadProgress;
use crate::segment::{SEGMENT_HEADER_BYTES, Segment, SegmentFolder};
use crate::units::LogPosition;

/// Bytes read at a time, at most: the largest block fits.
const WINDOW_BYTES: usize = 2 * PADDED_BYTES_MAX;

/// Where a checked block lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPosition {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    end: Lsn,
}

/// What reading has found out.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The segments from the first to the one that holds the end.
    pub(crate) segments: VecDeque<Segment>,
    /// Where the next block goes.
    pub(crate) offset: u64,
    /// The end of the last whole record.
    pub(crate) records_end: Lsn,
    /// Checksum of the last block.
    pub(crate) previous_checksum: Option<NonZero<u32>>,
    /// Incarnation of the last block, or of the position if there is none.
    pub(crate) incarnation: u64,
    /// Blocks of which it is not known that they were durable.
    pub(crate) unproven: VecDeque<BlockPosition>,
    blocks_end: Lsn,
    durable_to: Lsn,
    has_blocks: bool,
    /// When the newest block was built, in microseconds since 1970.
    pub(crate) newest_block_us: Option<u64>,
}

/// Who gets the records: the LSN and the payload of each.
pub type Apply<'a> = &'a mut dyn FnMut(Lsn, &[u8]) -> Result<(), LogError>;

/// Reads the whole chain from `from`.
pub(crate) fn read_chain(
    folder: &SegmentFolder,
    from: &LogPosition,
    must_reach: Lsn,
    progress: Option<&ReadProgress>,
    apply: Apply<'_>,
) -> Result<Chain, LogError> {
    let mut chain = Chain::begin(folder, from)?;
    let mut records = Records::new(from.lsn);
    let mut window = Window::new();
    if let Some(progress) = progress {
        progress.begin(bytes_max(folder, from, &mut window));
    }
    let reason = loop {
        if !chain.enter_next_segment(folder)? {
            break "the next segment is missing or has no good header".to_owned();
        }
        let Some(segment) = chain.segments.back().cloned() else { break "no segment".to_owned() };
        let block = match window.block(&segment, chain.offset)? {
            Ok(block) => block,
            Err(no_block) => break no_block.reason(),
        };
        let (header, checksum, payload) = block;
        if let Err(reason) = chain.check(folder, &header) {
            break reason;
        }
        if header.format_version != FORMAT_VERSION {
            return Err(folder.future_format(header.segment, header.format_version));
        }
        if header.is_first {
            records.resume(header.start);
        }
        chain.add(&header, checksum);
        records.take(payload, apply).map_err(|error| error.at(&chain))?;
        chain.records_end = records.end;
        if let Some(progress) = progress {
            progress.add(header.padded_bytes() as u64);
        }
    };
    if let Some(progress) = progress {
        progress.end();
    }
    chain.judge(folder, must_reach, reason, &mut window)?;
    Ok(chain)
}

/// Bytes of blocks that may have to be read: up to the end of the last segment whose first block is
/// its own. Segments are made ahead and used again, so that files alone tell too much. What cannot
/// be read ends the count: reading itself will tell why.
fn bytes_max(folder: &SegmentFolder, from: &LogPosition, window: &mut Window) -> u64 {
    let mut bytes = 0;
    for number in folder.numbers().unwrap_or_default() {
        if number < from.segment {
            continue;
        }
        let Ok(segment) = folder.open_unchecked(number) else { break };
        if number == from.segment {
            bytes += segment.bytes.saturating_sub(from.offset);
            continue;
        }
        let Ok(Ok((header, ..))) = window.block(&segment, SEGMENT_HEADER_BYTES) else { break };
        if header.database_id != folder.database_id || header.segment != number {
            break;
        }
        bytes += segment.block_bytes();
    }
    bytes
}

impl Chain {
    fn begin(folder: &SegmentFolder, from: &LogPosition) -> Result<Self, LogError> {
        let segment = folder.open(from.segment, OpenMode::ReadWrite)?;
        let segment = segment.filter(|segment| from.offset <= segment.bytes);
        let segment = segment.ok_or_else(|| LogError::Damaged {
            segment: from.segment,
            offset: from.offset,
            lsn: from.lsn,
            reason: "the segment is missing, too short, or has no good header".into(),
        })?;
        Ok(Self {
            segments: [segment].into(),
            offset: from.offset,
            records_end: from.lsn,
            previous_checksum: from.previous_checksum,
            incarnation: from.incarnation,
            unproven: VecDeque::new(),
            blocks_end: from.lsn,
            durable_to: from.lsn,
            has_blocks: false,
            newest_block_us: None,
        })
    }

    /// The number of the segment that is read.
    pub(crate) fn segment(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.number)
    }

    /// Goes on to the next segment if this one is read; false if there is none.
    fn enter_next_segment(&mut self, folder: &SegmentFolder) -> Result<bool, LogError> {
        if self.segments.back().is_some_and(|segment| self.offset < segment.bytes) {
            return Ok(true);
        }
        let Some(next) = folder.open(self.segment() + 1, OpenMode::ReadWrite)? else {
            return Ok(false);
        };
        self.segments.push_back(next);
        self.offset = SEGMENT_HEADER_BYTES;
        Ok(true)
    }

    /// Whether the block follows what has been read.
    fn check(&self, folder: &SegmentFolder, header: &Header) -> Result<(), String> {
        let is_here = header.database_id == folder.database_id
            && header.segment == self.segment()
            && header.offset == self.offset;
        if !is_here {
            return Err("its block belongs to another place or database".into());
        }
        let unchecked = planted(Fault::ChainUnchecked);
        if header.previous_checksum != self.previous_checksum && !unchecked {
            return Err("its block does not follow the one before".into());
        }
        let follows = if header.is_first {
            let is_later = header.incarnation > self.incarnation
                || (header.incarnation == self.incarnation && !self.has_blocks);
            is_later && header.start == self.records_end
        } else {
            (header.incarnation == self.incarnation || unchecked) && header.start == self.blocks_end
        };
        if follows { Ok(()) } else { Err("its block is of another incarnation or LSN".into()) }
    }

    fn add(&mut self, header: &Header, checksum: u32) {
        let bytes = header.padded_bytes();
        let (segment, offset, end) = (header.segment, header.offset, header.end());
        self.unproven.push_back(BlockPosition { segment, offset, bytes, end });
        self.durable_to = self.durable_to.max(header.durable_to);
        while self
            .unproven
            .front()
            .is_some_and(|block| block.end <= self.durable_to && block.end < end)
        {
            self.unproven.pop_front();
        }
        self.offset += bytes as u64;
        self.blocks_end = end;
        self.previous_checksum = NonZero::new(checksum);
        self.incarnation = header.incarnation;
        self.has_blocks = true;
        self.newest_block_us = self.newest_block_us.max(Some(header.built_at_us));
    }

    /// Torn tail or damage?
    fn judge(
        &mut self,
        folder: &SegmentFolder,
        must_reach: Lsn,
        reason: String,
        window: &mut Window,
    ) -> Result<(), LogError> {
        let behind = self.durable_behind(folder, window)?;
        let proven = behind.map_or(self.durable_to, |behind| behind.max(self.durable_to));
        if proven > self.records_end && !planted(Fault::RotTakenForTear) {
            return Err(LogError::Damaged {
                segment: self.segment(),
                offset: self.offset,
                lsn: self.records_end,
                reason: format!(
                    "{reason}; blocks behind it say that all below lsn {proven} was durable"
                ),
            });
        }
        if must_reach > self.records_end {
            return Err(LogError::EndsEarly {
                segment: self.segment(),
                offset: self.offset,
                ends_at: self.records_end,
                must_reach,
            });
        }
        if let Some((lost, later)) = folder.lost_behind(self.segment())? {
            return Err(LogError::Damaged {
                segment: lost,
                offset: 0,
                lsn: self.records_end,
                reason: format!(
                    "the segment is missing or has no good header, and segment {later} is there, which \
                     was made after it: the log ends before what was in it"
                ),
            });
        }
        Ok(())
    }

    /// The highest durable-up-to LSN of a block behind the end, if there is one that says so.
    fn durable_behind(
        &self,
        folder: &SegmentFolder,
        window: &mut Window,
    ) -> Result<Option<Lsn>, LogError> {
        let mut highest = None;
        for number in folder.numbers()?.into_iter().filter(|number| *number >= self.segment()) {
            // A damaged header must not hide the blocks that prove the damage.
            let segment = match self.segments.back() {
                Some(last) if last.number == number => last.clone(),
                _ => folder.open_unchecked(number)?,
            };
            let is_end = number == self.segment();
            let mut offset = if is_end { self.offset } else { SEGMENT_HEADER_BYTES };
            // Segments are filled from the start: of later ones the first blocks tell.
            let until = if is_end { segment.bytes } else { segment.bytes.min(WINDOW_BYTES as u64) };
            while offset < until {
                let mut step = BLOCK_BYTES as u64;
                if let Ok((header, _, _)) = window.block(&segment, offset)? {
                    let is_ours = header.database_id == folder.database_id
                        && (header.segment, header.offset) == (number, offset);
                    if is_ours {
                        highest = highest.max(Some(header.durable_to));
                        step = header.padded_bytes() as u64;
                    }
                }
                offset += step;
            }
        }
        Ok(highest)
    }
}

/// A part of a segment in memory.
struct Window {
    buffer: AlignedBuffer,
    segment: u64,
    start: u64,
    bytes: usize,
}

type Found<'a> = Result<(Header, u32, &'a [u8]), NoBlock>;

impl Window {
    fn new() -> Self {
        Self { buffer: AlignedBuffer::new(0), segment: 0, start: 0, bytes: 0 }
    }

    /// The block at `offset`, or why there is none.
    fn block(&mut self, segment: &Segment, offset: u64) -> Result<Found<'_>, LogError> {
        let Some(at) = self.position(segment, offset, BLOCK_BYTES)? else {
            return Ok(Err(NoBlock::Length));
        };
        let bytes = match block::claimed_bytes(&self.buffer[at..]) {
            Ok(bytes) => bytes,
            Err(no_block) => return Ok(Err(no_block)),
        };
        let Some(at) = self.position(segment, offset, bytes)? else {
            return Ok(Err(NoBlock::Length));
        };
        Ok(block::open(&self.buffer[at..at + bytes]))
    }

    /// Where `[offset, offset + bytes)` lies in the buffer, read if it is not there; `None` if the
    /// segment ends before.
    fn position(
        &mut self,
        segment: &Segment,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<usize>, LogError> {
        if offset + bytes as u64 > segment.bytes {
            return Ok(None);
        }
        let ends_inside = offset + bytes as u64 <= self.start + self.bytes as u64;
        if self.segment != segment.number || offset < self.start || !ends_inside {
            let rest = usize::try_from(segment.bytes - offset).unwrap_or(usize::MAX);
            let count = rest.min(WINDOW_BYTES);
            self.bytes = 0;
            // As long as segments are, where they are short: most databases are small.
            if self.buffer.len() < count {
                self.buffer = AlignedBuffer::new(count);
            }
            match segment.file.read_at(&mut self.buffer[..count], offset) {
                Err(error) if error.kind() == DiskErrorKind::EndOfFile => return Ok(None),
                result => result?,
            }
            (self.segment, self.start, self.bytes) = (segment.number, offset, count);
        }
        Ok(usize::try_from(offset - self.start).ok())
    }
}

/// Whether a block was ever written at the beginning of a segment, of whichever log.
pub(crate) fn begins_with_a_block(segment: &Segment) -> Result<bool, LogError> {
    Ok(Window::new().block(segment, SEGMENT_HEADER_BYTES)?.is_ok())
}

/// Records out of a stream of record bytes.
struct Records {
    end: Lsn,         // of the last whole record
    partial: Vec<u8>, // the bytes from there on
}

/// Why a record could not be handed over.
enum RecordError {
    Frame(Lsn),
    Apply(LogError),
}

impl RecordError {
    fn at(self, chain: &Chain) -> LogError {
        match self {
            Self::Apply(error) => error,
            Self::Frame(lsn) => LogError::Damaged {
                segment: chain.segment(),
                offset: chain.offset,
                lsn,
                reason:
                    "a record's length makes no sense, though the block before this offset checks"
                        .into(),
            },
        }
    }
}

impl Records {
    fn new(start: Lsn) -> Self {
        Self { end: start, partial: Vec::new() }
    }

    /// The log was cut at `lsn`, the end of the last whole record; what came behind it is dropped.
    fn resume(&mut self, lsn: Lsn) {
        debug_assert_eq!(lsn, self.end);
        self.partial.clear();
    }

    /// Takes the record bytes of one checked block.
    fn take(&mut self, mut bytes: &[u8], apply: Apply<'_>) -> Result<(), RecordError> {
        while !self.partial.is_empty() {
            match frame::decode(&self.partial) {
                Frame::Whole { start, end } => {
                    apply(self.end, &self.partial[start..end]).map_err(RecordError::Apply)?;
                    self.end += end as u64;
                    self.partial.clear();
                }
                Frame::Partial { need } => {
                    let count = (need - self.partial.len()).min(bytes.len());
                    if count == 0 {
                        return Ok(());
                    }
                    self.partial.extend_from_slice(&bytes[..count]);
                    bytes = &bytes[count..];
                }
                Frame::Invalid => return Err(RecordError::Frame(self.end)),
            }
        }
        loop {
            match frame::decode(bytes) {
                Frame::Whole { start, end } => {
                    apply(self.end, &bytes[start..end]).map_err(RecordError::Apply)?;
                    self.end += end as u64;
                    bytes = &bytes[end..];
                }
                Frame::Partial { .. } => {
                    self.partial.extend_from_slice(bytes);
                    return Ok(());
                }
                Frame::Invalid => return Err(RecordError::Frame(self.end)),
            }
        }
    }
}
