//! What is checked: where the superblock is read, and how far the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{Disk, DiskError, DiskFile, OpenMode};
use onrush_lsn::Lsn;

use crate::decode::superblock::FILE_NAME;

/// A database as one checkpoint and the log behind it. Nobody may change what that checkpoint names
/// while it is read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where its files are.
    pub disk: Arc<dyn Disk>,
    /// The database folder.
    pub folder: PathBuf,
    /// The superblock file, or a copy of it where the file itself may change meanwhile.
    pub superblock: Arc<dyn DiskFile>,
    /// Folders in which log segments are looked for first, in this order.
    pub log_folders: Vec<PathBuf>,
    /// How far to read the log.
    pub log_limit: LogLimit,
    /// Below this LSN the log is known to be durable; none if nothing is known.
    pub durable_lsn: Option<Lsn>,
}

/// How far to read the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLimit {
    /// To its end.
    #[default]
    None,
    /// Without the records that start at or above this LSN.
    Lsn(Lsn),
    /// Without the first block that was built later than this, in microseconds since 1970 by the
    /// clock of the machine, and all that follows.
    TimeUs(u64),
}

impl Source {
    /// The database in `folder`, all of its log.
    ///
    /// # Errors
    /// Its superblock file cannot be opened.
    pub fn whole(disk: Arc<dyn Disk>, folder: &Path) -> Result<Source, DiskError> {
        Ok(Source {
            superblock: disk.open(&folder.join(FILE_NAME), OpenMode::ReadOnly)?,
            disk,
            folder: folder.to_owned(),
            log_folders: Vec::new(),
            log_limit: LogLimit::None,
            durable_lsn: None,
        })
    }
}
