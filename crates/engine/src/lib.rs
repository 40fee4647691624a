//! Onrush: a storage engine for concurrent singleton inserts.
//!
//! Many threads and tasks insert one row at a time, each with its own commit; there is no single
//! writer. A commit is durable when it is acknowledged as durable, what survives a crash is a
//! prefix of the commit order, and reads see a consistent snapshot meanwhile.
//!
//! ```
//! use onrush::{ColumnDefinition, DataType, Database, KeyStrategy, Options, TableDefinition, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop");
//! # let options = Options::small();
//! let db = Database::create(&path, options)?;
//! let orders = db.create_table(
//!     TableDefinition::builder("orders")
//!         .column(ColumnDefinition::new("id", DataType::Int64).not_null().default_key(
//!             KeyStrategy::Identity { start: 1, strict: false },
//!         ))
//!         .column(ColumnDefinition::new("note", DataType::Varchar(40)))
//!         .primary_key(["id"])
//!         .build()?,
//! )?;
//! let mut session = db.session()?;
//! session.insert(&orders, &[Value::Default, "first".into()])?; // durable when this returns
//! let row = session.get(&orders, &[1i64.into()])?.expect("just inserted");
//! assert_eq!(row[1], "first".into());
//! drop(session);
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # The life of one insert
//!
//! 1. **Session**: [`Session::insert`] makes the call a transaction of its own (`session/`).
//! 2. **Admission**: `session/worker.rs` takes an admission permit and log space.
//! 3. **Key and row**: `session/context.rs` fills generated keys and the clock, `onrush-types`
//!    makes the bytes.
//! 4. **Leaf**: `tree/tree.rs` finds it by the session's hint or from the root and latches it
//!    exclusive; `tree/write.rs` checks fences and duplicate and makes a clean leaf dirty for the
//!    current epoch.
//! 5. **Log**: under the latch the LSN is reserved, so the order of a key is the order of the log;
//!    the row is placed with it, the leaf unlatched, the record copied into the ring
//!    (`onrush-log`).
//! 6. **Commit**: `onrush-log` writes and syncs one block for all who wait; delayed commits and
//!    tokens return at once.
//! 7. **Checkpoint**: later, `storage/imager.rs` copies the dirty leaf into a fresh slot.
//! 8. **Install**: `checkpoint/` makes log, images and changed directory segments durable, then
//!    one superblock; only then are old slots and log segments free.
//!
//! After a crash `recovery/` takes the newest valid superblock, loads the directory, builds the
//! inner nodes and redoes the log from the checkpoint on. There is no undo: no row reaches an
//! image before its transaction has committed.

// Steps of the insert path take what they need as arguments, and a few private types are tuples.
#![allow(clippy::too_many_arguments, clippy::type_complexity)]

mod background;
mod catalog;
mod checkpoint;
mod constraint;
mod database;
mod drain;
mod engine;
mod error;
#[cfg_attr(not(feature = "planted-faults"), allow(dead_code))]
mod fault;
mod logging;
mod memory;
mod node;
mod online;
mod options;
mod recovery;
mod runtime;
mod session;
mod space;
mod statistics;
mod status;
mod storage;
mod transaction;
mod tree;
mod units;

pub use catalog::{Table, Waiting};
pub use checkpoint::{
    CheckpointProgress, CheckpointRecord, CheckpointReport, CheckpointStage, RestoredFrom,
};
pub use constraint::{ExpressionCompiler, RowCheck, RowDefault};
pub use database::{Database, IndexBuildOptions};
pub use drain::{Drain, DrainOptions, DrainProgress};
pub use error::{Damage, DomainViolation, Error, KeyInWords, Result};
#[cfg(feature = "planted-faults")]
pub use fault::{Fault, plant};
pub use online::{OnlineOptions, PageCopy};
pub use onrush_backup::{BackupError, BackupReport};
pub use onrush_check::{CheckError, CheckOptions, CheckReport, Progress as CheckProgress};
pub use onrush_log::{LogPart, LogPosition, LogStatistics, LogTail, Lsn};
pub use onrush_types::expression;
pub use onrush_types::long_values;
pub use onrush_types::{
    CheckConstraint, Clock, ColumnDefinition, ColumnDomain, ColumnInDomain, CompositeField,
    CompositeType, ComputedDefault, DOMAIN_VALUE, DataType, Decimal, DefaultValue,
    DeferrableUnique, Deferral, DomainDefinition, DomainRule, EntriesOf, EntrySource, EnumLabels,
    EnumType, FIELDS_MAX, FOREIGN_KEY_COLUMNS_MAX, ForeignKey, INDEX_COLUMNS_MAX, IndexDefinition,
    Indexed, IndexedColumn, IndexedExpression, Interval, IntervalFields, KeyOrder, KeyStrategy,
    LabelFault, MacAddress, NeedsNoRows, Network, NewLabel, Numeric, NumericFault, ROW_BYTES_MAX,
    ROW_ID, ReferentialAction, RowExpression, RowView, SECOND_DIGITS_MAX, Schema,
    SequenceDefinition, SequenceOwner, StoredBytes, TIE, TableBuilder, TableChange,
    TableDefinition, TimeTz, TypeError, Uniqueness, Uuid, VIEW_BYTES_MAX, Value, ViewColumnKind,
    ViewDefinition, ViewRows, ViewSource, WHOLE_ROW_BYTES_MAX,
};
pub use onrush_waits::{LiveSummary, LiveTotals, RecorderKind, SessionClient, Totals, Wait};
pub use options::{
    Background, Durability, LargePages, MemoryPlan, Options, PastMemory, SequentialKeys,
};
pub use recovery::{OpenPhase, OpenProgress, OpenState, RecoveryReport};
pub use session::{
    AdvisoryLocks, AdvisoryScope, Changes, CommitToken, GeneratedValues, Identities, KeyRange,
    NewForeignKey, NewIndex, NewIndexed, RowChange, RowLockOutcome, Savepoint, Scan, ScanOptions,
    ScannedPart, Session, Snapshot, Transaction, WrittenRow, WrittenRows,
};
pub use statistics::{MemoryPart, Rates, SplitRates, Statistics, WaitRate};
pub use status::RowLock;
pub use transaction::{IndexBuildPhase, IndexBuildState};
pub use tree::Direction;

/// One row: a value for each column, in the order of the table's definition.
pub type Row = Vec<Value<'static>>;
