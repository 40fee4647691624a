//! Why there is no copy.

use std::path::PathBuf;

use onrush_check::{CheckError, CheckReport};
use onrush_files::{DiskError, Unfinished};
use onrush_lsn::Lsn;

use crate::limit::time_words;

/// See the module. In every case nothing outside of the new folder was changed, and what was written
/// there is removed again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The new folder has something in it.
    #[error("{} exists already and is not empty; name a new folder", folder.display())]
    TargetExists {
        /// The folder.
        folder: PathBuf,
    },
    /// In the new folder another one was begun, and not finished.
    #[error("{0}")]
    TargetUnfinished(Unfinished),
    /// The new folder would lie in the database.
    #[error("{} lies inside the database that is copied; name a folder outside of it", folder.display())]
    TargetInside {
        /// The folder.
        folder: PathBuf,
    },
    /// What is to be copied cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// What was to be copied is not sound.
    #[error(
        "what was to be copied is damaged, so there is no copy ({} findings); the first: {}; \
         `onrush check` lists all, `onrush repair` saves what is sound",
        .0.damage(),
        .0.findings.first().map_or_else(String::new, ToString::to_string)
    )]
    Damaged(Box<CheckReport>),
    /// The moment is before what the images hold.
    #[error(
        "the point in time is too early: the images of the backup hold what was committed up to LSN \
         {must_reach_lsn}{}; take a later one or an older backup",
        .must_reach_us.and_then(time_words).map_or_else(String::new, |time| format!(" ({time})"))
    )]
    TooEarly {
        /// What its images reach to.
        must_reach_lsn: Lsn,
        /// When that was durable at the latest, in microseconds since 1970; none if nobody knows.
        must_reach_us: Option<u64>,
    },
    /// The log ends before the moment.
    #[error(
        "the log that is there ends at LSN {end_lsn}{}, before LSN {wanted_lsn}; name the folders \
         with the later log segments, or leave the LSN out to restore all there is",
        .end_time_us.and_then(time_words).map_or_else(String::new, |time| format!(" ({time})"))
    )]
    TooLate {
        /// The LSN asked for.
        wanted_lsn: Lsn,
        /// Where the log ends.
        end_lsn: Lsn,
        /// When its last block was built, in microseconds since 1970; none if it has none.
        end_time_us: Option<u64>,
    },
    /// The log ends before the moment, and nobody knows whether there was more.
    #[error(
        "the log that is there ends at LSN {end_lsn}{}, before {}; name the folders with the later log \
         segments, or leave the time out to restore all there is",
        .end_time_us.and_then(time_words).map_or_else(String::new, |time| format!(" ({time})")),
        time_words(*.wanted_us).unwrap_or_default()
    )]
    TimeTooLate {
        /// The moment asked for, in microseconds since 1970.
        wanted_us: u64,
        /// Where the log ends.
        end_lsn: Lsn,
        /// When the last of it was durable, in microseconds since 1970; none if nobody knows.
        end_time_us: Option<u64>,
    },
    /// A folder with log segments that is not there.
    #[error("there is no folder {}; name one that holds log segments", folder.display())]
    NoLogFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// A log segment of another database, where this one's would go on.
    #[error(
        "{} is a log segment of another database than the backup's; name the folder with the segments \
         of the database that was backed up",
        path.display()
    )]
    ForeignLog {
        /// The segment.
        path: PathBuf,
    },
    /// An option that a copy cannot have.
    #[error("{0}")]
    BadOption(String),
    /// No moment.
    #[error(
        "'{text}' is no timestamp ({cause}); write it as 2026-03-01T14:05:00Z or 2026-03-01T15:05:00+01:00"
    )]
    BadTime {
        /// What was given.
        text: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The copy cannot be written.
    #[error("cannot write the copy: {0}; nothing of it is kept")]
    Write(DiskError),
}

impl From<DiskError> for BackupError {
    fn from(error: DiskError) -> BackupError {
        BackupError::Write(error)
    }
}
