//! Whether a folder may be a database's: before one is made in it, and before one is opened.
//!
//! Nothing is written here.

use std::path::{Path, PathBuf};

use onrush_files::lock::LOCK_NAME;
use onrush_files::{Disk, Unfinished};

use crate::checkpoint::{Folders, superblock_path};
use crate::error::{Error, Result};
use crate::space::data_file_path;

/// Refuses a folder in which a restore, a backup or a repair makes a database, or was cut off.
pub(super) fn refuse_unfinished(disk: &dyn Disk, folder: &Path) -> Result<()> {
    match Unfinished::of_folder(disk, folder)? {
        Some(unfinished) => Err(Error::Unfinished(unfinished)),
        None => Ok(()),
    }
}

/// Refuses a folder for a new database that somebody uses for something else, or for a database already. What a
/// creation leaves that was cut off is no reason.
pub(super) fn refuse_other_files(
    disk: &dyn Disk,
    folder: &Path,
    folders: &Folders,
    kept_log_folder: Option<&Path>,
) -> Result<()> {
    if !disk.exists(folder)? {
        return Ok(());
    }
    // Makes nothing: a file of that name is told of.
    disk.create_folder(folder)?;
    refuse_unfinished(disk, folder)?;
    let superblock = superblock_path(folder);
    if disk.exists(&superblock)? {
        // Whoever has it open is told of first.
        let _lock = disk.lock(folder)?;
        return Err(Error::AlreadyExists { folder: folder.into() });
    }
    let mut own: Vec<PathBuf> = vec![folder.join(LOCK_NAME), superblock.with_extension("new")];
    let data = folders.data.iter().enumerate();
    own.extend(data.map(|(number, folder)| data_file_path(folder, number)));
    own.extend(folders.data.iter().chain([&folders.log]).cloned());
    own.extend(kept_log_folder.map(|kept| folder.join(kept)));
    let is_own = |name: &String| {
        let path = folder.join(name);
        // A folder above one of the database's is the database's.
        own.iter().any(|own| own.starts_with(&path))
    };
    match disk.list(folder)?.into_iter().find(|name| !is_own(name)) {
        Some(found) => Err(Error::NotEmpty { folder: folder.into(), found }),
        None => Ok(()),
    }
}
