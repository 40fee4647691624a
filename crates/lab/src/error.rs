//! Why a study, a comparison or a piece of advice could not be made. A wrong result is no error here but part of
//! the result.

use std::path::PathBuf;

use onrush_files::DiskError;
use onrush_measure::{FolderError, MeasureError};

/// Why a study, a comparison or a piece of advice could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Words of the command line, or settings, that cannot be meant so, and the cure.
    #[error("{0}")]
    Setting(String),
    /// A study that cannot be read.
    #[error("{source_name}: {what}")]
    Study {
        /// Its file or name.
        source_name: String,
        /// What is wrong, and the cure.
        what: String,
    },
    /// A result file that cannot be read or written.
    #[error("{path}: {what}", path = path.display())]
    ResultFile {
        /// Which.
        path: PathBuf,
        /// What is wrong, and the cure.
        what: String,
    },
    /// A result file that cannot be continued: another study, version or machine began it.
    #[error("{path}: {what}", path = path.display())]
    OtherStudy {
        /// Which.
        path: PathBuf,
        /// What is different, and the cure.
        what: String,
    },
    /// A target failed: a baseline refused something, or died.
    #[error("{target}: {what}")]
    Target {
        /// Which.
        target: String,
        /// What it said.
        what: String,
    },
    /// A load of Onrush could not be measured.
    #[error("{0}")]
    Measure(#[from] MeasureError),
    /// The engine refused something else.
    #[error("{0}")]
    Engine(#[from] onrush::Error),
    /// The disk refused something.
    #[error("{0}")]
    Disk(#[from] DiskError),
    /// A folder or file could not be made, read or removed.
    #[error("{0}")]
    Folder(#[from] FolderError),
}
