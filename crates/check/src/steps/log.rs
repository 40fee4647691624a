//! The log from the checkpoint on: segments, the chain of blocks, and where it ends.
//!
//! Where a limit is set, it is read no further, and there is no end to judge.
//!
//! The end is the first block that does not check or does not follow. It is a torn tail, unless
//! something is known to have been durable above it: E of the superblock, or the durable-up-to LSN of
//! any block that checks, also of one behind the end. Then it is damage, and so it is where a segment is
//! missing below another one.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_files::{AlignedBuffer, DiskFile, OpenMode};
use onrush_lsn::Lsn;

use crate::decode::block::{self, BLOCK_BYTES_MAX, Block, UNIT_BYTES, open_segment, segment_name};
use crate::decode::superblock::COUNTER_END;
use crate::finding::Finding;
use crate::invariant::Invariant;
use crate::source::LogLimit;
use crate::steps::records::{RecordFault, RecordSink};
use crate::store::Store;

/// Bytes read at a time; two of the largest blocks.
const WINDOW_BYTES: usize = 2 * BLOCK_BYTES_MAX;
/// Shorter rests than this allows are not worth a call.
const WORK_BETWEEN_RESTS: Duration = Duration::from_millis(1);
/// A record that is longer than this was never written.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// What was seen of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogTally {
    pub(crate) bytes: u64,
    /// The end of the last whole record.
    pub(crate) end: Lsn,
    /// Below this LSN everything was durable once.
    pub(crate) proven: Lsn,
    /// When the last block was built, in microseconds since 1970.
    pub(crate) end_time_us: Option<u64>,
    /// Whether it was read to a limit, not to its end.
    pub(crate) is_cut: bool,
}

/// Checks the log; `records` is None where only its structure is to be checked.
pub(crate) fn check<S: RecordSink>(store: &Store<'_>, mut records: Option<&mut S>) -> LogTally {
    let start = store.superblock.start;
    let mut chain = Chain {
        store,
        segment: Segment::missing(start.segment),
        offset: start.offset,
        records_end: start.lsn,
        blocks_end: start.lsn,
        durable_to: store.durable_lsn.map_or(start.lsn, |durable| durable.max(start.lsn)),
        end_time_us: None,
        previous_checksum: start.previous_checksum,
        incarnation: start.incarnation,
        has_blocks: false,
        partial: Vec::new(),
        bytes: 0,
    };
    match chain.open(start.segment) {
        Ok(segment) => chain.segment = segment,
        Err(found) => {
            chain.report(Invariant::SegmentReadable, 0, found);
            return chain.tally();
        }
    }
    let mut window = Window::new();
    let mut working_since = Instant::now();
    let reason = loop {
        if working_since.elapsed() > WORK_BETWEEN_RESTS {
            store.companion.rest_in_log(working_since.elapsed());
            working_since = Instant::now();
        }
        if store.gives_up() {
            return chain.tally();
        }
        if chain.is_at_limit() {
            return LogTally { is_cut: true, ..chain.tally() };
        }
        if chain.offset >= chain.segment.bytes {
            match chain.open(chain.segment.number.saturating_add(1)) {
                Ok(segment) => (chain.segment, chain.offset) = (segment, UNIT_BYTES as u64),
                Err(found) => break found,
            }
        }
        let block = match window.block(&chain.segment, chain.offset) {
            Ok(block) => block,
            Err(found) => break found,
        };
        if let Err(found) = chain.follows(&block) {
            break found.to_owned();
        }
        if block.incarnation >= COUNTER_END {
            let found = format!(
                "a block of incarnation {}, and no database reaches {COUNTER_END}",
                block.incarnation
            );
            chain.report(Invariant::CountersPossible, chain.offset, found);
            return chain.tally();
        }
        if matches!(store.log_limit, LogLimit::TimeUs(limit) if block.built_at_us > limit) {
            return LogTally { is_cut: true, ..chain.tally() };
        }
        if let Err(found) = chain.add(&block, records.as_deref_mut()) {
            chain.report(Invariant::RecordDecodes, chain.offset, found);
            return chain.tally();
        }
    };
    chain.judge(&mut window, &reason);
    chain.tally()
}

