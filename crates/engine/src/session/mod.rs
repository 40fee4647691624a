//! Step 1 of an insert: a session makes each call a transaction. [after: the leaf](crate::tree)
//!
//! * `session.rs`: the calls. `settings.rs`: what a session is told about itself. `worker.rs`: into the
//!   engine and out again, with what to do when an operation is blocked. `context.rs`: what a session
//!   remembers of a table: hint and generators; `contexts.rs`: of all tables.
//! * `explain.rs`: why a change was refused.
//! * `row_record.rs`: what the log says of a row. `batch.rs`: several new rows of one table.
//!   `transaction.rs`: several rows of any kind.
//! * `write_set.rs`: what a transaction has changed. `change_memory.rs`: what that takes. `savepoint.rs`: back to
//!   where it was.
//! * `commit.rs`: how its rows become one record, all at once or over intents. `large.rs`: one that is too
//!   large for memory.
//! * `row_locks.rs`: rows that a transaction locks before it changes them, and a snapshot for each of its statements.
//!   `serializable.rs`: transactions that could have run one after the other.
//!   `advisory_locks.rs`: locks of numbers that programs agree on.
//! * `entries.rs`: what a change of a row changes in the indexes. `indexed.rs`: rows of such tables
//!   that commit by themselves. `indexes.rs`: indexes that a transaction makes, renames and drops.
//!   `index_filler.rs`: entries of rows that were there before an index.
//! * `long_values.rs`: values of rows that stand elsewhere. `long_value_tables.rs`: the tables that keep them.
//! * `references.rs`, `reference_side.rs`: what its changes mean for foreign keys. `foreign_keys.rs`: foreign keys
//!   that it makes, changes and drops. `taken_keys.rs`: keys of UNIQUE constraints that are looked at later.
//! * `definitions.rs`: tables that a transaction creates, alters, empties and drops. `altered_rows.rs`: whether
//!   the rows suit that.
//!   `table_locks.rs`: what it keeps from others. `commit_definitions.rs`: how those and its rows become one record.
//! * `replace.rs`: one table in the place of another. `changes.rs`: what has changed between two snapshots.
//!   `written.rs`: rows that were written since an LSN.
//! * `counters.rs`: the numbers behind generated keys, moved by hand.
//! * `read.rs`, `scan.rs`, `snapshot.rs`: reading. `read_ahead.rs`: leaves that are read before
//!   a scan comes to them. `rest.rs`: what answers rest on. `token.rs`: waiting for durability later.

mod account;
mod advisory_locks;
mod altered_rows;
mod batch;
mod change_memory;
mod changes;
mod commit;
mod commit_definitions;
mod context;
mod contexts;
mod counters;
mod definitions;
mod entries;
mod explain;
mod foreign_keys;
mod generated;
mod index_filler;
mod indexed;
mod indexes;
mod key_prefetch;
mod large;
mod large_undo;
mod long_value_tables;
mod long_values;
mod moving;
mod read;
mod read_ahead;
mod reference_side;
mod references;
mod replace;
mod rest;
mod row_locks;
mod row_record;
mod savepoint;
mod scan;
mod serializable;
#[allow(clippy::module_inception)]
mod session;
mod settings;
mod snapshot;
mod table_locks;
mod taken_keys;
mod token;
mod transaction;
mod transaction_snapshot;
mod worker;
mod write_set;
mod written;

pub use advisory_locks::{AdvisoryLocks, AdvisoryScope};
pub use changes::{Changes, RowChange};
pub use definitions::Identities;
pub use foreign_keys::NewForeignKey;
pub use generated::GeneratedValues;
pub(crate) use index_filler::IndexFiller;
pub(crate) use indexes::{BuiltAgain, index_with};
pub use indexes::{NewIndex, NewIndexed};
pub(crate) use moving::check_alike;
pub use row_locks::RowLockOutcome;
pub use savepoint::Savepoint;
pub use scan::{KeyRange, Scan, ScanOptions, ScannedPart};
pub use session::Session;
pub use snapshot::Snapshot;
pub use token::CommitToken;
pub use transaction::Transaction;
pub use written::{WrittenRow, WrittenRows};
