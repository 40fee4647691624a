//! What the crash disk records: every operation that changes it, in one global order.
//!
//! Invariants
//! 1. Replaying the list from the start gives the disk again, live content and durable content
//!    alike.
//! 2. A call that does two things to the disk is two operations, so that the power can fail between
//!    them.

use std::path::PathBuf;
use std::sync::Arc;

/// A file, whatever its name is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(super) u64);

/// One change of the disk. Between any two of them lies a boundary at which the power can fail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// An empty file got a name.
    Create {
        /// The name.
        path: PathBuf,
        /// The new file.
        file: FileId,
    },
    /// A folder was made.
    MakeFolder {
        /// Its name.
        path: PathBuf,
    },
    /// A file got another name.
    Rename {
        /// The old name.
        from: PathBuf,
        /// The new name.
        to: PathBuf,
    },
    /// A file lost its name.
    Remove {
        /// The name.
        path: PathBuf,
    },
    /// The names directly in a folder became durable.
    SyncFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// Bytes were written, not yet durable.
    Write {
        /// The file.
        file: FileId,
        /// Position of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// One write became durable; it is the second half of a durable write.
    MakeDurable {
        /// The file.
        file: FileId,
        /// The number of the write.
        write: usize,
    },
    /// Everything written to a file became durable.
    Sync {
        /// The file.
        file: FileId,
    },
    /// A sync failed, and what was to be synced will never reach the disk, though reads still show
    /// it.
    LoseUnsynced {
        /// The file.
        file: FileId,
    },
    /// The length was set.
    SetLen {
        /// The file.
        file: FileId,
        /// The new length in bytes.
        len_bytes: u64,
    },
    /// Space was reserved.
    Allocate {
        /// The file.
        file: FileId,
        /// Up to this position in bytes.
        len_bytes: u64,
    },
}
