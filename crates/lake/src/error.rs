//! Why the drain's way into a table stopped, and what then holds.
//!
//! Three reactions are asked for: [`LakeError::Away`] means *later again*; [`LakeError::Fenced`]
//! means *stop for good until a person has looked*; the others mean that the configuration, the
//! table or a row has to be changed. None of them takes anything back: files that were written
//! stay, and whether a commit was applied is answered by
//! [`IcebergTarget::verdict`](crate::IcebergTarget::verdict) alone.

use std::fmt;

use uuid::Uuid;

use crate::mark::{Mark, MarkUnreadable, NodeId};

/// Why a call of this crate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LakeError {
    /// The catalogue did not answer in time. What was asked of it may or may not have happened:
    /// ask for the verdict before anything else.
    #[error(
        "the catalogue is away: {cause}. Nothing is lost; the drain goes on when it answers again"
    )]
    Away {
        /// What the last attempt met.
        cause: String,
    },
    /// The table is not as this node left it, so going on could lose or double rows.
    #[error("node {node} is fenced off table {table}: {because}")]
    Fenced {
        /// The node that must stop.
        node: NodeId,
        /// The table's name in the catalogue.
        table: String,
        /// What was found.
        because: Box<FencedBecause>,
    },
    /// The Iceberg table cannot take the columns.
    #[error(
        "column {column} of the Iceberg table does not fit: expected {expected}, found {found}. \
         Drain into another table, or change this one with the engine that owns it"
    )]
    TableMismatch {
        /// The column's name.
        column: String,
        /// What the drain would write.
        expected: String,
        /// What the table has.
        found: String,
    },
    /// No catalogue of this name or kind can be reached.
    #[error("there is no catalogue {name}: {cause}")]
    NoSuchCatalogue {
        /// Its name in the configuration.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Files of the table could not be written or read.
    #[error(
        "cannot {what}: {cause}. Check that the store is there and that this process may write \
         to it; the round is done again with fresh files"
    )]
    Io {
        /// What was being done.
        what: String,
        /// What the store said.
        cause: String,
    },
    /// A column of a type that Iceberg has none for.
    #[error(
        "column {column} is of type {data_type}, which has no counterpart in Iceberg. Leave the \
         column out, or give it another type, such as text"
    )]
    NoSuchKind {
        /// The column's name.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// A file of the table cannot be read as it would have to be.
    #[error("file {file} of the lake's table {table} cannot be read here: {cause}")]
    Unreadable {
        /// The table's name in the catalogue.
        table: String,
        /// Where the file is.
        file: String,
        /// Why, and what to do.
        cause: String,
    },
    /// The table is gone.
    #[error("there is no table with the number {number} any more")]
    NoTable {
        /// Its number.
        number: u32,
    },
    /// The Iceberg table has a mark of the node's already.
    #[error(
        "rows of node {node} are in the lake's table {table} already. Attach the table to another \
         one, so that none of them comes twice"
    )]
    HasRows {
        /// The node.
        node: NodeId,
        /// The Iceberg table.
        table: String,
    },
    /// The node's own database.
    #[error(transparent)]
    Database(#[from] onrush::Error),
    /// A row cannot be written with the table's columns.
    #[error("a row does not fit the table: {0}")]
    Row(String),
    /// The caller, or this crate, did what it must not.
    #[error("internal error of the lake drain: {0}")]
    Internal(String),
}

impl LakeError {
    /// Whether the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, LakeError::Away { .. } | LakeError::Io { .. } | LakeError::Database(_))
    }

    /// For failures at the store while something was being done.
    pub(crate) fn io(what: &str, cause: &iceberg::Error) -> LakeError {
        LakeError::Io { what: what.to_owned(), cause: cause.to_string() }
    }
}

