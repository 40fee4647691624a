//! Opening a log that exists: read it, then go on behind its last whole record.
//!
//! Invariants
//! 1. [`Log::recover`] changes nothing on disk. [`RecoveredLog::resume`] first rewrites what may be
//!    in the page cache only (after a failed sync it may differ from the disk), with the same
//!    bytes, and syncs it.
//! 2. Segments that do not belong to the chain are removed before the first append, or moved to where
//!    older ones are kept.
//! 3. The torn tail is overwritten by the blocks of the new incarnation. What is left of it never
//!    passes for one of them: it has another incarnation and another predecessor.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use onrush_files::{AlignedBuffer, Disk, OpenMode};
use onrush_lsn::Lsn;

use crate::error::LogError;
use crate::log::Log;
use crate::options::LogOptions;
use crate::pool::SegmentPool;
use crate::reader::{self, Apply, Chain};
use crate::segment::{Segment, SegmentFolder};
use crate::units::LogPosition;
use crate::writer::{NextBlock, Writer};

/// A log that has been read to its end, before anything is appended.
#[derive(Debug)]
pub struct RecoveredLog {
    options: LogOptions,
    folder: SegmentFolder,
    chain: Chain,
}

impl Log {
    /// Reads the log from `from` (what the superblock remembers of [`Log::position`]) to its end,
    /// and hands every whole record to `apply`, once, in LSN order. Changes nothing on disk. A torn
    /// tail is left out.
    ///
    /// # Errors
    /// `Damaged`: something that was durable cannot be read. `EndsEarly`: the log ends below
    /// `must_reach`. `Disk`, `InvalidOption`, and whatever `apply` returns.
    pub fn recover(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        from: LogPosition,
        must_reach: Lsn,
        apply: Apply<'_>,
    ) -> Result<RecoveredLog, LogError> {
        options.validate()?;
        let folder = SegmentFolder::new(disk, &options);
        let chain =
            reader::read_chain(&folder, &from, must_reach, options.progress.as_deref(), apply)?;
        Ok(RecoveredLog { options, folder, chain })
    }
}

impl Log {
    /// Whether anything was ever written to the segments in `folder`, of whichever log they are: a
    /// creation that was cut off leaves them empty.
    ///
    /// # Errors
    /// `Disk`.
    pub fn holds_blocks(disk: Arc<dyn Disk>, folder: &Path) -> Result<bool, LogError> {
        let folder = SegmentFolder::of_any_log(disk, folder);
        for number in folder.numbers()? {
            if reader::begins_with_a_block(&folder.open_unchecked(number)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl RecoveredLog {
    /// Where the log ends: the next record gets this LSN.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.chain.records_end
    }

    /// The incarnation of the last block, or that of the position read from if there is none.
    #[must_use]
    pub fn last_incarnation(&self) -> u64 {
        self.chain.incarnation
    }

    /// Makes sure that what was read is on disk, and opens the log for appending.
    ///
    /// `incarnation` is higher than any that this log ever had, and durable (in the superblock)
    /// before this call.
    ///
    /// # Errors
    /// `InvalidOption` if the incarnation is not higher; `DiskFull`, `Disk`.
    pub fn resume(self, incarnation: u64) -> Result<Log, LogError> {
        if incarnation <= self.chain.incarnation {
            return Err(LogError::InvalidOption {
                name: "incarnation",
                reason: format!("must be above {}", self.chain.incarnation),
            });
        }
        let first = self.chain.segments.front().map_or(0, |segment| segment.number);
        self.folder.check_kept(first)?;
        self.rewrite_unproven()?;
        let older = self.older_to_keep(first)?;
        self.remove_others(first - older.len() as u64)?;
        let Self { options, folder, chain } = self;
        let next_block = NextBlock {
            database_id: options.database_id,
            incarnation,
            is_first: true,
            next: chain.records_end,
            offset: chain.offset,
            previous_checksum: chain.previous_checksum,
            newest_block_us: chain.newest_block_us,
        };
        let Some(last) = chain.segments.back().cloned() else {
            return Err(LogError::Closed); // a chain has the segment it began in
        };
        let writer = Writer::new(&options, next_block, last);
        let in_use = older.into_iter().chain(chain.segments).collect();
        let pool = SegmentPool::new(folder, &options, in_use);
        // What no checkpoint needs is there for whoever keeps it elsewhere: it holds what it will read.
        pool.begin_recycled(first);
        let keep_from = options.keep_from_segment;
        let log = Log::start(options, pool, writer)?;
        log.keep_from_opening(keep_from);
        Ok(log)
    }

    fn rewrite_unproven(&self) -> Result<(), LogError> {
        for block in &self.chain.unproven {
            let segment = self.chain.segments.iter().find(|one| one.number == block.segment);
            let Some(segment) = segment else { continue };
            let mut bytes = AlignedBuffer::new(block.bytes);
            segment.file.read_at(&mut bytes, block.offset)?;
            segment.file.write_at_durable(&bytes, block.offset)?;
        }
        Ok(())
    }

    /// Segments below the chain that are to stay: those directly below it that are whole.
    fn older_to_keep(&self, first: u64) -> Result<VecDeque<Segment>, LogError> {
        let mut older = VecDeque::new();
        let from = self.options.keep_from_segment.unwrap_or(first).max(1);
        for number in (from..first).rev() {
            match self.folder.open(number, OpenMode::ReadWrite)? {
                Some(segment) => older.push_front(segment),
                None => break,
            }
        }
        Ok(older)
    }

    fn remove_others(&self, first: u64) -> Result<(), LogError> {
        let last = self.chain.segments.back().map_or(first, |segment| segment.number);
        let is_ours = |number: &u64| (first..=last).contains(number);
        let mut others = self.folder.numbers()?;
        others.retain(|number| !is_ours(number));
        if let Some(kept) = &self.folder.kept_folder {
            let (older, rest) = others.into_iter().partition(|number| *number < first);
            self.keep_whole(kept, older)?;
            others = rest;
        }
        let behind = others.partition_point(|number| *number < first);
        self.folder.remove(&others[..behind])?;
        // The last one first, and each durably: never is one there without those before it.
        for number in others[behind..].iter().rev() {
            self.folder.remove(&[*number])?;
        }
        Ok(())
    }

    /// A crash came between the checkpoint that made these superfluous and their move.
    fn keep_whole(&self, kept: &Path, numbers: Vec<u64>) -> Result<(), LogError> {
        let mut broken = Vec::new();
        for number in numbers {
            match self.folder.open(number, OpenMode::ReadOnly)? {
                Some(_) => self.folder.keep(kept, &[number])?,
                None => broken.push(number),
            }
        }
        Ok(self.folder.remove(&broken)?)
    }
}
