//! What can go wrong, by what the caller can do about it.
//!
//! | class | examples | what to do |
//! |---|---|---|
//! | your input | wrong type, duplicate key, unknown table | correct the call; nothing has happened |
//! | try again | conflict, disk full, log full | retry, perhaps after making space; nothing has happened |
//! | outcome unknown | a failed write or sync while a commit waited | open the database again and look |
//! | disk failed | read errors, missing folder | see the disk |
//! | data corrupt | a damaged superblock, log or image | restore; the engine refuses to guess |

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{DiskError, DiskErrorKind, Unfinished};
use onrush_log::LogError;
use onrush_types::{DataType, NeedsNoRows, TypeError};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Where stored bytes are not what they must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Byte position in the file.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

/// A condition of a domain that a column does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainViolation {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The domain.
    pub domain: String,
    /// Its check; none: a value is NULL, and may not be.
    pub constraint: Option<String>,
}

impl fmt::Display for DomainViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DomainViolation { table, column, domain, constraint } = self;
        write!(formatter, "table {table}: column {column} is of domain {domain}, whose ")?;
        match constraint {
            Some(name) => write!(formatter, "check constraint {name}"),
            None => formatter.write_str("NOT NULL"),
        }
    }
}

impl Damage {
    pub(crate) fn new(path: &Path, offset: u64, what: &str) -> Damage {
        Damage { path: path.into(), offset, what: what.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.path.display(), self.offset, self.what)
    }
}

/// A key for messages, as `(x = 1, y = 2)`: columns and their values as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInWords(pub Vec<(String, String)>);

impl fmt::Display for KeyInWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (number, (column, value)) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{column} = {value}")?;
        }
        f.write_str(")")
    }
}

