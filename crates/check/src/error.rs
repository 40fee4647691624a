//! Why a database could not be checked at all. What a check finds is no error: see
//! [`Finding`](crate::Finding).

use std::path::PathBuf;

use onrush_files::{DiskError, DiskErrorKind, Unfinished};

/// See the module.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no superblock in the folder.
    #[error(
        "there is no database in {}: it has no superblock.onrush; check the path, or restore a backup \
         if there was one",
        folder.display()
    )]
    NotFound {
        /// The folder.
        folder: PathBuf,
    },
    /// A restore, backup or repair makes a database here, or was cut off.
    #[error("{0}")]
    Unfinished(Unfinished),
    /// Somebody has the database open.
    #[error(
        "{cause}; while a database is open, only the program that has it open can check it or back it up"
    )]
    InUse {
        /// Who, as far as it is known.
        cause: DiskError,
    },
    /// A file of a format that this version does not know.
    #[error("{} has format version {found}, this program knows up to {known}; use a newer one", path.display())]
    FutureFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// The table to be checked is not there.
    #[error("there is no table {name}; the tables are: {known}")]
    UnknownTable {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// An option that makes no sense.
    #[error("{0}")]
    BadOption(String),
    /// A folder could not be listed or locked.
    #[error(transparent)]
    Disk(DiskError),
}

impl From<DiskError> for CheckError {
    fn from(cause: DiskError) -> CheckError {
        match cause.kind() {
            DiskErrorKind::Locked => CheckError::InUse { cause },
            _ => CheckError::Disk(cause),
        }
    }
}
