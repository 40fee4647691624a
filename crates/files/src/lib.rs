//! The one narrow door to the disk: whoever stores bytes does it through [`Disk`] and [`DiskFile`].
//!
//! An insert meets this crate twice: when its log block is written and synced, and when the image
//! of its leaf is written by a checkpoint. Nothing above this crate calls the operating system for
//! files, so that the same engine runs on a real disk, in memory, and on a disk that loses power at
//! a chosen moment.
//!
//! - [`os`]: the real disk. [`memory`]: a disk in memory, with a capacity, for tests.
//! - [`sticky`]: around any disk; remembers the first failed write or sync, tells the operator, and refuses
//!   every later one.
//! - [`layer`]: around any disk; does something about a few calls, and hands on the rest.
//! - [`folder`]: names made durable: create, replace a whole file. [`lock`]: one opener a folder.
//! - [`unfinished`]: the mark of a folder in which a database is being made of another one.
//! - [`buffer`]: memory aligned for direct I/O. [`sparse_bytes`]: bytes of a file in memory, cheap
//!   to copy.
//!
//! Invariants
//! 1. A call does all of what it was asked for, or returns an error: no short reads, no short
//!    writes.
//! 2. *Written* is not *durable*. Content is durable after [`DiskFile::sync`] or
//!    [`DiskFile::write_at_durable`], a name only after [`Disk::sync_folder`] of the folder that
//!    holds it.
//! 3. Nothing is retried after an error of the device. An interrupted call (EINTR) is not an error.

pub mod buffer;
pub mod error;
pub mod folder;
pub mod layer;
pub mod lock;
pub mod memory;
pub mod os;
pub mod sparse_bytes;
pub mod sticky;
mod tell;
pub mod unfinished;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

pub use buffer::{AlignedBuffer, BLOCK_BYTES};
pub use error::{DiskError, DiskErrorKind};
pub use folder::{create_durably, read_whole, replace_whole_durably};
pub use layer::{DiskLayer, FileLayer};
pub use lock::FolderLock;
pub use memory::MemoryDisk;
pub use os::{OsDisk, scratch_folder};
pub use sparse_bytes::SparseBytes;
pub use sticky::StickyDisk;
pub use unfinished::{MARK_NAME, Making, Unfinished};

/// How [`Disk::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file exists and is only read. Writes fail with kind [`DiskErrorKind::ReadOnly`].
    ReadOnly,
    /// The file exists and is read and written.
    ReadWrite,
    /// The file does not exist; it is made empty, then read and written.
    ///
    /// Its name is durable only after [`Disk::sync_folder`].
    CreateNew,
}

/// A place that stores files under full paths.
///
/// A method that changes names (`open` with [`OpenMode::CreateNew`], `rename`, `remove`) promises
/// nothing about a power cut until [`Disk::sync_folder`] has returned for every folder it touched.
pub trait Disk: Send + Sync + Debug {
    /// Opens or creates one file.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` (for [`OpenMode::CreateNew`]), `Permission`, `ReadOnly`,
    /// `Full` (no space for a name).
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError>;

    /// Creates a folder and the missing ones above it; each is durable when this returns. It may
    /// exist already.
    ///
    /// # Errors
    /// `AlreadyExists` when a file has that name, `Permission`, `ReadOnly`, `Full`.
    fn create_folder(&self, path: &Path) -> Result<(), DiskError>;

    /// Whether a read waits for the device, whatever was read before: meanwhile its thread leaves the
    /// processor to others.
    fn reads_wait(&self) -> bool {
        false
    }

    /// The names of the files and folders directly in `folder`, sorted. Names that are not UTF-8
    /// are left out.
    ///
    /// # Errors
    /// `NotFound`, `Permission`.
    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError>;

    /// Whether a file or folder has this name.
    ///
    /// # Errors
    /// `Permission`, when the answer cannot be known.
    fn exists(&self, path: &Path) -> Result<bool, DiskError>;

    /// Gives the file `from` the name `to`; a file that had that name loses it. Durable only after
    /// [`Disk::sync_folder`] of both folders.
    ///
    /// # Errors
    /// `NotFound`, `Permission`, `ReadOnly`.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Takes the name of a file away. Those who have it open keep using it. Durable only after
    /// [`Disk::sync_folder`].
    ///
    /// # Errors
    /// `NotFound`, `Permission`, `ReadOnly`.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes every change of names directly in `folder` durable.
    ///
    /// # Errors
    /// Any error means that nothing is known about the names changed since the last success.
    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError>;

    /// Takes the folder for this caller alone, until the lock is dropped. See [`lock`].
    ///
    /// # Errors
    /// `Locked` when it is held, in this process or another one; `NotFound`, `Permission`.
    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError>;
}

/// One open file. All methods may be called from many threads at the same time.
pub trait DiskFile: Send + Sync + Debug {
    /// Fills the whole buffer with the bytes from `offset`.
    ///
    /// # Errors
    /// `EndOfFile` when the file ends before; the buffer then holds nothing of use.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError>;

    /// Writes the whole buffer at `offset`, and makes the file longer where needed. Not durable.
    ///
    /// # Errors
    /// After any error it is unknown which of the bytes were written.
    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError>;

    /// As [`DiskFile::write_at`], and these bytes are durable when it returns. Bytes written
    /// earlier need not be.
    ///
    /// # Errors
    /// After any error it is unknown which of the bytes were written, and which are durable.
    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError>;

    /// Makes everything written to this file before the call durable, its length included, but not
    /// its name.
    ///
    /// # Errors
    /// After any error the written bytes may be lost for good, and a second sync may wrongly
    /// succeed: do not retry.
    fn sync(&self) -> Result<(), DiskError>;

    /// The length in bytes.
    ///
    /// # Errors
    /// Only what the operating system reports.
    fn len(&self) -> Result<u64, DiskError>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// As [`DiskFile::len`].
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or makes it longer with zeros that take no space yet. Durable after
    /// [`DiskFile::sync`].
    ///
    /// # Errors
    /// `Full`, `ReadOnly`.
    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError>;

    /// Reserves space, so that a later write below `len_bytes` cannot meet a full disk.
    ///
    /// A shorter file becomes `len_bytes` long, its new bytes being zeros; a longer one keeps its
    /// length. Durable after [`DiskFile::sync`].
    ///
    /// # Errors
    /// `Full`: what the file held before is unharmed.
    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError>;

    /// The path given to [`Disk::open`]; a rename does not change it.
    fn path(&self) -> &Path;
}
