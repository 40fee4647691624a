//! One open file of the operating system.
//!
//! Invariants
//! 1. A transfer that direct I/O refuses (EINVAL: not aligned for this device) goes on through the
//!    page cache.
//! 2. `write_at_durable` is one system call on Linux; where that is not known, a write and a sync.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::transfer::{Stop, WriteKind, read_all, write_all};
use super::{open_descriptor, retried, sync_data};
use crate::{BLOCK_BYTES, DiskError, DiskErrorKind, DiskFile, OpenMode};

/// How much is written at a time where space has to be reserved by writing zeros.
const ZEROS_BYTES: usize = 256 * 1024;

/// A file with its one or two descriptors.
#[derive(Debug)]
pub(super) struct OsFile {
    path: PathBuf,
    buffered: OwnedFd,
    direct: Option<OwnedFd>,
    writable: bool,
    durable_write_known: AtomicBool, // cleared by whoever first sees it refused; never set again
}

impl OsFile {
    pub(super) fn open(path: &Path, mode: OpenMode, direct: bool) -> Result<OsFile, DiskError> {
        let access = match mode {
            OpenMode::ReadOnly => OFlags::RDONLY,
            OpenMode::ReadWrite | OpenMode::CreateNew => OFlags::RDWR,
        };
        let creation = match mode {
            OpenMode::CreateNew => OFlags::CREATE | OFlags::EXCL,
            OpenMode::ReadOnly | OpenMode::ReadWrite => OFlags::empty(),
        };
        let operation = if mode == OpenMode::CreateNew { "create" } else { "open" };
        let flags = access | OFlags::CLOEXEC;
        let buffered = open_descriptor(path, flags | creation, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| DiskError::from_io(operation, path, errno.into()))?;
        let direct = if direct { open_direct(path, flags, &buffered) } else { None };
        Ok(OsFile {
            path: path.to_path_buf(),
            buffered,
            direct,
            writable: mode != OpenMode::ReadOnly,
            durable_write_known: AtomicBool::new(true),
        })
    }

    /// The direct descriptor, if this transfer is aligned for it.
    fn direct_for(&self, buffer: &[u8], offset: u64) -> Option<BorrowedFd<'_>> {
        let aligned = !buffer.is_empty()
            && buffer.len().is_multiple_of(BLOCK_BYTES)
            && offset.is_multiple_of(BLOCK_BYTES as u64)
            && buffer.as_ptr().align_offset(BLOCK_BYTES) == 0;
        if aligned { self.direct.as_ref().map(AsFd::as_fd) } else { None }
    }

    fn write_with(&self, buffer: &[u8], offset: u64, kind: WriteKind) -> Result<(), DiskError> {
        self.check_writable("write")?;
        self.check_end(buffer.len(), offset, "write")?;
        let failed = |stop: Stop, before: usize| {
            let position = offset + (before + stop.done) as u64;
            DiskError::from_io("write", &self.path, stop.write_errno().into()).at(position)
        };
        let mut done = 0;
        if let Some(direct) = self.direct_for(buffer, offset) {
            match write_all(direct, buffer, offset, kind) {
                Ok(()) => return Ok(()),
                Err(stop) if stop.errno == Some(Errno::INVAL) => done = stop.done,
                Err(stop) => return Err(failed(stop, 0)),
            }
        }
        write_all(self.buffered.as_fd(), &buffer[done..], offset + done as u64, kind)
            .map_err(|stop| failed(stop, done))
    }

    /// The file length must stay within what the system calls can name (a signed 64-bit position).
    fn check_end(&self, len: usize, offset: u64, operation: &'static str) -> Result<(), DiskError> {
        match offset.checked_add(len as u64) {
            Some(end) if i64::try_from(end).is_ok() => Ok(()),
            _ => Err(DiskError::from_io(operation, &self.path, Errno::FBIG.into()).at(offset)),
        }
    }

    fn check_writable(&self, operation: &'static str) -> Result<(), DiskError> {
        if self.writable {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::ReadOnly, operation, &self.path))
    }

    /// For file systems that cannot reserve: zeros are written past the end. Holes below it stay
    /// holes.
    fn allocate_with_zeros(&self, len_bytes: u64) -> Result<(), DiskError> {
        let zeros = vec![0_u8; ZEROS_BYTES];
        let mut position = self.len()?;
        while position < len_bytes {
            let rest = usize::try_from(len_bytes - position).unwrap_or(ZEROS_BYTES);
            let count = rest.min(ZEROS_BYTES);
            self.write_with(&zeros[..count], position, WriteKind::Plain)?;
            position += count as u64;
        }
        Ok(())
    }
}

