//! The rows of a query on their way to whoever wants them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::record_batch::RecordBatch;
use onrush::Row;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::{QueryError, Result};
use crate::interrupt::Interest;
use crate::types::ColumnType;
use crate::values::{readable, value_at};

/// Some rows, column by column.
#[derive(Debug)]
pub struct Batch {
    columns: Vec<ArrayRef>,
    rows: usize,
}

impl Batch {
    pub(crate) fn new(batch: &RecordBatch) -> Result<Batch> {
        let columns = batch.columns().iter().map(readable).collect::<Result<_>>()?;
        Ok(Batch { columns, rows: batch.num_rows() })
    }

    pub(crate) fn of_lines(lines: &str) -> Batch {
        let lines: Vec<&str> = lines.trim_end().lines().collect();
        let rows = lines.len();
        Batch { columns: vec![Arc::new(StringArray::from(lines))], rows }
    }
}

/// The rows of a running query. Dropping it ends the query.
#[derive(Debug)]
pub struct Rows {
    /// None for the end.
    batches: mpsc::Receiver<Result<Option<Batch>>>,
    query: AbortHandle,
    interest: Interest,
    columns: Vec<ColumnType>,
    batch: Option<Batch>,
    next: usize,
    is_over: bool,
}

impl Rows {
    pub(crate) fn new(
        batches: mpsc::Receiver<Result<Option<Batch>>>,
        query: AbortHandle,
        interest: Interest,
        columns: Vec<ColumnType>,
    ) -> Rows {
        Rows { batches, query, interest, columns, batch: None, next: 0, is_over: false }
    }

    /// The next row that is here already; none if [`wait`](Self::wait) must be called, or at the end.
    ///
    /// # Errors
    /// A value that no column can hold.
    pub fn next_here(&mut self) -> Result<Option<Row>> {
        let Some(batch) = &self.batch else { return Ok(None) };
        let mut row = Row::with_capacity(self.columns.len());
        for (array, column) in batch.columns.iter().zip(&self.columns) {
            row.push(value_at(array, self.next, *column)?.into_owned());
        }
        self.next += 1;
        if self.next == batch.rows {
            self.batch = None;
        }
        Ok(Some(row))
    }

    /// Waits for more rows. False at the end.
    ///
    /// # Errors
    /// Whatever has ended the query.
    pub async fn wait(&mut self) -> Result<bool> {
        while self.batch.is_none() && !self.is_over {
            let received = self.batches.recv().await;
            self.take(received)?;
        }
        Ok(self.batch.is_some())
    }

    fn take(&mut self, received: Option<Result<Option<Batch>>>) -> Result<()> {
        match received {
            Some(Ok(Some(batch))) => {
                if batch.rows > 0 {
                    self.batch = Some(batch);
                    self.next = 0;
                }
                Ok(())
            }
            Some(Ok(None)) => {
                self.is_over = true;
                Ok(())
            }
            Some(Err(error)) => {
                self.is_over = true;
                Err(error)
            }
            None => {
                self.is_over = true;
                Err(QueryError::Internal { message: "the query ended without a word".to_owned() })
            }
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.interest.end();
        self.query.abort();
    }
}
