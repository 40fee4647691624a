//! The superblock: what is installed, and from where to redo. Two copies in turn; the newer valid
//! one counts. Byte by byte: `docs/data-file.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{
    AlignedBuffer, BLOCK_BYTES, Disk, DiskError, DiskErrorKind, DiskFile, OpenMode,
};
use onrush_log::{LogPosition, Lsn};

use super::directory::{push_address, take_address};
use crate::error::{Damage, Error, Result};
use crate::space::{BlobAddress, FORMAT_VERSION};

const MAGIC: &[u8; 8] = b"ONRUSH\0\0";
const HEADER_BYTES: usize = 16;
/// Where the two copies are, and the folders of data and log, which never change.
const COPIES: [u64; 2] = [0, 64 << 10];
const FOLDERS_AT: u64 = 128 << 10;
const FOLDERS_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) database_id: u128,
    /// Grows with every write; its lowest bit chooses the copy.
    pub(crate) generation: u64,
    /// Number of the installed checkpoint; 0 before the first.
    pub(crate) checkpoint: u64,
    /// Raised at each open, before the first append.
    pub(crate) incarnation: u64,
    /// C: redo starts here.
    pub(crate) start: LogPosition,
    /// E: the installed images hold nothing at or above; the log must reach it.
    pub(crate) end: Lsn,
    /// The directory; none before the first checkpoint.
    pub(crate) root: Option<BlobAddress>,
    /// What is below E was durable at this moment, in microseconds since 1970 by the clock of the machine; at
    /// first the moment of the creation. Orders nothing, but tells a restore how old the images are.
    pub(crate) end_us: u64,
    /// Set by a restore, and never changed.
    pub(crate) restored: Option<Restored>,
}

/// What a restore has noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Restored {
    /// Drawn by the restore: what is committed from then on belongs to it.
    pub(crate) history: u128,
    pub(crate) from: RestoredFrom,
}

/// Which history a database goes on from, and how far it had it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoredFrom {
    /// What [`Database::id`](crate::Database::id) was before.
    pub history: u128,
    /// Every commit of that history below is here, and none at or above.
    pub lsn: Lsn,
}

/// The folders that were chosen when the database was created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Folders {
    pub(crate) data: Vec<PathBuf>,
    pub(crate) log: PathBuf,
}

/// No honest counter gets here, counting a billion times a second for thirty years. Refused at open,
/// so that none reaches its end while the database is open: LSNs end at 2^62, the others at 2^64.
pub(crate) const COUNTER_LIMIT: u64 = 1 << 61;

/// The path of the superblock of the database in `folder`.
pub(crate) fn superblock_path(folder: &Path) -> PathBuf {
    folder.join("superblock.onrush")
}

