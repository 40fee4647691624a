//! What can go wrong in the log, by what the caller can do about it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use onrush_files::DiskError;
use onrush_lsn::Lsn;

/// The reason of a failure, shared by all who must hear of it.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// An error of the log.
#[derive(Clone, Debug)]
pub enum LogError {
    /// A write or sync of the log failed, now or earlier. Whether what was waited for is on disk is
    /// not known; nothing later will be durable, and nothing is retried. Reopen the database to
    /// find out.
    OutcomeUnknown {
        /// The first failure.
        cause: Cause,
    },
    /// The disk has no space for another log segment. Nothing was reserved; it works again when
    /// there is space.
    DiskFull {
        /// What the disk said.
        cause: Arc<DiskError>,
    },
    /// The log has its full capacity, and there is no thread that could wait for a checkpoint: take
    /// one, then repeat.
    CapacityReached,
    /// The record is larger than the options allow.
    RecordTooLarge {
        /// Its length with its frame, in bytes.
        bytes: usize,
        /// The most there may be, in bytes.
        bytes_max: usize,
    },
    /// A setting is outside its range.
    InvalidOption {
        /// Its name.
        name: &'static str,
        /// The range, and why.
        reason: String,
    },
    /// The log is damaged below what is known to have been durable. It is not opened, and nothing
    /// was changed.
    Damaged {
        /// Number of the log segment.
        segment: u64,
        /// Byte offset in its file.
        offset: u64,
        /// The LSN that could not be read.
        lsn: Lsn,
        /// What is wrong there.
        reason: String,
    },
    /// The log ends before the LSN that the checkpoint needs. It is not opened, and nothing was
    /// changed.
    EndsEarly {
        /// Number of the log segment where it ends.
        segment: u64,
        /// Byte offset in its file.
        offset: u64,
        /// The last LSN there is.
        ends_at: Lsn,
        /// The LSN that the caller said must be there.
        must_reach: Lsn,
    },
    /// A newer version of Onrush wrote a part of the log that this one would have to read. It is not
    /// opened, and nothing was changed.
    FutureFormat {
        /// The file of the log segment.
        path: PathBuf,
        /// Its format version, or the one of a block in it.
        found: u32,
        /// The one that this version of Onrush knows.
        known: u32,
    },
    /// What was to be read is no longer there: no checkpoint needs it, and nobody has held it.
    NotKept {
        /// Number of the log segment.
        segment: u64,
    },
    /// The disk failed while the log was opened, created or recycled.
    Disk(Arc<DiskError>),
    /// What the caller's own function answered while records were handed to it.
    Apply(Cause),
    /// A background thread could not be started.
    Thread(Cause),
    /// The log is closed.
    Closed,
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutcomeUnknown { cause } => write!(
                formatter,
                "outcome unknown: the log failed and takes nothing more; \
                 reopen the database ({cause})"
            ),
            Self::DiskFull { cause } => {
                write!(formatter, "no space for another log segment; free disk space ({cause})")
            }
            Self::CapacityReached => {
                write!(formatter, "the log has its full capacity; take a checkpoint")
            }
            Self::RecordTooLarge { bytes, bytes_max } => {
                write!(formatter, "a log record of {bytes} bytes; the most is {bytes_max}")
            }
            Self::InvalidOption { name, reason } => {
                write!(formatter, "log option {name}: {reason}")
            }
            Self::Damaged { segment, offset, lsn, reason } => write!(
                formatter,
                "log segment {segment} is damaged at offset {offset} (lsn {lsn}): {reason}; \
                 this was durable once, so the log is not opened: restore a backup"
            ),
            Self::EndsEarly { segment, offset, ends_at, must_reach } => write!(
                formatter,
                "the log ends at lsn {ends_at} (segment {segment}, offset {offset}), \
                 but the checkpoint needs it up to {must_reach}: log segments are \
                 missing or damaged; restore them or a backup"
            ),
            Self::FutureFormat { path, found, known } => write!(
                formatter,
                "{} has format {found}, this version knows {known}; use a newer Onrush",
                path.display()
            ),
            Self::NotKept { segment } => {
                write!(formatter, "log segment {segment} was used again, so what it held is gone")
            }
            Self::Disk(cause) => write!(formatter, "log: {cause}"),
            Self::Apply(cause) => write!(formatter, "replay: {cause}"),
            Self::Thread(cause) => write!(formatter, "cannot start a log thread: {cause}"),
            Self::Closed => write!(formatter, "the log is closed"),
        }
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OutcomeUnknown { cause } | Self::Apply(cause) | Self::Thread(cause) => {
                Some(cause.as_ref())
            }
            Self::DiskFull { cause } | Self::Disk(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> Self {
        Self::Disk(Arc::new(error))
    }
}
