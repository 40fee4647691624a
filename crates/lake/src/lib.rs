//! The lake drain: committed rows of a node come into tables of Apache Iceberg, or of a database that
//! speaks PostgreSQL's protocol, each exactly once.
//!
//! Two halves. [`target`] and what is below it knows these tables and nothing of the node: it carries
//! rows into one that many nodes share. [`drain`] knows the node's database: which tables are
//! attached, which rows are due, and what is noted of the marks.
//!
//! Exactly once rests on one step: rows and [`mark`] together, if the mark is where it was. In
//! Iceberg the catalogue replaces a table's metadata in one step, and a commit puts a node's files
//! and its mark into the same step, if main is still where the mark was seen. In a database it is
//! one transaction. The mark says how far the node's rows have come, so the next to look sees whether
//! a commit was applied, whatever became of its answer. [`claim`] says who may move it.
//!
//! The way of a round into Iceberg; in a database 5 to 7 are a COPY and an UPDATE of the mark:
//!
//! 1. **Connect**: [`CatalogueConfig::connect`] makes a catalogue of the configuration's words.
//! 2. **Open**: [`IcebergTarget::open_or_create`] finds the table, or makes it from
//!    [`columns`], and sees that the rows fit.
//! 3. **Claim**, once a process: [`IcebergTarget::claim`] sets the node's mark with a fresh nonce,
//!    and moves main by an empty snapshot. A predecessor stops at its next load, and what it has in
//!    flight is refused. The drain notes [`Claim::confirmed`].
//! 4. **Cut**: the drain takes the rows from the mark to an LSN, `to`, that a durable snapshot
//!    sees, so whole transactions.
//! 5. **Batch**: [`IcebergTarget::batches`] makes Arrow batches of them, with the field ids of the
//!    table.
//! 6. **Write**: [`IcebergTarget::files`] writes these as Parquet under fresh names. What a crash
//!    leaves here are files without a snapshot, which nobody reads.
//! 7. **Commit**: [`IcebergTarget::append`] stages a snapshot with the files and asks for files and
//!    mark in one commit, through the guard, which lets an attempt pass only on metadata with the
//!    expected mark.
//! 8. **Verdict**, in the same call: every answer is taken for unknown, and the mark is loaded
//!    until the catalogue answers. At `to`: [`Verdict::Applied`]. Where it was:
//!    [`Verdict::NotApplied`], and the *same* files are appended again. Anywhere else:
//!    [`LakeError::Fenced`], and the node stops for good. If the catalogue does not answer in time,
//!    [`LakeError::Away`], and [`IcebergTarget::verdict`] goes on from here.
//! 9. **Confirm**: the drain notes [`Verdict::Applied`]'s confirmation.
//!
//! Queries read what came there by [`cut`]: a snapshot, its files, and how far each node was.
//!
//! Invariants
//! 1. For each node the table holds exactly the rows below its mark, each once.
//! 2. A file that was written is never written again, and never deleted.
//! 3. Nothing here panics on what a table, a catalogue or a row holds.

pub mod batch;
pub mod catalogue;
pub mod catalogue_sql;
pub mod claim;
pub mod columns;
pub mod cut;
pub mod drain;
pub mod error;
pub mod files;
mod guard;
mod line;
pub mod mark;
mod storage;
pub mod target;
mod wire;

pub use batch::{BatchBuilder, LakeValue};
pub use catalogue::{CatalogueConfig, CatalogueKind};
pub use claim::{Claim, Claimant, Confirmed, ExpectedMark, LostNode};
pub use columns::{AT_COLUMN, LSN_COLUMN, LakeColumn, LakeKind, NODE_COLUMN};
pub use cut::{Cut, CutCondition, CutFile, CutValues};
pub use drain::{Drain, DrainCatalogue, DrainOptions, Identity, LakeReader, lake_value};
pub use error::{FencedBecause, LakeError};
pub use files::FileWriter;
pub use iceberg::spec::DataFile;
pub use mark::{Mark, NodeId};
pub use target::{IcebergTarget, TargetState, Verdict};