impl Superblock {
    fn encode(&self) -> AlignedBuffer {
        let mut body = Vec::new();
        body.extend_from_slice(&self.database_id.to_le_bytes());
        for number in [self.generation, self.checkpoint, self.incarnation, self.end.0] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&self.start.encode());
        body.push(u8::from(self.root.is_some()));
        if let Some(root) = self.root {
            push_address(root, &mut body);
        }
        body.extend_from_slice(&self.end_us.to_le_bytes());
        body.push(u8::from(self.restored.is_some()));
        if let Some(Restored { history, from }) = self.restored {
            body.extend_from_slice(&history.to_le_bytes());
            body.extend_from_slice(&from.history.to_le_bytes());
            body.extend_from_slice(&from.lsn.0.to_le_bytes());
        }
        sealed(&body, BLOCK_BYTES)
    }

    /// What cannot be right: a counter so high that nothing counts so far, or a place in the log that is
    /// none.
    fn impossible(&self) -> Option<String> {
        let counters = [
            ("the generation", self.generation),
            ("the checkpoint's number", self.checkpoint),
            ("the incarnation", self.incarnation),
            ("E, an LSN,", self.end.0),
            ("C, an LSN,", self.start.lsn.0),
            ("the log segment of C", self.start.segment),
            ("the offset of C", self.start.offset),
            ("the incarnation of C", self.start.incarnation),
        ];
        let at_its_end = counters.into_iter().find(|(_, number)| *number >= COUNTER_LIMIT);
        if let Some((name, number)) = at_its_end {
            return Some(format!("{name} is {number}, which no database reaches"));
        }
        let (offset, block) = (self.start.offset, BLOCK_BYTES as u64);
        if offset < block || !offset.is_multiple_of(block) {
            return Some(format!("the offset of C is {offset}, where no log block begins"));
        }
        let (end, start) = (self.end, self.start.lsn);
        (end < start).then(|| format!("E, LSN {end}, is below C, LSN {start}"))
    }

    fn decode(body: &[u8]) -> Option<Superblock> {
        let (id, rest) = body.split_first_chunk::<16>()?;
        let (numbers, rest) = rest.split_first_chunk::<32>()?;
        let (start, rest) = rest.split_first_chunk::<{ LogPosition::BYTES }>()?;
        let (has_root, mut rest) = rest.split_first()?;
        let number = |index: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[index * 8..index * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        let root = if *has_root == 1 { Some(take_address(&mut rest)?) } else { None };
        let (end_us, rest) = rest.split_first_chunk()?;
        let (is_restored, rest) = rest.split_first()?;
        Some(Superblock {
            database_id: u128::from_le_bytes(*id),
            generation: number(0),
            checkpoint: number(1),
            incarnation: number(2),
            end: Lsn(number(3)),
            start: LogPosition::decode(start),
            root,
            end_us: u64::from_le_bytes(*end_us),
            restored: if *is_restored == 1 { Some(Restored::decode(rest)?) } else { None },
        })
    }
}

impl Restored {
    fn decode(bytes: &[u8]) -> Option<Restored> {
        let (history, rest) = bytes.split_first_chunk()?;
        let (before, rest) = rest.split_first_chunk()?;
        let from = RestoredFrom {
            history: u128::from_le_bytes(*before),
            lsn: Lsn(u64::from_le_bytes(*rest.first_chunk()?)),
        };
        Some(Restored { history: u128::from_le_bytes(*history), from })
    }
}

/// A body with magic, version, checksum and length in front, padded with zeros to `bytes`.
fn sealed(body: &[u8], bytes: usize) -> AlignedBuffer {
    let mut block = AlignedBuffer::new(bytes);
    block[..8].copy_from_slice(MAGIC);
    block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    block[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    let checksum = block_checksum(&block);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
    block
}

fn block_checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[HEADER_BYTES..])
}

/// The body of a sealed block.
enum Opened<'b> {
    Valid(&'b [u8]),
    Future(u32),
    Damaged,
}

fn open_sealed(block: &[u8]) -> Opened<'_> {
    let version = u32::from_le_bytes([block[8], block[9], block[10], block[11]]);
    if &block[..8] != MAGIC || block[12..16] != block_checksum(block).to_le_bytes() {
        return Opened::Damaged;
    }
    if version > FORMAT_VERSION {
        return Opened::Future(version);
    }
    Opened::Valid(&block[HEADER_BYTES..])
}

/// The open superblock file.
pub(crate) struct SuperblockFile {
    file: Arc<dyn DiskFile>,
}

impl SuperblockFile {
    /// Creates the file with its first superblock: the moment at which the database exists.
    pub(crate) fn create(
        disk: &dyn Disk,
        folder: &Path,
        first: &Superblock,
        folders: &Folders,
    ) -> Result<SuperblockFile> {
        let path = superblock_path(folder);
        let temporary = path.with_extension("new");
        if disk.exists(&temporary)? {
            disk.remove(&temporary)?;
        }
        let file = disk.open(&temporary, OpenMode::CreateNew)?;
        file.allocate(FOLDERS_AT + FOLDERS_BYTES as u64)?;
        file.write_at(&encode_folders(folder, folders)?, FOLDERS_AT)?;
        for copy in COPIES {
            file.write_at(&first.encode(), copy)?;
        }
        file.sync()?;
        disk.rename(&temporary, &path)?;
        disk.sync_folder(folder)?;
        let file = disk.open(&path, OpenMode::ReadWrite)?;
        Ok(SuperblockFile { file })
    }

