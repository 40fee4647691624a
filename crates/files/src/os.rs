//! The real disk: files of the operating system, with direct I/O where it is possible.
//!
//! In the life of an insert: the log block and the leaf image reach the device here, and nowhere
//! else.
//!
//! Invariants
//! 1. Every read and write goes through the one loop in `os/transfer.rs`: whole, EINTR tried again,
//!    0 bytes moved = an error.
//! 2. A file has one buffered descriptor, and a direct one where the file system allows it. A
//!    direct call needs offset, length and address to be multiples of
//!    [`BLOCK_BYTES`](crate::BLOCK_BYTES); any other call takes the buffered one. The kernel keeps
//!    the two views of a file equal as long as callers do not write the same block through both at
//!    the same time.
//! 3. Syncs always use the buffered descriptor, so that an error of writing back is reported there,
//!    once.
//! 4. No descriptor is below 3 (stray output of the process would land in the database), and none
//!    is inherited.

mod file;
mod folders;
mod transfer;

pub use folders::scratch_folder;

use std::path::Path;
use std::sync::Arc;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Disk, DiskError, DiskFile, FolderLock, OpenMode, lock};
use file::OsFile;
pub(crate) use transfer::{Stop, WriteKind, write_all};

/// The lowest descriptor ever used: 0 to 2 are where a process prints.
const DESCRIPTOR_MIN: i32 = 3;

/// The disk of the operating system.
#[derive(Clone, Debug)]
pub struct OsDisk {
    direct: bool, // whether to try direct I/O
}

impl OsDisk {
    /// Direct I/O where the file system allows it.
    pub fn new() -> OsDisk {
        OsDisk { direct: true }
    }

    /// All I/O through the page cache.
    pub fn buffered() -> OsDisk {
        OsDisk { direct: false }
    }
}

impl Default for OsDisk {
    fn default() -> OsDisk {
        OsDisk::new()
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(Arc::new(OsFile::open(path, mode, self.direct)?))
    }

    fn reads_wait(&self) -> bool {
        self.direct
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        folders::create_folder(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        folders::list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        path.try_exists().map_err(|error| DiskError::from_io("look for", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        std::fs::rename(from, to).map_err(|error| DiskError::from_io("rename", from, error))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        std::fs::remove_file(path).map_err(|error| DiskError::from_io("remove", path, error))
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        folders::sync_folder(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        lock::lock_os_folder(folder)
    }
}

/// Opens a path on a descriptor of at least [`DESCRIPTOR_MIN`].
pub(crate) fn open_descriptor(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let descriptor = retried(|| rustix::fs::open(path, flags, mode))?;
    if descriptor.as_raw_fd() >= DESCRIPTOR_MIN {
        return Ok(descriptor);
    }
    rustix::io::fcntl_dupfd_cloexec(&descriptor, DESCRIPTOR_MIN)
}

/// Calls again while a signal interrupts.
pub(crate) fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Makes what was written through any descriptor of this file durable, on the medium and not in its
/// cache.
#[cfg(not(target_vendor = "apple"))]
fn sync_data(descriptor: &OwnedFd) -> Result<(), Errno> {
    retried(|| rustix::fs::fdatasync(descriptor))
}

/// Makes what was written through any descriptor of this file durable, on the medium and not in its
/// cache.
#[cfg(target_vendor = "apple")]
fn sync_data(descriptor: &OwnedFd) -> Result<(), Errno> {
    retried(|| rustix::fs::fcntl_fullfsync(descriptor))
}
