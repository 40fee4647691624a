//! The mark of a folder in which a database is being made of another one, by a restore, a backup or a repair: it
//! is there from before the first byte of the work until after the last, and whoever would use the folder meanwhile,
//! or after the work was cut off, refuses.
//!
//! The mark is a file of text, for people and programs: `docs/data-file.md`.
//!
//! Invariants
//! 1. [`Unfinished::mark`] returns when the mark is durable: nothing else may be written to the folder before.
//! 2. [`unmark`] is called when everything else is durable, and proven to be what it must be.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::folder::{create_durably, folder_of, read_whole};
use crate::{Disk, DiskError};

/// The name of the mark in a database folder.
pub const MARK_NAME: &str = "unfinished.onrush";

const FIRST_LINE: &str = "onrush unfinished 1";
/// A mark has paths in it, and nothing else that is long.
const MARK_BYTES_MAX: usize = 64 << 10;

/// What a database is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// `onrush backup`, or a backup of an open database.
    Backup,
    /// `onrush restore`.
    Restore,
    /// `onrush repair`.
    Repair,
    /// Something that this version does not know.
    Other,
}

impl Making {
    const ALL: [Making; 3] = [Making::Backup, Making::Restore, Making::Repair];

    /// As it stands in the mark.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Making::Backup => "backup",
            Making::Restore => "restore",
            Making::Repair => "repair",
            Making::Other => "other work",
        }
    }
}

/// What is, or was, under way in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The folder.
    pub folder: PathBuf,
    /// What.
    pub making: Making,
    /// What the database is made of; empty if the mark does not say.
    pub from: PathBuf,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, making) = (self.folder.display(), self.making.name());
        write!(f, "{folder} is not finished: a {making}")?;
        if !self.from.as_os_str().is_empty() {
            write!(f, " of {}", self.from.display())?;
        }
        write!(
            f,
            " into it is running or was cut off, so there may be a part of the rows only. Run it again into an \
             empty folder and remove this one; or, if that cannot be done any more, remove {} to take what is \
             there as it is",
            self.folder.join(MARK_NAME).display()
        )
    }
}

impl Unfinished {
    /// Writes the mark into its folder, which is there and has none.
    ///
    /// # Errors
    /// It cannot be written, or there is one.
    pub fn mark(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        let file = create_durably(disk, &self.folder.join(MARK_NAME))?;
        let (making, from) = (self.making.name(), self.from.display());
        file.write_at(format!("{FIRST_LINE}\nmaking: {making}\nfrom: {from}\n").as_bytes(), 0)?;
        file.sync()?;
        // A name for certain, since some systems make it so only with the first content.
        disk.sync_folder(&self.folder)
    }

    /// Reads the mark of a folder; None if there is none. Any file of the name is one, whatever is in it: it may
    /// have been cut off itself.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn of_folder(disk: &dyn Disk, folder: &Path) -> Result<Option<Unfinished>, DiskError> {
        let path = folder.join(MARK_NAME);
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let bytes = read_whole(disk, &path, MARK_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
        let making = Making::ALL.into_iter().find(|making| making.name() == field("making: "));
        Ok(Some(Unfinished {
            folder: folder.to_owned(),
            making: making.unwrap_or(Making::Other),
            from: field("from: ").into(),
        }))
    }
}

/// Takes the mark away: the database in the folder is what it must be.
///
/// # Errors
/// It cannot be removed.
pub fn unmark(disk: &dyn Disk, folder: &Path) -> Result<(), DiskError> {
    let path = folder.join(MARK_NAME);
    disk.remove(&path)?;
    disk.sync_folder(folder_of(&path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDisk, OpenMode};

    fn marked() -> (MemoryDisk, Unfinished) {
        let disk = MemoryDisk::new();
        let folder = PathBuf::from("/new");
        disk.create_folder(&folder).unwrap();
        let unfinished = Unfinished { folder, making: Making::Repair, from: "/old one".into() };
        unfinished.mark(&disk).unwrap();
        (disk, unfinished)
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_until_it_is_taken_away() {
        let (disk, unfinished) = marked();
        let folder = &unfinished.folder;
        assert_eq!(Unfinished::of_folder(&disk, folder).unwrap(), Some(unfinished.clone()));
        unmark(&disk, folder).unwrap();
        assert_eq!(Unfinished::of_folder(&disk, folder).unwrap(), None);
    }

    #[test]
    fn a_mark_that_was_cut_off_is_one() {
        let disk = MemoryDisk::new();
        let folder = Path::new("/new");
        disk.create_folder(folder).unwrap();
        disk.open(&folder.join(MARK_NAME), OpenMode::CreateNew).unwrap();
        let found = Unfinished::of_folder(&disk, folder).unwrap().unwrap();
        assert_eq!((found.making, found.from), (Making::Other, PathBuf::new()));
    }

    #[test]
    fn the_message_says_what_was_under_way_and_how_to_go_on() {
        let (_, unfinished) = marked();
        let told = unfinished.to_string();
        for part in ["a repair of /old one", "into an empty folder", "/new/unfinished.onrush"] {
            assert!(told.contains(part), "{told}");
        }
    }
}