/// A segment that is open.
#[derive(Clone)]
struct Segment {
    number: u64,
    /// As its header says; 0 for one that is not there.
    bytes: u64,
    file: Option<Arc<dyn DiskFile>>,
}

impl Segment {
    fn missing(number: u64) -> Segment {
        Segment { number, bytes: 0, file: None }
    }
}

/// How far the log has been read.
struct Chain<'a> {
    store: &'a Store<'a>,
    segment: Segment,
    /// Where the next block goes.
    offset: u64,
    /// The end of the last whole record.
    records_end: Lsn,
    /// The end of the last block's record bytes.
    blocks_end: Lsn,
    durable_to: Lsn,
    end_time_us: Option<u64>,
    previous_checksum: Option<NonZero<u32>>,
    incarnation: u64,
    has_blocks: bool,
    /// The record that goes on in the next block, as far as it is there.
    partial: Vec<u8>,
    bytes: u64,
}

impl Chain<'_> {
    fn path(&self, number: u64) -> PathBuf {
        let name = segment_name(number);
        let folders = &self.store.log_folders;
        let holds =
            |folder: &&PathBuf| matches!(self.store.disk.exists(&folder.join(&name)), Ok(true));
        let folder = folders.iter().find(holds).or(folders.last());
        folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name))
    }

    /// Whether the next record, and all behind it, are left out.
    fn is_at_limit(&self) -> bool {
        matches!(self.store.log_limit, LogLimit::Lsn(limit) if self.records_end >= limit)
    }

    fn tally(&self) -> LogTally {
        let proven = self.durable_to.max(self.store.superblock.end);
        LogTally {
            bytes: self.bytes,
            end: self.records_end,
            proven,
            end_time_us: self.end_time_us,
            is_cut: false,
        }
    }

    fn report(&self, invariant: Invariant, offset: u64, found: impl Into<String>) {
        let path = self.path(self.segment.number);
        self.store.findings.add(Finding::new(invariant, path, offset, found));
    }

    /// Opens a segment whose header is good; the error says why there is none.
    fn open(&self, number: u64) -> Result<Segment, String> {
        let (segment, header) = self.header_of(number)?;
        self.store.companion.segment(number, segment.bytes, &header);
        Ok(segment)
    }

    fn header_of(&self, number: u64) -> Result<(Segment, AlignedBuffer), String> {
        let path = self.path(number);
        let file = self.store.disk.open(&path, OpenMode::ReadOnly).map_err(|e| e.to_string())?;
        let mut header = AlignedBuffer::new(UNIT_BYTES);
        file.read_at(&mut header, 0).map_err(|error| error.to_string())?;
        let bytes = open_segment(&header, self.store.superblock.database_id, number)
            .map_err(|found| format!("log segment {number}: {found}"))?;
        if file.len().map_err(|error| error.to_string())? < bytes {
            return Err(format!("log segment {number} is shorter than its header says"));
        }
        Ok((Segment { number, bytes, file: Some(file) }, header))
    }

    fn follows(&self, block: &Block<'_>) -> Result<(), &'static str> {
        let here = (self.store.superblock.database_id, self.segment.number, self.offset);
        if (block.database_id, block.segment, block.offset) != here {
            return Err("the block belongs to another place or database");
        }
        if block.previous_checksum != self.previous_checksum {
            return Err("the block does not follow the one before");
        }
        let follows = if block.is_first {
            let is_later = block.incarnation > self.incarnation
                || (block.incarnation == self.incarnation && !self.has_blocks);
            is_later && block.start == self.records_end
        } else {
            block.incarnation == self.incarnation && block.start == self.blocks_end
        };
        if follows { Ok(()) } else { Err("the block is of another incarnation or LSN") }
    }

    /// Takes a block that follows.
    fn add<S: RecordSink>(
        &mut self,
        block: &Block<'_>,
        records: Option<&mut S>,
    ) -> Result<(), &'static str> {
        if block.is_first {
            // What was cut in the middle is dropped.
            self.partial.clear();
        }
        self.durable_to = self.durable_to.max(block.durable_to);
        self.take_records(block.records, records)?;
        let record_bytes = if self.is_at_limit() {
            (self.records_end - block.start) as usize
        } else {
            block.records.len()
        };
        self.store.companion.block(self.offset, block.bytes, record_bytes);
        // 0 says that the clock stood before 1970.
        self.end_time_us = Some(block.built_at_us).filter(|built_at_us| *built_at_us != 0);
        self.offset += block.padded_bytes as u64;
        self.blocks_end = block.end();
        self.previous_checksum = NonZero::new(block.checksum);
        self.incarnation = block.incarnation;
        self.has_blocks = true;
        self.bytes += block.padded_bytes as u64;
        self.store.progress.add_done(block.padded_bytes as u64);
        Ok(())
    }

    fn take_records<S: RecordSink>(
        &mut self,
        bytes: &[u8],
        mut records: Option<&mut S>,
    ) -> Result<(), &'static str> {
        let carried = std::mem::take(&mut self.partial);
        let joined;
        let mut rest = if carried.is_empty() {
            bytes
        } else {
            joined = [carried.as_slice(), bytes].concat();
            &joined
        };
        loop {
            if self.is_at_limit() {
                return Ok(());
            }
            match read_frame(rest)? {
                None => break,
                Some((header, payload)) => {
                    if let Some(records) = records.as_deref_mut() {
                        self.take_record(&rest[header..header + payload], records);
                    }
                    self.records_end += (header + payload) as u64;
                    rest = &rest[header + payload..];
                }
            }
        }
        if rest.len() > RECORD_BYTES_MAX {
            return Err("a record is longer than any that was written");
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn take_record<S: RecordSink>(&self, payload: &[u8], records: &mut S) {
        let lsn = self.records_end;
        records.take(lsn, payload, &mut |fault: RecordFault| {
            let found = format!("record at LSN {lsn}: {}", fault.found);
            let path = self.path(self.segment.number);
            let mut finding = Finding::new(fault.invariant, path, self.offset, found);
            finding.table = fault.table;
            finding.keys = fault.key.map(|key| format!("key {key}"));
            self.store.findings.add(finding);
        });
    }

    /// Torn tail, damage, or simply the end?
    fn judge(&mut self, window: &mut Window, reason: &str) {
        let at = format!("the log ends at LSN {}: {reason}", self.records_end);
        let (behind, is_torn) = self.look_behind(window);
        self.durable_to = behind.map_or(self.durable_to, |behind| behind.max(self.durable_to));
        let proven = self.durable_to;
        if proven > self.records_end {
            let found = format!("{at}; all below LSN {proven} was durable");
            self.report(Invariant::BlockChain, self.offset, found);
        } else if self.store.superblock.end > self.records_end {
            let found = format!("{at}; E is {}", self.store.superblock.end);
            self.report(Invariant::LogReachesEnd, self.offset, found);
        } else if let Some((lost, later)) = self.lost_segment() {
            let found =
                format!("log segment {lost} is lost: {later} is there, which was made after it");
            let path = self.path(lost);
            self.store.findings.add(Finding::new(Invariant::SegmentReadable, path, 0, found));
        } else if is_torn || !self.partial.is_empty() {
            self.report(Invariant::TornTail, self.offset, at);
        }
    }

    /// The highest durable-up-to LSN of a block behind the end, and whether anything there was meant
    /// to go on from it.
    fn look_behind(&self, window: &mut Window) -> (Option<Lsn>, bool) {
        let (mut highest, mut is_torn) = (None, false);
        for number in self.numbers_from(self.segment.number) {
            let is_end = number == self.segment.number;
            let segment = if is_end { self.segment.clone() } else { self.open_unchecked(number) };
            let mut offset = if is_end { self.offset } else { UNIT_BYTES as u64 };
            // Segments are filled from the start: of later ones the first blocks tell.
            let until = if is_end { segment.bytes } else { segment.bytes.min(WINDOW_BYTES as u64) };
            while offset < until {
                let mut step = UNIT_BYTES as u64;
                match window.block(&segment, offset) {
                    Ok(block) => {
                        let is_ours = block.database_id == self.store.superblock.database_id
                            && (block.segment, block.offset) == (number, offset);
                        if is_ours {
                            highest = highest.max(Some(block.durable_to));
                            is_torn |= block.incarnation >= self.incarnation;
                            step = block.padded_bytes as u64;
                        }
                    }
                    Err(_) => is_torn |= window.names_place(&segment, offset, self.incarnation),
                }
                offset += step;
            }
        }
        (highest, is_torn)
    }

    /// A segment behind the end that is not there whole although a later one is, and the later one: they are
    /// made one after the other, each durable before the next.
    fn lost_segment(&self) -> Option<(u64, u64)> {
        let behind = self.numbers_from(self.segment.number.saturating_add(1));
        let later = behind.into_iter().rev().find(|number| self.header_of(*number).is_ok())?;
        let mut before = self.segment.number + 1..later;
        before.find(|number| self.header_of(*number).is_err()).map(|lost| (lost, later))
    }

    fn numbers_from(&self, first: u64) -> Vec<u64> {
        let list = |folder: &PathBuf| self.store.disk.list(folder).unwrap_or_default();
        let names = self.store.log_folders.iter().flat_map(list);
        let numbers = names.filter_map(|name| block::segment_number(&name));
        let mut numbers: Vec<u64> = numbers.filter(|number| *number >= first).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// A segment whatever its header says: its blocks name their place themselves.
    fn open_unchecked(&self, number: u64) -> Segment {
        let opened = self.store.disk.open(&self.path(number), OpenMode::ReadOnly);
        let length = |file: Arc<dyn DiskFile>| Some((file.len().ok()?, file));
        match opened.ok().and_then(length) {
            Some((bytes, file)) => Segment { number, bytes, file: Some(file) },
            None => Segment::missing(number),
        }
    }
}

/// Length of a record's frame and of its payload, at the front of some bytes. None: the record goes
/// on behind them.
fn read_frame(bytes: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
    let mut payload = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        payload |= usize::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            let is_shortest = index == 0 || *byte != 0;
            if !is_shortest {
                return Err("the length of a record is not in its shortest form");
            }
            let header = index + 1;
            return Ok((header + payload <= bytes.len()).then_some((header, payload)));
        }
    }
    if bytes.len() < 5 { Ok(None) } else { Err("the length of a record makes no sense") }
}

