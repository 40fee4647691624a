//! What can go wrong with an archive, by what the operator can do about it.

use onrush::Lsn;
use onrush_backup::BackupError;
use onrush_check::CheckReport;
use onrush_files::DiskError;
use onrush_log::LogError;

use crate::store::StoreError;

/// See the module.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A URL that names no store.
    #[error("{url:?} is no place for an archive: {reason}")]
    BadUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store does not answer, or refuses. It is asked again.
    #[error(transparent)]
    Away(#[from] StoreError),
    /// Somebody else archives this history, or it was ended.
    #[error("{because}")]
    Fenced {
        /// Why nothing is archived any more.
        because: FencedBecause,
    },
    /// An object is not what was written.
    #[error("object {object} of the archive is damaged: {what}")]
    Damaged {
        /// Its name.
        object: String,
        /// What is wrong with it.
        what: String,
    },
    /// The database, its log or its disk.
    #[error(transparent)]
    Database(#[from] onrush::Error),
    /// The database's log cannot be read.
    #[error("cannot read the log: {0}")]
    Log(#[from] LogError),
    /// A backup was not made, because what it is of is damaged.
    #[error(
        "the database is damaged, so no backup of it is archived ({} findings); the first: {}; `onrush check` lists \
         all",
        .0.damage(),
        .0.findings.first().map_or_else(String::new, ToString::to_string)
    )]
    DatabaseDamaged(Box<CheckReport>),
    /// There is nothing to restore.
    #[error("there is no archive at {place}; name the URL that the node was started with")]
    NoArchive {
        /// Where it was looked for.
        place: String,
    },
    /// Several archives, and no word which one.
    #[error(
        "there are archives of several histories at {place}: {found}; name one of them behind the URL and a /"
    )]
    SeveralHistories {
        /// Where it was looked for.
        place: String,
        /// The histories, as words.
        found: String,
    },
    /// Log without a backup.
    #[error(
        "the archive of history {history} has no complete backup{}; there is nothing to restore from it",
        .before.map_or_else(String::new, |lsn| format!(" that can be restored to before LSN {lsn}"))
    )]
    NoBackup {
        /// The history, as a word.
        history: String,
        /// The position that was asked for.
        before: Option<Lsn>,
    },
    /// Something between the backup and the end of the archive cannot be had.
    #[error(
        "the archive can be restored up to LSN {reached} only: {what}. With --as-far-as-possible the database is \
         restored up to there, and what was committed later is lost"
    )]
    Incomplete {
        /// What can be had.
        reached: Lsn,
        /// What is missing or damaged.
        what: String,
    },
    /// The database could not be made.
    #[error(transparent)]
    Restore(#[from] BackupError),
    /// The new folder cannot be written.
    #[error("cannot write the database: {0}")]
    Disk(#[from] DiskError),
    /// The archiver was stopped.
    #[error("nothing is archived any more: the database is being closed")]
    Stopped,
}

/// Why nothing is archived any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FencedBecause {
    /// Somebody else has written what comes next.
    #[error(
        "object {object} of the archive holds other log than this database has: its folder was copied, and the copy \
         is archived too. Stop whichever of both shall not go on; the one that stays and is refused here is given \
         an archive of its own by `onrush backup` and `onrush restore`, which draw a new history"
    )]
    OtherLog {
        /// The object.
        object: String,
    },
    /// The archive is further than this database.
    #[error(
        "the archive goes on to object {object}, which this database has never written: its folder is an older copy. \
         Go on with the newer one, or restore the archive with `onrush restore`"
    )]
    Ahead {
        /// The object at which it ends.
        object: String,
    },
    /// Nobody can say whose the end of the archive is.
    #[error(
        "the archive ends at object {object}, and this database neither has that log any more nor has noted that it \
         wrote it: its folder may be a copy. If it is not, give it an archive of its own by `onrush backup` and \
         `onrush restore`, which draw a new history"
    )]
    Unproven {
        /// The object at which it ends.
        object: String,
    },
    /// The history was restored elsewhere.
    #[error(
        "the archive was closed at LSN {lsn}, by a restore of this node into another database: that one goes on. \
         What was committed here later is here alone; take it over by hand (`onrush export`), then retire this \
         database"
    )]
    Closed {
        /// Up to where the successor has it.
        lsn: Lsn,
    },
}

impl ArchiveError {
    /// Whether asking again may help without anybody doing anything.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            ArchiveError::Away(_) => true,
            ArchiveError::Database(error) => {
                matches!(error, onrush::Error::DiskFull { .. } | onrush::Error::Conflict { .. })
            }
            _ => false,
        }
    }
}

impl From<FencedBecause> for ArchiveError {
    fn from(because: FencedBecause) -> ArchiveError {
        ArchiveError::Fenced { because }
    }
}
