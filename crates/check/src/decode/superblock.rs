//! The superblock file: two copies and the folders.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use onrush_lsn::Lsn;

use super::input::{Input, u32_at};
use super::slot::BlobAddress;
use super::{FORMAT_VERSION, checksum_around, is_zero};

/// Name of the file in the database folder.
pub(crate) const FILE_NAME: &str = "superblock.onrush";
/// Byte positions of the copies for even and odd generations.
pub(crate) const COPY_AT: [u64; 2] = [0, 65_536];
/// Bytes of a copy.
pub(crate) const COPY_BYTES: usize = 4096;
/// Byte position of the folders.
pub(crate) const FOLDERS_AT: u64 = 131_072;
/// Bytes of the folders.
pub(crate) const FOLDERS_BYTES: usize = 65_536;
const MAGIC: &[u8; 8] = b"ONRUSH\0\0";
/// No counter gets here, counting a billion times a second for thirty years.
pub(crate) const COUNTER_END: u64 = 1 << 61;

/// Where redo starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) lsn: Lsn,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) incarnation: u64,
    /// None where 0 is stored: there is no block before, or its checksum is 0.
    pub(crate) previous_checksum: Option<NonZero<u32>>,
}

/// One copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) database_id: u128,
    pub(crate) generation: u64,
    /// None before the first.
    pub(crate) checkpoint: Option<u64>,
    pub(crate) incarnation: u64,
    /// E: no installed image holds a change at or above it.
    pub(crate) end: Lsn,
    /// C: where redo starts.
    pub(crate) start: Position,
    pub(crate) has_root: u8,
    pub(crate) root: Option<BlobAddress>,
    /// When what is below E was durable at the latest, in microseconds since 1970; none if nobody knows.
    pub(crate) end_us: Option<u64>,
    pub(crate) has_restored: u8,
    pub(crate) restored: Option<Restored>,
    /// Whether the rest of the block is zeros.
    pub(crate) zeros_follow: bool,
}

/// What a restore has noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Restored {
    pub(crate) history: u128,
    pub(crate) from_history: u128,
    pub(crate) from_lsn: Lsn,
}

impl Superblock {
    /// The number of the history that goes on in this database.
    pub(crate) fn history(&self) -> u128 {
        self.restored.map_or(self.database_id, |restored| restored.history)
    }
}

/// What a sealed block is.
pub(crate) enum Sealed<'b> {
    Whole(&'b [u8]),
    /// Whole, but of a version that is not known.
    Future(u32),
    Damaged,
}

/// Opens one of the three blocks of the file.
pub(crate) fn open_sealed(block: &[u8]) -> Sealed<'_> {
    let checksum = checksum_around(&block[..12], &block[16..]);
    if &block[..8] != MAGIC || u32_at(block, 12) != checksum {
        return Sealed::Damaged;
    }
    match u32_at(block, 8) {
        FORMAT_VERSION => Sealed::Whole(&block[16..]),
        version => Sealed::Future(version),
    }
}

/// Reads the body of a copy. `None`: the body ends too early, which a block of 4 KiB never does.
pub(crate) fn read_superblock(body: &[u8]) -> Option<Superblock> {
    let mut input = Input::new(body);
    let database_id = input.u128()?;
    let generation = input.u64()?;
    let checkpoint = Some(input.u64()?).filter(|number| *number > 0);
    let incarnation = input.u64()?;
    let end = Lsn(input.u64()?);
    let start = Position {
        lsn: Lsn(input.u64()?),
        segment: input.u64()?,
        offset: input.u64()?,
        incarnation: input.u64()?,
        previous_checksum: NonZero::new(input.u32()?),
    };
    let has_root = input.u8()?;
    let root = if has_root == 1 { Some(BlobAddress::read(&mut input)?) } else { None };
    let end_us = Some(input.u64()?).filter(|end_us| *end_us != 0);
    let has_restored = input.u8()?;
    let restored = match has_restored {
        1 => Some(Restored {
            history: input.u128()?,
            from_history: input.u128()?,
            from_lsn: Lsn(input.u64()?),
        }),
        _ => None,
    };
    let zeros_follow = is_zero(input.rest());
    Some(Superblock {
        database_id,
        generation,
        checkpoint,
        incarnation,
        end,
        start,
        has_root,
        root,
        end_us,
        has_restored,
        restored,
        zeros_follow,
    })
}

/// The folders of data and log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Folders {
    pub(crate) data: Vec<PathBuf>,
    pub(crate) log: PathBuf,
}

/// Reads the body of the folders; relative paths are below `folder`.
pub(crate) fn read_folders(folder: &Path, body: &[u8]) -> Option<Folders> {
    let mut input = Input::new(body);
    let count = usize::from(input.u8()?);
    let mut paths = Vec::new();
    for _ in 0..=count {
        let length = usize::from(input.u16()?);
        let path = std::str::from_utf8(input.take(length)?).ok()?;
        paths.push(if path.is_empty() { folder.to_owned() } else { folder.join(path) });
    }
    let log = paths.pop()?;
    let sound = (1..=16).contains(&count) && is_zero(input.rest());
    sound.then_some(Folders { data: paths, log })
}
