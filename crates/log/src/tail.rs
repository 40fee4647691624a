//! Whole blocks below the durable end, byte by byte, for whoever keeps the log elsewhere.
//!
//! Invariants
//! 1. What is read was durable, and is proven as it is read: place, database, checksum, and the block before.
//! 2. Segments that are held are there. One that is not was let go by whoever reads, or never held.

use std::fmt;
use std::num::NonZero;

use onrush_files::{AlignedBuffer, BLOCK_BYTES};
use onrush_lsn::Lsn;

use crate::block::{self, FORMAT_VERSION, PADDED_BYTES_MAX};
use crate::error::LogError;
use crate::log::LogHold;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::units::LogPosition;

/// Reads the log from a held position on; see [`Log::tail_from`](crate::Log::tail_from).
#[derive(Debug)]
pub struct LogTail {
    hold: LogHold,
    /// What is held begins in it.
    from_segment: u64,
}

/// Some blocks of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Where the block before ends.
    pub from: LogPosition,
    /// Where the last of them ends.
    pub to: LogPosition,
    /// The number of the segment that they lie in: that of `from`, or the next one if `from` is the end of its
    /// segment.
    pub segment: u64,
    /// Bytes of the file of that segment.
    pub segment_bytes: u64,
    /// The blocks.
    pub bytes: Vec<u8>,
}

impl LogTail {
    pub(crate) fn new(hold: LogHold, from_segment: u64) -> Self {
        Self { hold, from_segment }
    }

    /// Where the log ends: everything below is durable.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.hold.core.position()
    }

    /// Whole blocks from `from` on, no more than `bytes_max` unless a single one is longer; none if `from` is the
    /// end of the log.
    ///
    /// # Errors
    /// `NotKept`: it was let go. `Damaged`: what is there does not follow `from`.
    pub fn read(&self, from: &LogPosition, bytes_max: usize) -> Result<Option<LogPart>, LogError> {
        let (core, end) = (&self.hold.core, self.end());
        if from.is_same_place(&end) {
            return Ok(None);
        }
        let not_kept = || LogError::NotKept { segment: from.segment };
        let next = || Some((core.pool.in_use(from.segment + 1)?, SEGMENT_HEADER_BYTES));
        let own = core.pool.in_use(from.segment);
        // Where it is gone, nothing of it is needed if it ended there, which the first block of the next one proves.
        let is_proven_by_next = own.is_none();
        let (segment, offset) = match own {
            Some(own) if from.offset < own.bytes => Some((own, from.offset)),
            _ => next(),
        }
        .ok_or_else(not_kept)?;
        let until = if segment.number == end.segment { end.offset } else { segment.bytes };
        let rest = until.saturating_sub(offset);
        if rest == 0 {
            return if is_proven_by_next { Err(not_kept()) } else { Ok(None) };
        }
        let wanted = (bytes_max.max(PADDED_BYTES_MAX) / BLOCK_BYTES * BLOCK_BYTES) as u64;
        let mut buffer = AlignedBuffer::new(usize::try_from(rest.min(wanted)).unwrap_or(0));
        segment.file.read_at(&mut buffer, offset)?;
        let database_id = core.options.database_id;
        let (to, used) = match follow_blocks(database_id, segment.number, from, &buffer) {
            Err(_) if is_proven_by_next => return Err(not_kept()),
            followed => followed.map_err(|fault| fault.in_log(segment.number))?,
        };
        Ok(Some(LogPart {
            from: *from,
            to,
            segment: segment.number,
            segment_bytes: segment.bytes,
            bytes: buffer[..used].to_vec(),
        }))
    }

    /// The segments below `position` are not needed any more.
    ///
    /// # Errors
    /// `Disk`: a name could not be removed; the log has failed then.
    pub fn let_go_below(&mut self, position: &LogPosition) -> Result<(), LogError> {
        if position.segment <= self.from_segment {
            return Ok(());
        }
        self.from_segment = position.segment;
        let core = &self.hold.core;
        core.pool
            .move_hold(self.hold.id, position.segment)
            .inspect_err(|error| core.fail(error.clone()))
    }

    /// Bytes of log files that are there for this reader alone.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.hold.core.pool.held_bytes(self.from_segment)
    }

    /// Every record that ends at or below this LSN, since the database was opened or before, lies in blocks below
    /// `position`, if everything below `position` was read. Blocks of an earlier incarnation may end in a piece of
    /// a record that was dropped, whose LSNs others have had since.
    #[must_use]
    pub fn lsn_of(&self, position: &LogPosition) -> Lsn {
        let opened = self.hold.core.opened_at;
        match (position.segment, position.offset) > (opened.segment, opened.offset) {
            true => position.lsn,
            false => position.lsn.min(opened.lsn),
        }
    }
}

/// Why bytes are not the blocks that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFault {
    /// Where in the segment's file the block would be.
    pub offset: u64,
    /// The LSN after the last good block.
    pub lsn: Lsn,
    /// What is wrong.
    pub reason: String,
}

impl BlockFault {
    fn in_log(self, segment: u64) -> LogError {
        let BlockFault { offset, lsn, reason } = self;
        LogError::Damaged { segment, offset, lsn, reason }
    }
}

impl fmt::Display for BlockFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "offset {}, after LSN {}: {}", self.offset, self.lsn, self.reason)
    }
}

impl std::error::Error for BlockFault {}

/// Goes over whole blocks of one segment that follow `from`, and returns where they end, and in how many bytes: less
/// than all where the last block goes on behind them.
///
/// # Errors
/// A block that does not check, or does not follow the one before.
pub fn follow_blocks(
    database_id: u128,
    segment: u64,
    from: &LogPosition,
    bytes: &[u8],
) -> Result<(LogPosition, usize), BlockFault> {
    let offset = if from.segment == segment { from.offset } else { SEGMENT_HEADER_BYTES };
    let mut to = LogPosition { segment, offset, ..*from };
    let mut used = 0;
    while bytes.len() - used >= BLOCK_BYTES {
        let rest = &bytes[used..];
        let fault = |reason: String| BlockFault { offset: to.offset, lsn: to.lsn, reason };
        let length = block::claimed_bytes(rest).map_err(|no_block| fault(no_block.reason()))?;
        let Some(whole) = rest.get(..length) else { break };
        let (header, checksum, _) = block::open(whole).map_err(|it| fault(it.reason()))?;
        if header.format_version != FORMAT_VERSION {
            return Err(fault(format!("its block has format {}", header.format_version)));
        }
        if (header.database_id, header.segment, header.offset) != (database_id, segment, to.offset)
        {
            return Err(fault("its block belongs to another place or database".into()));
        }
        if header.previous_checksum != to.previous_checksum {
            return Err(fault("its block does not follow the one before".into()));
        }
        used += length;
        to = LogPosition {
            lsn: header.end(),
            segment,
            offset: to.offset + length as u64,
            incarnation: header.incarnation,
            previous_checksum: NonZero::new(checksum),
        };
    }
    match used {
        0 => Err(BlockFault { offset, lsn: from.lsn, reason: "there is no whole block".into() }),
        _ => Ok((to, used)),
    }
}
