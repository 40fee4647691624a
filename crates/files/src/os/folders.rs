//! Folders of the operating system: made, listed and synced.
//!
//! Invariant: a folder that [`create_folder`] returned, and every one above it that it made, has a
//! durable name.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::folder::folder_of;
use crate::{DiskError, DiskErrorKind};

/// Creates the folder and the missing ones above it, for this user alone.
pub(super) fn create_folder(path: &Path) -> Result<(), DiskError> {
    let make = || super::retried(|| rustix::fs::mkdir(path, Mode::RWXU));
    let mut made = make();
    if made == Err(Errno::NOENT) {
        let above = folder_of(path)?;
        if above != path && above != Path::new(".") {
            create_folder(above)?;
            // Once more only: some file systems say that the folder above is missing when it is
            // there and takes no new names, `/proc` for one.
            made = make();
        }
    }
    match made {
        Ok(()) => sync_folder(folder_of(path)?),
        Err(Errno::EXIST) if path.is_dir() => sync_existing(path),
        Err(errno) => Err(DiskError::from_io("create folder", path, errno.into())),
    }
}

/// A folder that exists may have been made just before a crash of the process, its name not yet
/// durable.
fn sync_existing(path: &Path) -> Result<(), DiskError> {
    let Ok(above) = folder_of(path) else { return Ok(()) };
    match sync_folder(above) {
        // Whoever may not even read the folder above did not make this one: it was prepared for us.
        Err(error) if error.kind() == DiskErrorKind::Permission => Ok(()),
        // On a read-only file system nothing can be waiting to be synced.
        Err(error) if error.kind() == DiskErrorKind::ReadOnly => Ok(()),
        result => result,
    }
}

pub(super) fn list(folder: &Path) -> Result<Vec<String>, DiskError> {
    let failed = |error| DiskError::from_io("list", folder, error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn sync_folder(folder: &Path) -> Result<(), DiskError> {
    let failed = |errno: Errno| DiskError::from_io("sync folder", folder, errno.into());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = super::open_descriptor(folder, flags, Mode::empty()).map_err(failed)?;
    sync_names(&descriptor).map_err(failed)
}

#[cfg(not(target_vendor = "apple"))]
fn sync_names(descriptor: &rustix::fd::OwnedFd) -> Result<(), Errno> {
    super::retried(|| rustix::fs::fsync(descriptor))
}

#[cfg(target_vendor = "apple")]
fn sync_names(descriptor: &rustix::fd::OwnedFd) -> Result<(), Errno> {
    super::sync_data(descriptor)
}

/// Makes a folder for temporary files, and removes the folders that a process which was killed has left in it.
/// Nothing of it is durable, and nothing needs to be.
///
/// # Errors
/// It cannot be made, read or emptied.
pub fn scratch_folder(path: &Path) -> Result<(), DiskError> {
    let failed = |error| DiskError::from_io("make a folder for temporary files", path, error);
    std::fs::create_dir_all(path).map_err(failed)?;
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let left = entry.map_err(failed)?.path();
        if left.is_dir() {
            std::fs::remove_dir_all(left).map_err(failed)?;
        }
    }
    Ok(())
}
