//! One log segment: a file with a header of 4 KiB, then blocks up to its last byte.
//!
//! | offset | bytes | field                                     |
//! |--------|-------|-------------------------------------------|
//! | 0      | 8     | magic                                     |
//! | 8      | 4     | format version                            |
//! | 12     | 4     | CRC32C over the header but these four bytes |
//! | 16     | 16    | database id                               |
//! | 32     | 8     | number of the segment                     |
//! | 40     | 8     | bytes of the file                         |
//!
//! Invariants
//! 1. Before its first block is written, all of a file has been written once and synced, and its
//!    name is durable: so the write of a block changes no metadata, and cannot meet a full disk.
//! 2. The number is durable in the header before the file is used. A file that was reused holds old
//!    blocks; they carry its old number, so they do not pass.
//! 3. Segments are filled to the last byte: the block after the end of one is the first of the next
//!    number.
//! 4. From the segment that holds the checkpoint's position on there is never one without all before it:
//!    they are made one after the other, and removed from the last one down, each durably.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{
    AlignedBuffer, BLOCK_BYTES, Disk, DiskError, DiskErrorKind, DiskFile, OpenMode,
};

use crate::block::FORMAT_VERSION;
use crate::error::LogError;
use crate::options::LogOptions;

/// Bytes before the first block.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = BLOCK_BYTES as u64;
const MAGIC: [u8; 8] = *b"ONRUSHLS";
const ZERO_BYTES: usize = 1 << 20;
const NAME_START: &str = "log-";
const NAME_END: &str = ".segment";
const PROBE_NAME: &str = "can-be-moved";

/// A segment with its open file.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Written as a whole since the log was opened, so that it may be used again.
    pub(crate) is_reusable: bool,
}

impl Segment {
    /// Bytes for blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.bytes - SEGMENT_HEADER_BYTES
    }
}

/// The folder of the segments.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFolder {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
    pub(crate) kept_folder: Option<PathBuf>,
    pub(crate) database_id: u128,
    pub(crate) segment_bytes: u64,
}

impl SegmentFolder {
    /// The folder that the options name.
    pub(crate) fn new(disk: Arc<dyn Disk>, options: &LogOptions) -> Self {
        Self {
            disk,
            folder: options.folder.clone(),
            kept_folder: options.kept_folder.clone(),
            database_id: options.database_id,
            segment_bytes: options.segment_bytes,
        }
    }

    /// The segments in `folder`, whosever they are. For looking only.
    pub(crate) fn of_any_log(disk: Arc<dyn Disk>, folder: &Path) -> Self {
        Self { disk, folder: folder.into(), kept_folder: None, database_id: 0, segment_bytes: 0 }
    }