/// Every error of the engine, with its cause and its cure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value, row or table definition that is not possible. Your input.
    #[error(transparent)]
    Type(TypeError),
    /// The key is taken. Your input.
    #[error(
        "table {table} already has a row with key {key}; take another key, or use upsert if that row is to be replaced"
    )]
    DuplicateKey {
        /// The table.
        table: String,
        /// The name of the primary key, if it has one.
        constraint: Option<Box<str>>,
        /// The key's columns and values.
        key: KeyInWords,
    },
    /// A row with these values in the columns of a unique index is already there. Your input.
    #[error(
        "table {table} already has a row with {key}, which the unique index {index} allows once; take other values"
    )]
    UniqueViolated {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// The index's columns and values.
        key: KeyInWords,
    },
    /// A row references a key that is not there. Your input.
    #[error(
        "table {table}: {key} references a row that table {referenced} does not have ({constraint}); insert that row \
         first"
    )]
    ReferenceMissing {
        /// The referencing table.
        table: Box<str>,
        /// The foreign key.
        constraint: Box<str>,
        /// The referencing columns and their values.
        key: KeyInWords,
        /// The referenced table.
        referenced: Box<str>,
    },
    /// A row is to be deleted, or its key changed, that others reference. Your input.
    #[error(
        "table {table}: rows of table {referencing} reference {key} ({constraint}); change or delete those first"
    )]
    StillReferenced {
        /// The referenced table.
        table: Box<str>,
        /// The foreign key.
        constraint: Box<str>,
        /// The referenced columns and their values.
        key: KeyInWords,
        /// The referencing table.
        referencing: Box<str>,
    },
    /// A row has NULL in some columns of a foreign key, where all must be NULL or none. Your input.
    #[error("table {table}: either all columns of {constraint} are NULL, or none")]
    ReferenceMixed {
        /// The referencing table.
        table: Box<str>,
        /// The foreign key.
        constraint: Box<str>,
    },
    /// A table, or a key of it, is to go or to be emptied that another table references. Your input.
    #[error(
        "table {table} is referenced by table {referencing} ({constraint}); drop that foreign key first"
    )]
    TableReferenced {
        /// The referenced table.
        table: String,
        /// The foreign key.
        constraint: String,
        /// The referencing table.
        referencing: String,
    },
    /// A foreign key to columns that are neither the primary key nor those of a unique index. Your input.
    #[error("table {table} has no unique index of the columns {columns}; create one first")]
    NoReferencedKey {
        /// The referenced table.
        table: String,
        /// The columns.
        columns: String,
    },
    /// A column of a foreign key whose type is not that of the referenced column. Your input.
    #[error(
        "the foreign key {constraint} cannot be: column {column} is {data_type}, and {referenced} is {referenced_type}"
    )]
    ReferenceTypes {
        /// The foreign key.
        constraint: Box<str>,
        /// The referencing column.
        column: Box<str>,
        /// Its type.
        data_type: DataType,
        /// The referenced column.
        referenced: Box<str>,
        /// Its type.
        referenced_type: DataType,
    },
    /// No such index. Your input.
    #[error("there is no index {name}; check the spelling")]
    UnknownIndex {
        /// The name asked for.
        name: String,
    },
    /// What can be done with a table only. Your input.
    #[error("{name} is an index; name its table")]
    IsIndex {
        /// Its name.
        name: String,
    },
    /// Rows for a view or a type. Your input.
    #[error("{name} is a view or a type, which has no rows; write to the tables that have them")]
    IsView {
        /// Its name.
        name: String,
    },
    /// A change of a row of a table whose rows are inserted only. Your input.
    #[error("rows of table {name} are inserted only; they are neither changed nor deleted")]
    AppendsOnly {
        /// Its name.
        name: String,
    },
    /// No such table. Your input.
    #[error("there is no table {name}; create it first, or check the spelling")]
    UnknownTable {
        /// The name asked for.
        name: String,
    },
    /// The table exists. Your input.
    #[error("a table {name} already exists; choose another name or drop it first")]
    TableExists {
        /// The name.
        name: String,
    },
    /// Tables have been created or truncated four billion times; each time takes a number.
    #[error(
        "the numbers for tables are used up: tables of this database have been created and \
         truncated four billion times; export its rows into a new database"
    )]
    TableNumbersUsedUp,
    /// The table was dropped, truncated or altered while it was in use. Try again.
    #[error("table {name} was dropped, truncated or altered meanwhile; get it again and retry")]
    TableChanged {
        /// The table.
        name: String,
    },
    /// A column that only a table without rows can get. Your input.
    #[error("column {column} cannot be added to table {table}, which has rows: {reason}")]
    RowsInTheWay {
        /// The table.
        table: String,
        /// The new column.
        column: String,
        /// What its rows would lack.
        reason: NeedsNoRows,
    },
    /// A row that a CHECK constraint does not let pass. Your input.
    #[error("table {table}: the row violates check constraint {constraint}; correct its values")]
    CheckViolated {
        /// The table.
        table: String,
        /// The constraint.
        constraint: String,
    },
    /// A CHECK constraint that rows which are there do not meet. Your input.
    #[error("table {table}: some row violates check constraint {constraint}; correct it first")]
    RowsViolateCheck {
        /// The table.
        table: String,
        /// The new constraint.
        constraint: String,
    },
    /// A row with a value that is none of the domain of its column. Your input.
    #[error("{0} the value does not meet; correct it")]
    DomainViolated(Box<DomainViolation>),
    /// A condition of a domain that values which are there do not meet. Your input.
    #[error("{0} some of its values do not meet; correct them first")]
    RowsViolateDomain(Box<DomainViolation>),
    /// A column that must not be NULL from now on, and is in rows that are there. Your input.
    #[error("table {table}: column {column} contains null values; give it others first")]
    RowsHoldNull {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Whether a CHECK constraint is met could not be told, or a default not be computed.
    #[error("{0}")]
    CheckFailed(Arc<dyn std::error::Error + Send + Sync>),
    /// Nobody is there who understands a CHECK constraint of the table.
    #[error(
        "table {table} has the CHECK constraint {constraint}, which only the server understands; write \
         to it through SQL, or write the constraint with what docs/sql.md lists"
    )]
    ChecksNotUnderstood {
        /// The table.
        table: String,
        /// The first of its constraints that is not understood.
        constraint: String,
    },
    /// Nobody is there who understands the default of a column.
    #[error(
        "column {column} of table {table} has a default that only the server can compute; give it a \
         value, or write through SQL"
    )]
    DefaultNotUnderstood {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// An online check that cannot be done.
    #[error(transparent)]
    Check(#[from] onrush_check::CheckError),
    /// A backup that cannot be made. The database goes on.
    #[error(transparent)]
    Backup(#[from] onrush_backup::BackupError),
    /// A setting outside its range. Your input.
    #[error("setting {setting} is {given}: {reason}")]
    BadOption {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        given: String,
        /// What is allowed, and why.
        reason: String,
    },
    /// Rows cannot be moved between these tables as they are. Your input.
    #[error("rows cannot be moved from {front} to {target}: {reason}")]
    TablesDiffer {
        /// The table that has them.
        front: String,
        /// The table that should get them.
        target: String,
        /// What is different, and what to do.
        reason: String,
    },
    /// Another transaction changed the same row first. Try again.
    #[error("table {table}, key {key}: another transaction changed the row first; retry yours")]
    Conflict {
        /// The table.
        table: String,
        /// The key's columns and values.
        key: KeyInWords,
    },
    /// Other serializable transactions have changed what this one has read, or have read what it changes. Try again.
    #[error(
        "other serializable transactions have changed what this one has read, or have read what it changes, so that \
         they may not have run one after the other; retry yours"
    )]
    NotSerializable,
    /// Old versions of rows took more memory than they may, and what the snapshot may have seen is not kept any
    /// more. Try again, with a new snapshot.
    #[error(
        "snapshot too old: what it may have seen in table {table} is not kept any more, since old versions of rows \
         may take {limit_bytes} bytes; read again from a new snapshot, or raise old_versions_bytes or memory_bytes"
    )]
    SnapshotTooOld {
        /// The table.
        table: String,
        /// What old versions of all tables may take.
        limit_bytes: u64,
    },
    /// Transactions wait for each other's tables or names in a circle. Try again.
    #[error(
        "deadlock: this transaction waits for {what}, and others wait for it; roll it back and retry"
    )]
    Deadlock {
        /// What was waited for.
        what: String,
    },
    /// Another transaction had a table or a name for longer than this session waits. Try again.
    #[error(
        "{what} is still being defined or used by another transaction; retry when it has ended"
    )]
    LockTimeout {
        /// What was waited for.
        what: String,
    },
    /// The session was told to give up what it waited for.
    #[error("the call was interrupted while it waited for another transaction")]
    Interrupted,
    /// The savepoint is not one of the transaction's, or no longer.
    #[error(
        "the transaction has no such savepoint: it was released, or the transaction has gone back \
         to an earlier one; set a new one"
    )]
    NoSavepoint,
    /// The view shows what a transaction had changed, and that has ended.
    #[error(
        "the view shows what its transaction had changed, and that has ended; read before it ends"
    )]
    TransactionEnded,
    /// A large transaction defines a table that it has written to. Your input.
    #[error(
        "the transaction has changed so many rows of table {table} that it cannot alter, empty or drop it any \
         more; define the table first, or in a transaction of its own"
    )]
    DefinedTooLate {
        /// The table.
        table: String,
    },
    /// What a transaction has to keep in memory until it commits is too much: definitions, and rows of tables that
    /// it alters itself. Your input.
    #[error(
        "the transaction makes a log record of {bytes} bytes of definitions and of rows of tables that it alters \
         itself, the limit is {limit}; commit the definitions before, or raise log_ring_bytes"
    )]
    TransactionTooLarge {
        /// Size of the record.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too little memory for leaves for what is going on at once.
    #[error(
        "all {frames} frames of the memory for leaves are in use by unfinished work; \
         raise leaf_memory_bytes or use fewer sessions"
    )]
    LeafMemoryTooSmall {
        /// Frames in all.
        frames: usize,
    },
    /// The disk is full. Nothing of the statement has happened. Try again once there is space.
    #[error("{cause}; nothing was lost")]
    DiskFull {
        /// What could not be made larger.
        cause: String,
    },
    /// There is a database here already. Your input.
    #[error("{folder} already holds a database; open it, or choose another folder",
        folder = folder.display())]
    AlreadyExists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder of a new database has other files in it. Your input.
    #[error("{folder} has files of its own in it ({found}), and a database needs a folder for itself; \
        name an empty folder or a new one", folder = folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// The first of them.
        found: String,
    },
    /// A restore, backup or repair makes a database here, or was cut off.
    #[error("{0}")]
    Unfinished(Unfinished),
    /// There is no database here. Your input.
    #[error("{folder} holds no Onrush database; create one, or check the path",
        folder = folder.display())]
    NotFound {
        /// The folder.
        folder: PathBuf,
    },
    /// Somebody has the database open.
    #[error("{cause}")]
    InUse {
        /// Who, as far as is known.
        cause: String,
    },
    /// A newer version of Onrush wrote this.
    #[error("{path} has format {found}, this version knows {known}; use a newer Onrush",
        path = path.display())]
    FutureFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// A write or sync failed while a commit waited for it: it may or may not survive.
    #[error(
        "outcome unknown: {cause}. The commit may or may not be durable; the engine has stopped. \
         Open the database again and look"
    )]
    OutcomeUnknown {
        /// The first failure.
        cause: String,
    },
    /// The engine has stopped after an earlier failure.
    #[error("the engine has stopped: {cause}. Close the database and open it again")]
    Stopped {
        /// The first failure.
        cause: String,
    },
    /// The database was closed.
    #[error("the database is closed; open it again")]
    Closed,
    /// A folder or file that cannot be used.
    #[error("{0}")]
    Disk(DiskError),
    /// Stored bytes are not what they must be.
    #[error("damaged: {0}. Nothing was changed; restore the database from a backup")]
    Damaged(Damage),
    /// The log is damaged where it was durable, or ends too early.
    #[error("damaged log: {0}. Nothing was changed; restore the database from a backup")]
    DamagedLog(String),
    /// Reserved for states that the code rules out; seeing it is a defect.
    #[error("internal: {0}; please report this")]
    Internal(String),
}