/// A part of a segment in memory.
struct Window {
    buffer: AlignedBuffer,
    segment: u64,
    start: u64,
    bytes: usize,
}

impl Window {
    fn new() -> Window {
        Window { buffer: AlignedBuffer::new(0), segment: 0, start: 0, bytes: 0 }
    }

    /// The block at `offset`; the error says why there is none.
    fn block(&mut self, segment: &Segment, offset: u64) -> Result<Block<'_>, String> {
        let at = self.position(segment, offset, UNIT_BYTES)?;
        let bytes = block::claimed_bytes(&self.buffer[at..])?;
        let at = self.position(segment, offset, bytes)?;
        Ok(block::open(&self.buffer[at..at + bytes])?)
    }

    /// Whether bytes that are no block were meant to be one, here and lately.
    fn names_place(&mut self, segment: &Segment, offset: u64, incarnation: u64) -> bool {
        let Ok(at) = self.position(segment, offset, UNIT_BYTES) else { return false };
        let header = &self.buffer[at..at + UNIT_BYTES];
        block::claims_place(header, segment.number, offset, incarnation)
    }

    /// Where `bytes` bytes from `offset` on lie in the buffer; read if they are not there.
    fn position(&mut self, segment: &Segment, offset: u64, bytes: usize) -> Result<usize, String> {
        if offset + bytes as u64 > segment.bytes {
            return Err("the block would go beyond its segment".to_owned());
        }
        let ends_inside = offset + bytes as u64 <= self.start + self.bytes as u64;
        if self.segment != segment.number || offset < self.start || !ends_inside {
            let rest = usize::try_from(segment.bytes - offset).unwrap_or(WINDOW_BYTES);
            let count = rest.min(WINDOW_BYTES);
            self.bytes = 0;
            // As long as segments are, where they are short: most databases are small.
            if self.buffer.len() < count {
                self.buffer = AlignedBuffer::new(count);
            }
            let file = segment.file.as_ref().ok_or("the segment is missing")?;
            file.read_at(&mut self.buffer[..count], offset).map_err(|error| error.to_string())?;
            (self.segment, self.start, self.bytes) = (segment.number, offset, count);
        }
        Ok((offset - self.start) as usize)
    }
}