impl DiskFile for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.check_end(buffer.len(), offset, "read")?;
        let failed = |stop: Stop, before: usize| {
            let position = offset + (before + stop.done) as u64;
            let error = match stop.errno {
                Some(errno) => DiskError::from_io("read", &self.path, errno.into()),
                None => DiskError::new(DiskErrorKind::EndOfFile, "read", &self.path),
            };
            error.at(position)
        };
        let mut done = 0;
        if let Some(direct) = self.direct_for(buffer, offset) {
            match read_all(direct, buffer, offset) {
                Ok(()) => return Ok(()),
                // The last block of a file may be a part of one, which direct I/O refuses to go on
                // from.
                Err(Stop { errno: None | Some(Errno::INVAL), done: before }) => done = before,
                Err(stop) => return Err(failed(stop, 0)),
            }
        }
        read_all(self.buffered.as_fd(), &mut buffer[done..], offset + done as u64)
            .map_err(|stop| failed(stop, done))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.write_with(buffer, offset, WriteKind::Plain)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        if self.durable_write_known.load(Ordering::Relaxed) {
            match self.write_with(buffer, offset, WriteKind::Durable) {
                Err(error) if is_unknown_call(&error) => {
                    self.durable_write_known.store(false, Ordering::Relaxed);
                }
                result => return result,
            }
        }
        self.write_with(buffer, offset, WriteKind::Plain)?;
        self.sync()
    }

    fn sync(&self) -> Result<(), DiskError> {
        sync_data(&self.buffered)
            .map_err(|errno| DiskError::from_io("sync", &self.path, errno.into()))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let stat = rustix::fs::fstat(&self.buffered)
            .map_err(|errno| DiskError::from_io("measure", &self.path, errno.into()))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0)) // the system never reports a negative length
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.check_writable("set the length of")?;
        retried(|| rustix::fs::ftruncate(&self.buffered, len_bytes))
            .map_err(|errno| DiskError::from_io("set the length of", &self.path, errno.into()))
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.check_writable("reserve space for")?;
        if len_bytes == 0 {
            return Ok(());
        }
        match reserve(&self.buffered, len_bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.allocate_with_zeros(len_bytes),
            result => result.map_err(|errno| {
                DiskError::from_io("reserve space for", &self.path, errno.into()).at(len_bytes)
            }),
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether this kernel or file system does not know the durable write; it then wrote nothing.
fn is_unknown_call(error: &DiskError) -> bool {
    let code = error.io_error().and_then(std::io::Error::raw_os_error);
    code == Some(Errno::OPNOTSUPP.raw_os_error()) || code == Some(Errno::NOSYS.raw_os_error())
}

/// Opens the file a second time for direct I/O; None where the file system refuses, or the name now
/// means another file.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path, flags: OFlags, buffered: &OwnedFd) -> Option<OwnedFd> {
    let direct = open_descriptor(path, flags | OFlags::DIRECT, Mode::empty()).ok()?;
    let (first, second) = (rustix::fs::fstat(buffered).ok()?, rustix::fs::fstat(&direct).ok()?);
    let same = first.st_dev == second.st_dev && first.st_ino == second.st_ino;
    same.then_some(direct)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path, _flags: OFlags, _buffered: &OwnedFd) -> Option<OwnedFd> {
    None
}

#[cfg(target_os = "linux")]
fn reserve(descriptor: &OwnedFd, len_bytes: u64) -> Result<(), Errno> {
    use rustix::fs::{FallocateFlags, fallocate};
    retried(|| fallocate(descriptor, FallocateFlags::empty(), 0, len_bytes))
}

#[cfg(not(target_os = "linux"))]
fn reserve(_descriptor: &OwnedFd, _len_bytes: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}