/// What shows that the table is not as the node left it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FencedBecause {
    /// The name leads to nothing.
    TableGone,
    /// The name leads to another table: dropped and made again, or replaced.
    OtherTable {
        /// The table this node drained into.
        expected: Uuid,
        /// The table that is there.
        found: Uuid,
    },
    /// The node's mark was there and is not any more.
    MarkMissing,
    /// The node's property holds something else.
    MarkUnreadable(MarkUnreadable),
    /// Another database has this node's id.
    OtherHistory {
        /// This node's.
        expected: u128,
        /// The mark's.
        found: u128,
    },
    /// Somebody else claimed the node later: a successor, or the other of two copies.
    OtherNonce {
        /// The mark that is there.
        found: Mark,
    },
    /// Somebody committed a strict part of the range that was to be committed.
    MarkBetween {
        /// Where the range starts.
        from: u64,
        /// The mark's LSN.
        found: u64,
        /// Where the range ends.
        to: u64,
    },
    /// Rows that the node knows to be committed are not, by the mark.
    MarkBelow {
        /// The lowest LSN that would be right.
        confirmed: u64,
        /// The mark's LSN.
        found: u64,
    },
    /// The mark is beyond all that the node ever tried to commit.
    MarkAhead {
        /// The highest LSN that would be right.
        tried: u64,
        /// The mark's LSN.
        found: u64,
    },
    /// A mark of the node's that this database has not asked for.
    NotNoted {
        /// The mark.
        found: Mark,
    },
    /// The snapshot that the node confirmed is not on main's line.
    ConfirmedNotOnMain {
        /// The confirmed snapshot.
        snapshot_id: i64,
    },
    /// The table has a mark and no main any more.
    MainGone,
    /// The newest snapshot of this node on main's line is older than its mark.
    RolledBack {
        /// The mark among the table's properties.
        property: Mark,
        /// The mark in that snapshot's summary.
        summary: Mark,
    },
}

impl fmt::Display for FencedBecause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FencedBecause::TableGone => formatter.write_str(
                "the catalogue has no table of that name. Bring it back, or detach the table from \
                 the lake and attach it again",
            ),
            FencedBecause::OtherTable { expected, found } => write!(
                formatter,
                "the name now leads to table {found}, rows went into {expected}. Somebody dropped \
                 or replaced it: bring the old one back, or detach and attach again"
            ),
            FencedBecause::MarkMissing => formatter.write_str(
                "its mark is gone from the table's properties. Set the property again from the \
                 newest snapshot's summary",
            ),
            FencedBecause::MarkUnreadable(cause) => write!(
                formatter,
                "its mark cannot be read: {cause}. Set the property again from the newest \
                 snapshot's summary"
            ),
            FencedBecause::OtherHistory { expected, found } => write!(
                formatter,
                "the mark is of history {found:032x}, this database's is {expected:032x}. Two \
                 databases have the same node id: give this one another"
            ),
            FencedBecause::OtherNonce { found } => write!(
                formatter,
                "somebody claimed the node later, and stands at {}. Stop one of the two; if this \
                 is the one to stay, open it again",
                found.lsn
            ),
            FencedBecause::NotNoted { found } => write!(
                formatter,
                "the mark stands at {}, which this database has not brought it to: it is a copy, or \
                 a backup that was restored. Go on with the original, or detach the table and attach \
                 it to another Iceberg table",
                found.lsn
            ),
            FencedBecause::MarkBetween { from, found, to } => write!(
                formatter,
                "the mark is {found}, strictly between {from} and {to}. Somebody else committed a \
                 part of these rows: find who writes as this node"
            ),
            FencedBecause::MarkBelow { confirmed, found } => write!(
                formatter,
                "the mark is {found}, below {confirmed} which was confirmed. The table or its \
                 catalogue went back: rewind the lake table if its rows are still here"
            ),
            FencedBecause::MarkAhead { tried, found } => write!(
                formatter,
                "the mark is {found}, this node went to {tried} at most. Somebody else writes as \
                 this node, or this database went back: give it another node id"
            ),
            FencedBecause::ConfirmedNotOnMain { snapshot_id } => write!(
                formatter,
                "snapshot {snapshot_id}, which was confirmed, is not on main's line. The table \
                 was rolled back: roll it forward, or rewind the lake table"
            ),
            FencedBecause::MainGone => formatter.write_str(
                "the table has its mark and no main branch. Set main to the newest snapshot",
            ),
            FencedBecause::RolledBack { property, summary } => write!(
                formatter,
                "the mark says {}, the newest snapshot of this node on main's line says {}. The \
                 table was rolled back: roll it forward, or rewind the lake table",
                property.lsn, summary.lsn
            ),
        }
    }
}
