//! The rows of a table that were written between two LSNs, as the lake has them.

use std::time::{Duration, SystemTime};

use onrush::{DataType, Lsn, Row, Snapshot, Table, TableDefinition, WrittenRow, WrittenRows};

use super::columns;
use crate::error::LakeError;
use crate::target::{RowSink, Rows};

/// Rows in key order. Those of an attached table do not change, so reading the same range again gives the same ones.
pub(super) struct RangeRows {
    table: Table,
    /// Places and types of the columns that go over.
    columns: Vec<(usize, DataType)>,
    rows: WrittenRows,
    /// Rows at or above are left out.
    to: Lsn,
    /// When the round was made.
    at: i64,
}

impl RangeRows {
    /// From `since` on, and below `to`, which the snapshot sees.
    pub(super) fn new(
        table: Table,
        snapshot: &Snapshot,
        since: Lsn,
        to: Lsn,
    ) -> Result<RangeRows, LakeError> {
        let definition = table.definition();
        let column = |at: usize| (at, definition.columns()[at].data_type);
        let columns = definition.shown_columns().map(column).collect();
        let rows = snapshot.written_since(&table, since)?;
        Ok(RangeRows { table, columns, rows, to, at: micros_now() })
    }
}

impl Rows for RangeRows {
    fn next_into(&mut self, sink: &mut impl RowSink) -> Result<bool, LakeError> {
        for row in self.rows.by_ref() {
            let WrittenRow { lsn, row } = row?;
            if lsn >= self.to {
                continue;
            }
            for (column, data_type) in &self.columns {
                let pushed =
                    columns::value_of(*data_type, &row[*column]).and_then(|value| sink.push(value));
                pushed.map_err(|error| in_row(error, self.table.definition(), *column, &row))?;
            }
            sink.end_row(lsn.0, self.at)?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// The error with its column and row.
fn in_row(error: LakeError, definition: &TableDefinition, column: usize, row: &Row) -> LakeError {
    let LakeError::Row(cause) = error else { return error };
    let key = definition.primary_key().iter().map(|at| row[*at].to_string());
    let key = key.collect::<Vec<_>>().join(", ");
    LakeError::Row(format!("{} of the row ({key}): {cause}", definition.column_name(column)))
}

fn micros_now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
