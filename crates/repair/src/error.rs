//! Why a database could not be repaired. What is lost is no error: see
//! [`RepairReport`](crate::RepairReport).

use std::path::PathBuf;

use onrush_check::{CheckError, SalvageError};
use onrush_files::DiskError;

/// See the module. But for the first two, the new folder may hold a part of the rows, under the mark of unfinished
/// work: remove it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The new folder is there already.
    #[error("{} exists already; repair writes to a new folder only, so name another one", folder.display())]
    TargetExists {
        /// The folder.
        folder: PathBuf,
    },
    /// The new folder would lie in the damaged database.
    #[error("{} lies inside the damaged database; name a folder outside of it", folder.display())]
    TargetInside {
        /// The folder.
        folder: PathBuf,
    },
    /// The damaged database cannot be looked at, or the new one not be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The new database cannot be written.
    #[error("cannot write the new database: {0}")]
    Write(#[from] onrush::Error),
    /// A folder cannot be looked at.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A row that passes every test cannot be written.
    #[error(
        "a row of table {table} is sound and cannot be inserted: {cause}; report this as a bug"
    )]
    Refused {
        /// The table.
        table: String,
        /// Why.
        cause: onrush::Error,
    },
    /// The new database is not what was written.
    #[error("the new database is not what was written: {0}; report this as a bug")]
    NotVerified(String),
}

impl From<SalvageError<RepairError>> for RepairError {
    fn from(error: SalvageError<RepairError>) -> RepairError {
        match error {
            SalvageError::Source(error) => RepairError::Check(error),
            SalvageError::Target(error) => error,
        }
    }
}
