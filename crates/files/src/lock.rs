//! One opener a folder: the folder and the file LOCK in it, locked with `flock`, and a table of
//! what this process holds.
//!
//! Invariants
//! 1. LOCK is never deleted. Should somebody delete it, the lock on the folder itself still keeps a
//!    second opener out.
//! 2. A lock counts only if the locked file is still the one under the name LOCK (checked after
//!    locking).
//! 3. A process opens LOCK a second time without harm: `flock` belongs to the open file, not to the
//!    process. A child made by `fork` shares it, so a database is not used on both sides of a fork.
//!
//! Where the file system is mounted read-only nobody can write LOCK: it is locked as it is, and a
//! folder without one, which no opener can change there, by itself only. So what only reads, a check
//! for one, can read what a damaged device still has.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::os;
use crate::{DiskError, DiskErrorKind};

/// Name of the lock file in a folder.
pub const LOCK_NAME: &str = "LOCK";

/// How often to start again when LOCK is replaced while it is being locked.
const REPLACED_TRIES: u32 = 10;

/// Folders held by this process, by (device, inode). Taken only while locking or unlocking.
static HELD_HERE: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The right to use a folder, given back when dropped. Made by [`crate::Disk::lock`].
pub struct FolderLock {
    folder: PathBuf,
    _held: Box<dyn Any + Send + Sync>, // whatever gives the lock back when it is dropped
}

impl FolderLock {
    /// A lock that is given back by dropping `held`. For those who implement [`crate::Disk`].
    pub fn new(folder: &Path, held: impl Any + Send + Sync) -> FolderLock {
        FolderLock { folder: folder.to_path_buf(), _held: Box::new(held) }
    }

    /// The folder it locks.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl fmt::Debug for FolderLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FolderLock({})", self.folder.display())
    }
}

/// The error for a folder that is taken; `holder` says by whom.
pub fn locked_error(folder: &Path, holder: &str) -> DiskError {
    let cause = io::Error::other(format!("held by {holder}"));
    DiskError::new(DiskErrorKind::Locked, "lock", folder).with_source(cause)
}

/// A locked folder of the operating system.
struct OsLock {
    identity: (u64, u64),
    process: u32, // that took it
    descriptors: Vec<OwnedFd>,
}

impl Drop for OsLock {
    fn drop(&mut self) {
        let mut held = HELD_HERE.lock().unwrap_or_else(PoisonError::into_inner);
        // A child that is being started has copies of the descriptors until it executes its program,
        // and they would keep the lock: so it is given back, not only closed. A child that goes on
        // as a copy of this process must not take the lock away from its parent.
        if self.process == std::process::id() {
            for descriptor in &self.descriptors {
                let _ = rustix::fs::flock(descriptor, FlockOperation::Unlock); // closing does it too
            }
        }
        self.descriptors.clear();
        held.remove(&self.identity);
    }
}

/// Locks a folder of the operating system's disk.
pub(crate) fn lock_os_folder(folder: &Path) -> Result<FolderLock, DiskError> {
    let failed = |errno: Errno| DiskError::from_io("lock", folder, errno.into());
    let mut held = HELD_HERE.lock().unwrap_or_else(PoisonError::into_inner);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = os::open_descriptor(folder, flags, Mode::empty()).map_err(failed)?;
    let identity = identity_of(&rustix::fs::fstat(&opened).map_err(failed)?);
    if held.contains(&identity) {
        return Err(locked_error(folder, "this process"));
    }
    let mut descriptors: Vec<_> = lock_file(folder)?.into_iter().collect();
    match exclusively(&opened) {
        Ok(()) => descriptors.push(opened),
        Err(Errno::WOULDBLOCK) => return Err(locked_error(folder, "another process")),
        Err(_) => {} // some file systems lock no folders; the file is locked all the same
    }
    held.insert(identity);
    Ok(FolderLock::new(folder, OsLock { identity, process: std::process::id(), descriptors }))
}

/// Locks the file LOCK, which is made if it is missing; none where it is missing and cannot be made.
fn lock_file(folder: &Path) -> Result<Option<OwnedFd>, DiskError> {
    let path = folder.join(LOCK_NAME);
    let failed = |errno: Errno| DiskError::from_io("lock", &path, errno.into());
    for _ in 0..REPLACED_TRIES {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let (file, is_writable) = match open_lock_file(&path, flags) {
            Err(Errno::ROFS) => match open_lock_file(&path, OFlags::RDONLY | OFlags::CLOEXEC) {
                Err(Errno::NOENT) => return Ok(None),
                file => (file.map_err(failed)?, false),
            },
            file => (file.map_err(failed)?, true),
        };
        match exclusively(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(locked_error(folder, &holder_of(&file))),
            Err(errno) => return Err(failed(errno)),
        }
        let locked = identity_of(&rustix::fs::fstat(&file).map_err(failed)?);
        match rustix::fs::stat(&path) {
            Ok(named) if identity_of(&named) == locked => {}
            Ok(_) | Err(Errno::NOENT) => continue, // replaced: this lock keeps nobody out
            Err(errno) => return Err(failed(errno)),
        }
        if is_writable {
            write_holder(&file).map_err(failed)?;
        }
        return Ok(Some(file));
    }
    Err(locked_error(folder, "someone who keeps replacing the lock file"))
}

fn open_lock_file(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    os::open_descriptor(path, flags, Mode::RUSR | Mode::WUSR)
}

fn exclusively(descriptor: &OwnedFd) -> Result<(), Errno> {
    os::retried(|| rustix::fs::flock(descriptor, FlockOperation::NonBlockingLockExclusive))
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // the widths differ between systems
fn identity_of(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Writes the process id for the reader of an error message; nothing depends on it.
fn write_holder(file: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::ftruncate(file, 0)?;
    let text = format!("{}\n", std::process::id());
    os::write_all(file.as_fd(), text.as_bytes(), 0, os::WriteKind::Plain)
        .map_err(os::Stop::write_errno)
}

fn holder_of(file: &OwnedFd) -> String {
    let mut bytes = [0_u8; 20];
    let count = rustix::io::pread(file, &mut bytes[..], 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..count]);
    match text.trim().parse::<u32>() {
        Ok(process) => format!("process {process}"),
        Err(_) => "another process".to_owned(),
    }
}