    /// Opens the file and reads the newer valid superblock.
    ///
    /// # Errors
    /// No database; a newer format; both copies damaged. Nothing was changed.
    pub(crate) fn open(
        disk: &dyn Disk,
        folder: &Path,
    ) -> Result<(SuperblockFile, Superblock, Folders)> {
        let path = superblock_path(folder);
        let file = disk.open(&path, OpenMode::ReadWrite)?;
        let mut newest: Option<Superblock> = None;
        for copy in COPIES {
            let mut block = AlignedBuffer::new(BLOCK_BYTES);
            read_whole(&*file, &mut block, copy)?;
            match open_sealed(&block) {
                Opened::Future(found) => {
                    return Err(Error::FutureFormat { path, found, known: FORMAT_VERSION });
                }
                Opened::Damaged => {}
                Opened::Valid(body) => {
                    let superblock = Superblock::decode(body);
                    let newer = superblock.filter(|superblock| {
                        newest.as_ref().is_none_or(|n| n.generation < superblock.generation)
                    });
                    newest = newer.or(newest);
                }
            }
        }
        let damaged = |offset, what: &str| Error::Damaged(Damage::new(&path, offset, what));
        let superblock =
            newest.ok_or_else(|| damaged(0, "both copies of the superblock are damaged"))?;
        if let Some(what) = superblock.impossible() {
            return Err(damaged(COPIES[(superblock.generation & 1) as usize], &what));
        }
        let mut block = AlignedBuffer::new(FOLDERS_BYTES);
        read_whole(&*file, &mut block, FOLDERS_AT)?;
        let folders = match open_sealed(&block) {
            Opened::Valid(body) => decode_folders(folder, body),
            _ => None,
        };
        let folders =
            folders.ok_or_else(|| damaged(FOLDERS_AT, "the list of folders is damaged"))?;
        Ok((SuperblockFile { file }, superblock, folders))
    }

    /// All bytes of the file, as the copies and the folders stand in it.
    pub(crate) fn read_all(&self) -> Result<AlignedBuffer> {
        let mut bytes = AlignedBuffer::new(FOLDERS_AT as usize + FOLDERS_BYTES);
        read_whole(&*self.file, &mut bytes, 0)?;
        Ok(bytes)
    }

    /// Writes the older copy; durable when this returns.
    pub(crate) fn write(&self, superblock: &Superblock) -> std::result::Result<(), DiskError> {
        let copy = COPIES[(superblock.generation & 1) as usize];
        self.file.write_at_durable(&superblock.encode(), copy)
    }
}

/// Reads; a file that ends too early is a damaged one.
fn read_whole(file: &dyn DiskFile, block: &mut [u8], at: u64) -> Result<()> {
    file.read_at(block, at).map_err(|error| match error.kind() {
        DiskErrorKind::EndOfFile => {
            Error::Damaged(Damage::new(file.path(), at, "the superblock file is cut off"))
        }
        _ => Error::from(error),
    })
}

/// Folders inside the database folder are kept relative to it, so that it can be moved.
fn encode_folders(folder: &Path, folders: &Folders) -> Result<AlignedBuffer> {
    let mut body = vec![folders.data.len() as u8];
    for path in folders.data.iter().chain([&folders.log]) {
        let path = path.strip_prefix(folder).unwrap_or(path);
        let text = path.to_str().ok_or_else(|| Error::BadOption {
            setting: "data_folders",
            given: path.display().to_string(),
            reason: "paths must be UTF-8".into(),
        })?;
        body.extend_from_slice(&(text.len() as u16).to_le_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    if body.len() > FOLDERS_BYTES - HEADER_BYTES {
        return Err(Error::BadOption {
            setting: "data_folders",
            given: format!("{} bytes of paths", body.len()),
            reason: format!("at most {} bytes in all", FOLDERS_BYTES - HEADER_BYTES),
        });
    }
    Ok(sealed(&body, FOLDERS_BYTES))
}

fn decode_folders(folder: &Path, body: &[u8]) -> Option<Folders> {
    let (count, mut rest) = body.split_first()?;
    let mut paths = Vec::new();
    for _ in 0..=*count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (text, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        paths.push(folder.join(std::str::from_utf8(text).ok()?));
        rest = after;
    }
    let log = paths.pop()?;
    Some(Folders { data: paths, log })
}
