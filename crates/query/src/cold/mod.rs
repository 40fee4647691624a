//! Tables of which the older rows are in files elsewhere as well: all rows, each once.
//!
//! The way of a query over such a table:
//!
//! 1. [`ColdRows::part`] says what is cold for the statement: Parquet files, the ids of their fields, and the LSN below
//!    which rows of the database itself are in them.
//! 2. `table.rs` makes two scans of it, side by side, and hands both the conditions and columns of the query.
//! 3. `scan.rs` and `file.rs` read the files, found by field ids, a row group at a time (`statistics.rs` leaves out
//!    those in which no row can be wanted; `columns.rs` makes values of the database of those of the file).
//! 4. `hot.rs` reads the rows of the database that were written at that LSN or later.
//!
//! Invariants
//! 1. A row of the database is cold if it was written below the LSN that the files themselves go with, else hot.
//! 2. What the statement does not see yet is not given from the files either.
//! 3. Nothing here knows where files come from, nor whose they are.

mod columns;
mod file;
mod hot;
mod scan;
mod statistics;
mod table;

use std::fmt::Debug;
use std::ops::{Bound, Range};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use onrush::{DataType, Lsn, Table, Value};

use crate::error::Result;
use crate::statement::Statement;

pub(crate) use table::ColdTable;

/// The columns behind those of the table: the node that a row is of, its LSN there, and when it came into the files.
/// Rows that are not there yet have the statement's time, and rows of the own transaction no LSN.
pub(crate) const ADDED: [(&str, DataType); 3] =
    [("_node", DataType::Int32), ("_lsn", DataType::Int64), ("_at", DataType::TimestampTz)];

/// The rows of a table that are in files, and those of other databases there.
#[async_trait]
pub trait ColdRows: Debug + Send + Sync {
    /// The table of the database.
    fn table(&self) -> &Table;

    /// What is to be read for a statement. Files in which no row meets all conditions may be left out. Of one
    /// statement, and of all of a transaction, the answers go together.
    ///
    /// # Errors
    /// The files cannot be found, or not be read here.
    async fn part(&self, statement: &Statement, conditions: &[ColdCondition]) -> Result<ColdPart>;
}

/// What is to be read of the rows in files.
#[derive(Debug)]
pub struct ColdPart {
    /// The files.
    pub files: Vec<Arc<dyn ColdFile>>,
    /// The ids of fields in them: of the table's columns that SQL shows, and of the three added.
    pub field_ids: Vec<i32>,
    /// Which node the database is.
    pub node: i32,
    /// The database's own rows are in the files if they were written below.
    pub hot_from: Lsn,
}

/// A Parquet file.
#[async_trait]
pub trait ColdFile: Debug + Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// How large it is.
    fn bytes(&self) -> u64;

    /// The ids of fields that must be there; others that are missing are NULL.
    fn required(&self) -> &[i32];

    /// A part of its bytes.
    ///
    /// # Errors
    /// It cannot be read.
    async fn read(&self, range: Range<u64>) -> Result<Bytes>;
}

/// What all rows that are wanted have in common.
#[derive(Clone, Debug)]
pub struct ColdCondition {
    /// The column, by its place among those of the relation.
    pub column: usize,
    /// What it says of the values.
    pub values: ColdValues,
}

/// What a condition says of the values of a column.
#[derive(Clone, Debug)]
pub enum ColdValues {
    /// They are some of these, ascending.
    OneOf(Vec<Value<'static>>),
    /// They are between these.
    Between(Bound<Value<'static>>, Bound<Value<'static>>),
}

impl ColdValues {
    /// Whether a whole number is among them.
    fn has(&self, number: i64) -> bool {
        let of = |value: &Value<'_>| value.as_i64();
        match self {
            ColdValues::OneOf(values) => values.iter().any(|value| of(value) == Some(number)),
            ColdValues::Between(from, to) => {
                let is_above = match from {
                    Bound::Included(from) => of(from).is_none_or(|from| number >= from),
                    Bound::Excluded(from) => of(from).is_none_or(|from| number > from),
                    Bound::Unbounded => true,
                };
                let is_below = match to {
                    Bound::Included(to) => of(to).is_none_or(|to| number <= to),
                    Bound::Excluded(to) => of(to).is_none_or(|to| number < to),
                    Bound::Unbounded => true,
                };
                is_above && is_below
            }
        }
    }

    /// The lowest whole number among them; none if there is no lower end.
    fn lowest(&self) -> Option<i64> {
        match self {
            ColdValues::OneOf(values) => values.iter().filter_map(Value::as_i64).min(),
            ColdValues::Between(Bound::Included(from) | Bound::Excluded(from), _) => from.as_i64(),
            ColdValues::Between(Bound::Unbounded, _) => None,
        }
    }
}
