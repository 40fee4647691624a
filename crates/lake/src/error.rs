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
    /// The catalogue or the database did not answer in time. What was asked of it may or may not have happened:
    /// ask for the verdict before anything else.
    #[error("the lake is away: {cause}. Nothing is lost; the drain goes on when it answers again")]
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
    /// The lake's table cannot take the columns.
    #[error(
        "column {column} of the lake's table does not fit: expected {expected}, found {found}. \
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
    /// No table of a database can have this name.
    #[error("{name:?} {cause}")]
    NoSuchTarget {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The database of a table says no, and would say so again.
    #[error(
        "{cause}. Nothing is lost: put that right in the database that the rows go into, and CALL \
         onrush.lake_flush"
    )]
    Refused {
        /// What it said.
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
    /// A column of a type that the lake has none for.
    #[error(
        "column {column} is of type {data_type}, which has no counterpart in the lake. Leave the \
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

    /// A claim has to look again.
    pub(crate) fn lost_node_moved() -> LakeError {
        let cause = "somebody drains as the node that was lost, up to this claim".to_owned();
        LakeError::Away { cause }
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
    /// The mark is of a table that had the name before.
    OtherRelation {
        /// The number that the marked table had in the database.
        expected: u64,
        /// That of the table that is there.
        found: u64,
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
    /// Another node has closed this one and goes on in its place.
    Closed {
        /// The node that goes on.
        by: NodeId,
        /// Where this one ended.
        at: u64,
    },
    /// A node that this database was restored from was closed by one that was restored from it, too.
    LostNodeIsTaken {
        /// The node that was lost.
        node: NodeId,
        /// The node that goes on in its place.
        by: NodeId,
    },
    /// The node that this database was restored from is another database by now.
    LostNodeIsAnother {
        /// The node that was lost.
        node: NodeId,
        /// The history of the database that was restored.
        expected: u128,
        /// The mark's.
        found: u128,
    },
    /// The database has notes of a history that is neither its own nor one that it was restored from.
    RestoredUnnoticed {
        /// The mark that is noted.
        noted: Mark,
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
            FencedBecause::OtherRelation { expected, found } => write!(
                formatter,
                "its mark is of the table with the oid {expected}, and the one of that name now has \
                 {found}. If it was dropped and made anew, attach the table to another one; if it \
                 came back with all its rows, as from a dump, set table_oid in onrush_marks"
            ),
            FencedBecause::MarkMissing => formatter.write_str(
                "its mark is gone. In an Iceberg table, set the property again from the newest \
                 snapshot's summary; in a database, bring the row of onrush_marks back",
            ),
            FencedBecause::MarkUnreadable(cause) => write!(
                formatter,
                "its mark cannot be read: {cause}. Set the property again from the newest \
                 snapshot's summary"
            ),
            FencedBecause::OtherHistory { expected, found } => write!(
                formatter,
                "the mark is of history {found:032x}, this database's is {expected:032x}. Two \
                 databases have the same node id, or this one was restored from a backup of the \
                 other: give this one a number of its own"
            ),
            FencedBecause::Closed { by, at } => write!(
                formatter,
                "node {by}, whose database was restored from a backup of this one, has closed it at \
                 {at} and goes on in its place. Stop this server. Rows that it has beyond the backup \
                 and that are not in the lake stay here alone: attach the table to another lake \
                 table to keep them"
            ),
            FencedBecause::LostNodeIsTaken { node, by } => write!(
                formatter,
                "this database was restored from a backup of node {node}, and so was node {by}, \
                 which goes on in its place already. Go on with node {by}, or detach the table and \
                 attach it to another lake table"
            ),
            FencedBecause::LostNodeIsAnother { node, expected, found } => write!(
                formatter,
                "this database was restored from a backup of node {node} with history \
                 {expected:032x}, and the mark of node {node} is of history {found:032x}. Another \
                 database drains under its number: detach the table and attach it to another lake \
                 table"
            ),
            FencedBecause::RestoredUnnoticed { noted } => write!(
                formatter,
                "the database has a note of the mark {noted}, which is of another history: it was \
                 restored from a backup. Start it with a number of its own, --node N, so that it \
                 closes the node that was lost and goes on in its place"
            ),
            FencedBecause::OtherNonce { found } => write!(
                formatter,
                "somebody claimed the node later, and stands at {}. Stop one of the two; if this \
                 is the one to stay, open it again",
                found.lsn
            ),
            FencedBecause::NotNoted { found } => write!(
                formatter,
                "the mark stands at {}, which this database has not brought it to: it is a copy of \
                 the folder, or a backup that was opened as it is. Go on with the original; or, if \
                 that is lost, restore the backup with `onrush restore` and start it with a number \
                 of its own, --node N, so that it closes this node and goes on in its place; or \
                 detach the table and attach it to another lake table",
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
