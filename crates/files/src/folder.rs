//! Names made durable: the only places that create or replace a file which must survive a power
//! cut.
//!
//! Invariants
//! 1. A file that [`create_durably`] returned is there after a power cut, perhaps empty.
//! 2. After [`replace_whole_durably`] the file has the new content; if it is cut short, the old
//!    content or the new, never a mix.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Disk, DiskError, DiskErrorKind, DiskFile, OpenMode};

/// Ending of the name under which a replacement is written; what is found with it at open is left
/// over from a crash.
pub const TEMPORARY_ENDING: &str = ".new";

/// Creates an empty file whose name is durable when this returns.
///
/// # Errors
/// As [`Disk::open`] and [`Disk::sync_folder`].
pub fn create_durably(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn DiskFile>, DiskError> {
    let file = disk.open(path, OpenMode::CreateNew)?;
    disk.sync_folder(folder_of(path)?)?;
    Ok(file)
}

/// Gives a file a new content, all or nothing, durable when this returns: temporary name, sync,
/// rename, sync the folder.
///
/// # Errors
/// After an error the file has its old content or the new one.
pub fn replace_whole_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let folder = folder_of(path)?;
    let temporary = temporary_of(path);
    if disk.exists(&temporary)? {
        disk.remove(&temporary)?;
    }
    let file = disk.open(&temporary, OpenMode::CreateNew)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&temporary, path)?;
    disk.sync_folder(folder)
}

/// Renames within one folder, durable when this returns.
///
/// # Errors
/// As [`Disk::rename`] and [`Disk::sync_folder`].
pub fn rename_durably(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), DiskError> {
    disk.rename(from, to)?;
    let (from_folder, to_folder) = (folder_of(from)?, folder_of(to)?);
    disk.sync_folder(to_folder)?;
    if from_folder != to_folder {
        disk.sync_folder(from_folder)?;
    }
    Ok(())
}

/// Reads a whole file of at most `limit_bytes`, for small files only.
///
/// # Errors
/// `Other` when the file is longer than the limit; else as [`DiskFile::read_at`].
pub fn read_whole(disk: &dyn Disk, path: &Path, limit_bytes: usize) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(path, OpenMode::ReadOnly)?;
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    if len > limit_bytes {
        let cause = format!("{len} bytes, where at most {limit_bytes} are expected");
        return Err(DiskError::new(DiskErrorKind::Other, "read all of", path)
            .with_source(std::io::Error::other(cause)));
    }
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The folder that holds the name `path`.
///
/// # Errors
/// `NotFound` for a path without a folder and name.
pub fn folder_of(path: &Path) -> Result<&Path, DiskError> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(folder) => Ok(folder),
        None => Err(DiskError::new(DiskErrorKind::NotFound, "find the folder of", path)),
    }
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(TEMPORARY_ENDING);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    #[test]
    fn replacing_leaves_the_new_content_and_no_temporary() {
        let disk = MemoryDisk::new();
        let folder = Path::new("/data");
        disk.create_folder(folder).unwrap();
        let path = folder.join("settings");
        replace_whole_durably(&disk, &path, b"old and longer").unwrap();
        disk.open(&temporary_of(&path), OpenMode::CreateNew).unwrap(); // left over from a crash
        replace_whole_durably(&disk, &path, b"new").unwrap();
        assert_eq!(read_whole(&disk, &path, 100).unwrap(), b"new");
        assert_eq!(disk.list(folder).unwrap(), ["settings"]);
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let disk = MemoryDisk::new();
        disk.create_folder(Path::new("/data")).unwrap();
        let path = Path::new("/data/settings");
        replace_whole_durably(&disk, path, b"four").unwrap();
        assert!(read_whole(&disk, path, 3).is_err());
    }

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("log")).unwrap(), Path::new("."));
        assert!(folder_of(Path::new("/")).is_err());
    }
}
