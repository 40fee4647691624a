//! What can go wrong on a disk: one error type, with the cause and the cure in its text.
//!
//! Invariants
//! 1. A kind is a class of reaction, not a list of causes: whoever matches on it does something
//!    different for each.
//! 2. An error can be cloned, since everyone who waited for a failed sync must be told.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The classes of reaction to a [`DiskError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskErrorKind {
    /// No space, quota or names left.
    Full,
    /// No file or folder has this name.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// The file was opened for reading, or the file system is mounted so.
    ReadOnly,
    /// This user may not do this.
    Permission,
    /// A part of the path is a file where a folder is needed.
    NotAFolder,
    /// The folder is in use by another opener.
    Locked,
    /// The file ends before the last byte asked for.
    EndOfFile,
    /// Refused, because an earlier write or sync failed. The source names it.
    Failed,
    /// Anything else, an error of the device above all.
    Other,
}

/// A failed call on a disk: what was tried where, why it failed, and what to do about it.
#[derive(Clone, Debug)]
pub struct DiskError {
    kind: DiskErrorKind,
    operation: &'static str,
    path: PathBuf,
    offset: Option<u64>,
    source: Option<Arc<io::Error>>,
}

impl DiskError {
    /// An error that no operating system reported. `operation` is a verb phrase: "write", "create
    /// folder".
    pub fn new(kind: DiskErrorKind, operation: &'static str, path: &Path) -> DiskError {
        DiskError { kind, operation, path: path.to_path_buf(), offset: None, source: None }
    }

    /// An error that the operating system reported; the kind follows from it.
    pub fn from_io(operation: &'static str, path: &Path, source: io::Error) -> DiskError {
        DiskError::new(kind_of(&source), operation, path).with_source(source)
    }

    /// Adds the position in the file, in bytes.
    #[must_use]
    pub fn at(mut self, offset: u64) -> DiskError {
        self.offset = Some(offset);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: io::Error) -> DiskError {
        self.source = Some(Arc::new(source));
        self
    }

    /// The class of reaction.
    pub fn kind(&self) -> DiskErrorKind {
        self.kind
    }

    /// What was tried, as a verb phrase.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The file or folder it was tried on.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The position in the file in bytes, where there is one.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// The cause, where something else reported it.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.as_deref()
    }

    fn cause(&self) -> &'static str {
        match self.kind {
            DiskErrorKind::Full => "the disk is full",
            DiskErrorKind::NotFound => "it does not exist",
            DiskErrorKind::AlreadyExists => "the name is taken",
            DiskErrorKind::ReadOnly => "it is open for reading only, or mounted read-only",
            DiskErrorKind::Permission => "permission denied",
            DiskErrorKind::NotAFolder => "a part of the path is a file, not a folder",
            DiskErrorKind::Locked => "it is in use",
            DiskErrorKind::EndOfFile => "the file ends before the last byte asked for",
            DiskErrorKind::Failed => "an earlier write or sync failed, so nothing more is written",
            DiskErrorKind::Other => "the operating system reports an error",
        }
    }

    fn cure(&self) -> &'static str {
        match self.kind {
            DiskErrorKind::Full => "free some space or raise the quota, then try again",
            DiskErrorKind::NotFound => {
                "check the path; what was there before and is gone: put it back, or restore a backup"
            }
            DiskErrorKind::AlreadyExists => "choose another name, or move what has it away",
            DiskErrorKind::ReadOnly => "open it for writing, or mount it read-write",
            DiskErrorKind::Permission => "check the owner and the mode of the folder",
            DiskErrorKind::NotAFolder => "check the path: a database is a folder",
            DiskErrorKind::Locked => "close the other opener, or choose another folder",
            DiskErrorKind::EndOfFile => "it was cut short: put all of it back, or restore a backup",
            DiskErrorKind::Failed => "repair the first cause, then close and open again",
            DiskErrorKind::Other => "check the device and the system log",
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {} {}", self.operation, self.path.display())?;
        if let Some(offset) = self.offset {
            write!(formatter, " at byte {offset}")?;
        }
        write!(formatter, ": {}", self.cause())?;
        if let Some(source) = &self.source {
            write!(formatter, " ({source})")?;
        }
        write!(formatter, "; {}", self.cure())
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

fn kind_of(error: &io::Error) -> DiskErrorKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            DiskErrorKind::Full
        }
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::ReadOnlyFilesystem => DiskErrorKind::ReadOnly,
        io::ErrorKind::PermissionDenied => DiskErrorKind::Permission,
        io::ErrorKind::NotADirectory => DiskErrorKind::NotAFolder,
        io::ErrorKind::UnexpectedEof => DiskErrorKind::EndOfFile,
        _ => DiskErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_where_why_and_the_cure() {
        let full = io::Error::from_raw_os_error(28);
        let error = DiskError::from_io("write", Path::new("/data/log.7"), full).at(8192);
        assert_eq!(error.kind(), DiskErrorKind::Full);
        let text = error.to_string();
        for part in ["write", "/data/log.7", "byte 8192", "os error 28", "free some space"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }

    #[test]
    fn a_clone_keeps_the_cause() {
        let error = DiskError::from_io("sync", Path::new("/f"), io::Error::from_raw_os_error(5));
        let copy = error.clone();
        assert_eq!(copy.io_error().and_then(io::Error::raw_os_error), Some(5));
        assert_eq!(copy.kind(), DiskErrorKind::Other);
    }
}