impl Error {
    /// Whether the same call may succeed later, without a change by the caller: a conflict, a
    /// full disk, a table changed meanwhile.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::Conflict { .. }
                | Error::NotSerializable
                | Error::SnapshotTooOld { .. }
                | Error::DiskFull { .. }
                | Error::TableChanged { .. }
                | Error::Deadlock { .. }
                | Error::LockTimeout { .. }
        )
    }

    /// Whether the engine has stopped, so that the database must be opened again.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Error::OutcomeUnknown { .. } | Error::Stopped { .. })
    }
}

/// A row of a version that the schema does not know yet was written after the table was altered.
impl From<TypeError> for Error {
    fn from(error: TypeError) -> Error {
        match error {
            TypeError::WrongSchemaVersion { table, found, expected } if found > expected => {
                Error::TableChanged { name: table.into() }
            }
            error => Error::Type(error),
        }
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Error {
        match error.kind() {
            DiskErrorKind::Full => Error::DiskFull { cause: error.to_string() },
            DiskErrorKind::Locked => Error::InUse { cause: error.to_string() },
            DiskErrorKind::Failed => Error::Stopped { cause: error.to_string() },
            _ => Error::Disk(error),
        }
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Error {
        match error {
            LogError::OutcomeUnknown { cause } => {
                Error::OutcomeUnknown { cause: cause.to_string() }
            }
            LogError::DiskFull { cause } => Error::DiskFull { cause: cause.to_string() },
            LogError::Disk(cause) => Error::from((*cause).clone()),
            LogError::RecordTooLarge { bytes, bytes_max } => {
                Error::TransactionTooLarge { bytes, limit: bytes_max }
            }
            LogError::InvalidOption { name, reason } => {
                let setting = setting_of(name);
                Error::BadOption { setting, given: "out of range".into(), reason }
            }
            LogError::FutureFormat { path, found, known } => {
                Error::FutureFormat { path, found, known }
            }
            LogError::Closed => Error::Closed,
            LogError::Thread(cause) => {
                Error::Internal(format!("the log cannot start a thread: {cause}"))
            }
            LogError::CapacityReached => {
                Error::Internal("the log is full and nobody takes a checkpoint".into())
            }
            damaged @ (LogError::Damaged { .. }
            | LogError::EndsEarly { .. }
            | LogError::NotKept { .. }
            | LogError::Apply(_)) => Error::DamagedLog(damaged.to_string()),
        }
    }
}

/// The database's setting behind an option of the log.
fn setting_of(option: &'static str) -> &'static str {
    match option {
        "ring_bytes" | "record_bytes_max" => "log_ring_bytes",
        "segment_bytes" => "log_segment_bytes",
        "block_bytes_max" => "log_block_bytes_max",
        "capacity_bytes" => "log_capacity_bytes",
        "window.milliseconds" => "delayed_window_ms",
        "window.bytes" => "delayed_window_bytes",
        "permits" => "cpus_kept_free",
        other => other,
    }
}
