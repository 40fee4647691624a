//! Why a measurement could not be made. A wrong result is no error here but part of the result: see
//! [`Verification`](crate::Verification).

use std::path::{Path, PathBuf};

use onrush_files::DiskError;

use crate::units;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A setting out of its range.
    #[error("{0}")]
    Setting(String),
    /// A thread could not be tied to a processor.
    #[error(
        "the system does not let threads be tied to processors ({0}); allow sched_setaffinity, in \
         a container with --cap-add SYS_NICE, or set pinning = \"none\""
    )]
    Pinning(String),
    /// The statistics cannot be served where they were to be.
    #[error(
        "cannot serve the statistics on {address}: {source}; give --metrics another address or port"
    )]
    Metrics {
        /// Where.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A session got an error, and the load was stopped.
    #[error("session {session} failed after {rows} of its rows: {cause}")]
    Session {
        /// Which session, from 0.
        session: usize,
        /// Rows of it that were acknowledged.
        rows: u64,
        /// What the engine said.
        cause: onrush::Error,
    },
    /// A session reads or updates a row that it has inserted, and there is none.
    #[error("the row {key} was acknowledged, and is not found")]
    RowMissing {
        /// Its key.
        key: String,
    },
    /// The engine refused something else.
    #[error("{0}")]
    Engine(#[from] onrush::Error),
    /// The disk refused something.
    #[error("{0}")]
    Disk(#[from] DiskError),
    /// Too little space for what was asked for.
    #[error(
        "{folder} has {free} free, and this load needs about {needed}; \
         give fewer --rows, another --dir, or make space",
        folder = folder.display(), free = units::bytes(*free_bytes),
        needed = units::bytes(*needed_bytes)
    )]
    NoSpace {
        /// Where.
        folder: PathBuf,
        /// Free space.
        free_bytes: u64,
        /// Space needed, generously estimated.
        needed_bytes: u64,
    },
    /// The folder given holds something.
    #[error("{} is not empty; give an empty or a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// A folder or file could not be made, read or removed.
    #[error("{0}")]
    Folder(#[from] FolderError),
}

/// What the system said when a folder or file was to be made, read, written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}", path = path.display())]
pub struct FolderError {
    operation: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

impl FolderError {
    /// `operation` is what was tried: "create folder".
    pub fn new(operation: &'static str, path: &Path, source: std::io::Error) -> FolderError {
        FolderError { operation, path: path.to_owned(), source }
    }
}