    /// The file of a segment.
    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(segment_name(number))
    }

    /// The numbers of all segment files, ascending.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, DiskError> {
        self.numbers_in(&self.folder)
    }

    fn numbers_in(&self, folder: &Path) -> Result<Vec<u64>, DiskError> {
        let number = |name: &String| {
            name.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?.parse::<u64>().ok()
        };
        let mut numbers: Vec<u64> = self.disk.list(folder)?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Whether segments from `first` on can be kept: they can be moved there, and none of another
    /// log would be lost.
    pub(crate) fn check_kept(&self, first: u64) -> Result<(), LogError> {
        let Some(kept) = &self.kept_folder else { return Ok(()) };
        let refuse = |reason: String| LogError::InvalidOption { name: "kept_log_folder", reason };
        if let Some(last) = self.numbers_in(kept)?.last().filter(|last| **last >= first) {
            return Err(refuse(format!(
                "{} has segment {last} already, and this log goes on from segment {first}: it was \
                 restored to an earlier timestamp, or is another log; name a folder of its own",
                kept.display()
            )));
        }
        let (probe, moved) = (self.folder.join(PROBE_NAME), kept.join(PROBE_NAME));
        if !self.disk.exists(&probe)? {
            self.disk.open(&probe, OpenMode::CreateNew)?;
        }
        self.disk.rename(&probe, &moved).map_err(|error| {
            refuse(format!("{error}; choose a folder on the file system of the log"))
        })?;
        Ok(self.disk.remove(&moved)?)
    }

    /// Makes a new segment; it and its name are durable when this returns. A full disk leaves
    /// nothing behind.
    pub(crate) fn create(&self, number: u64) -> Result<Segment, DiskError> {
        let path = self.path(number);
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        let filled = self.fill(number, file.as_ref());
        let filled = filled.and_then(|()| self.disk.sync_folder(&self.folder));
        if let Err(error) = filled {
            // The first error tells more than one of this.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok(Segment { number, bytes: self.segment_bytes, file, is_reusable: true })
    }

    fn fill(&self, number: u64, file: &dyn DiskFile) -> Result<(), DiskError> {
        file.allocate(self.segment_bytes)?;
        write_zeros(file, SEGMENT_HEADER_BYTES, self.segment_bytes)?;
        file.write_at(&self.header(number), 0)?;
        file.sync()
    }

    /// Gives a segment that nobody needs any more a new number.
    pub(crate) fn reuse(&self, old: Segment, number: u64) -> Result<Segment, DiskError> {
        // Header first: after a crash in between, a file with an old name that no position refers
        // to is removed.
        old.file.write_at_durable(&self.header(number), 0)?;
        self.disk.rename(&self.path(old.number), &self.path(number))?;
        self.disk.sync_folder(&self.folder)?;
        Ok(Segment { number, ..old })
    }

    /// Opens a segment that an earlier run of the database left; `None` if there is no whole one of
    /// that number.
    pub(crate) fn open(&self, number: u64, mode: OpenMode) -> Result<Option<Segment>, LogError> {
        let file = match self.disk.open(&self.path(number), mode) {
            Err(error) if error.kind() == DiskErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let mut header = AlignedBuffer::new(BLOCK_BYTES);
        match file.read_at(&mut header, 0) {
            Err(error) if error.kind() == DiskErrorKind::EndOfFile => return Ok(None),
            result => result?,
        }
        let Some(bytes) = self.check_header(&header, number)? else { return Ok(None) };
        if file.len()? < bytes {
            return Ok(None);
        }
        Ok(Some(Segment { number, bytes, file, is_reusable: false }))
    }

    /// As [`open`](Self::open), but whatever the header says: its blocks name their place and the
    /// database themselves. For looking behind damage only.
    pub(crate) fn open_unchecked(&self, number: u64) -> Result<Segment, DiskError> {
        let file = self.disk.open(&self.path(number), OpenMode::ReadOnly)?;
        let bytes = file.len()?;
        Ok(Segment { number, bytes, file, is_reusable: false })
    }

    fn header(&self, number: u64) -> AlignedBuffer {
        segment_header(self.database_id, number, self.segment_bytes)
    }

    /// The length of the file, if the header is a good one of this segment.
    ///
    /// # Errors
    /// It is a good one of a later format version.
    fn check_header(&self, header: &[u8], number: u64) -> Result<Option<u64>, LogError> {
        let (mut bytes, mut version) = ([0; 8], [0; 4]);
        bytes.copy_from_slice(&header[40..48]);
        version.copy_from_slice(&header[8..12]);
        let (bytes, version) = (u64::from_le_bytes(bytes), u32::from_le_bytes(version));
        let is_ours = header[0..8] == MAGIC
            && header[12..16] == header_checksum(header).to_le_bytes()
            && header[16..32] == self.database_id.to_le_bytes()
            && header[32..40] == number.to_le_bytes();
        if is_ours && version != FORMAT_VERSION {
            return Err(self.future_format(number, version));
        }
        let is_whole = bytes.is_multiple_of(SEGMENT_HEADER_BYTES) && bytes > SEGMENT_HEADER_BYTES;
        Ok((is_ours && is_whole).then_some(bytes))
    }

    /// The error for a segment that a newer Onrush wrote in.
    pub(crate) fn future_format(&self, number: u64, found: u32) -> LogError {
        LogError::FutureFormat { path: self.path(number), found, known: FORMAT_VERSION }
    }

    /// A segment behind `after` that is not there whole although a later one is, and the later one. They
    /// are made in order, each durable before the next is begun, so there was one: its file was lost,
    /// with whatever was in it.
    pub(crate) fn lost_behind(&self, after: u64) -> Result<Option<(u64, u64)>, LogError> {
        let is_whole = |number| Ok::<_, LogError>(self.open(number, OpenMode::ReadOnly)?.is_some());
        let numbers = self.numbers()?;
        for later in numbers.into_iter().rev().take_while(|number| *number > after) {
            if !is_whole(later)? {
                continue;
            }
            for number in after + 1..later {
                if !is_whole(number)? {
                    return Ok(Some((number, later)));
                }
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// Moves whole segments to where they are kept, durably.
    pub(crate) fn keep(&self, kept: &Path, numbers: &[u64]) -> Result<(), DiskError> {
        for number in numbers {
            self.disk.rename(&self.path(*number), &kept.join(segment_name(*number)))?;
        }
        if !numbers.is_empty() {
            self.disk.sync_folder(kept)?;
            self.disk.sync_folder(&self.folder)?;
        }
        Ok(())
    }

    /// Takes the files of these segments away, durably.
    pub(crate) fn remove(&self, numbers: &[u64]) -> Result<(), DiskError> {
        for number in numbers {
            self.disk.remove(&self.path(*number))?;
        }
        if !numbers.is_empty() {
            self.disk.sync_folder(&self.folder)?;
        }
        Ok(())
    }
}

/// The header of a segment whose file has so many bytes.
#[must_use]
pub fn segment_header(database_id: u128, number: u64, bytes: u64) -> AlignedBuffer {
    let mut header = AlignedBuffer::new(BLOCK_BYTES);
    header[0..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..32].copy_from_slice(&database_id.to_le_bytes());
    header[32..40].copy_from_slice(&number.to_le_bytes());
    header[40..48].copy_from_slice(&bytes.to_le_bytes());
    let checksum = header_checksum(&header);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The name of the file of a segment.
#[must_use]
pub fn segment_name(number: u64) -> String {
    format!("{NAME_START}{number:016}{NAME_END}")
}

fn header_checksum(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..BLOCK_BYTES])
}

fn write_zeros(file: &dyn DiskFile, from: u64, to: u64) -> Result<(), DiskError> {
    let zeros = AlignedBuffer::new(ZERO_BYTES);
    let mut offset = from;
    while offset < to {
        let count = usize::try_from(to - offset).map_or(ZERO_BYTES, |rest| rest.min(ZERO_BYTES));
        file.write_at(&zeros[..count], offset)?;
        offset += count as u64;
    }
    Ok(())
}
