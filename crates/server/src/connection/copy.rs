//! COPY FROM STDIN and TO STDOUT, in PostgreSQL's text format and as CSV.
//!
//! Outside of a transaction rows are committed in batches while they arrive: the largest
//! transaction is bounded, and a copy is not. What an error says is in which line it was found and
//! how many rows stay.

mod decode;
mod encode;

use onrush::Value;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::OUTPUT_BYTES;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::{RowStream, Step, tag};
use crate::sql::CopyPlan;
use crate::values;
use decode::{Decoder, Field};

/// Rows committed at a time.
const BATCH_ROWS: usize = 1000;
/// Bytes of input committed at a time, about.
const BATCH_BYTES: usize = 256 << 10;

/// A copy on its way in.
struct Incoming<'p> {
    plan: &'p CopyPlan,
    decoder: Decoder,
    batch: Vec<Vec<Value<'static>>>,
    batch_bytes: usize,
    committed: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) async fn copy_in(&mut self, plan: &CopyPlan) -> std::result::Result<(), Stop> {
        let columns = i16::try_from(plan.columns.len()).unwrap_or(i16::MAX);
        self.wire.put(&CopyInResponse::new(0, columns, vec![0; plan.columns.len()]));
        self.settle().await?;
        let mut incoming = Incoming {
            plan,
            decoder: Decoder::new(&plan.format),
            batch: Vec::new(),
            batch_bytes: 0,
            committed: 0,
        };
        let outcome = self.receive(&mut incoming).await;
        if let Err(Stop::Error(error)) = outcome {
            return Err(self.explain(&incoming, error).into());
        }
        outcome?;
        self.complete(tag("COPY", incoming.committed));
        Ok(())
    }

    async fn receive(&mut self, incoming: &mut Incoming<'_>) -> std::result::Result<(), Stop> {
        loop {
            let Some(frame) = self.wire.next_frame()? else {
                self.settle().await?;
                self.wait_for_input().await?;
                continue;
            };
            match frame.kind {
                b'd' => {
                    incoming.batch_bytes += frame.body.len();
                    incoming.decoder.push(&frame.body);
                    self.take_rows(incoming, false)?;
                    self.backend.patience.check()?;
                    tokio::task::consume_budget().await;
                }
                b'c' => {
                    self.take_rows(incoming, true)?;
                    return Ok(self.commit_batch(incoming)?);
                }
                b'f' => {
                    let reason = super::message::text(&frame.body).unwrap_or_default();
                    let message = format!("the client gave the copy up: {reason}");
                    return Err(SqlError::new(state::QUERY_CANCELED, message).into());
                }
                // As in PostgreSQL: both may come before the data.
                b'H' | b'S' => {}
                b'X' => return Err(Stop::Closed),
                other => {
                    let message = format!("a message of kind {other:#04x} in the middle of a copy");
                    return Err(SqlError::protocol(message).into());
                }
            }
        }
    }

    fn take_rows(&mut self, incoming: &mut Incoming<'_>, is_end: bool) -> Result<()> {
        while let Some(fields) = incoming.decoder.next(is_end)? {
            let row = row(incoming.plan, fields)?;
            incoming.batch.push(row);
            if incoming.batch.len() >= BATCH_ROWS || incoming.batch_bytes >= BATCH_BYTES {
                self.commit_batch(incoming)?;
            }
        }
        Ok(())
    }

    fn commit_batch(&mut self, incoming: &mut Incoming<'_>) -> Result<()> {
        let rows = std::mem::take(&mut incoming.batch);
        incoming.batch_bytes = 0;
        if !rows.is_empty() {
            self.backend.insert_rows(&incoming.plan.table, &rows)?;
            incoming.committed += rows.len() as u64;
        }
        Ok(())
    }

    fn explain(&self, incoming: &Incoming<'_>, mut error: SqlError) -> SqlError {
        let line = incoming.decoder.line();
        error.message =
            format!("COPY {}, line {line}: {}", incoming.plan.table.name(), error.message);
        if !self.backend.is_in_transaction() && error.hint.is_none() {
            let rows = incoming.committed;
            error.hint = Some(format!(
                "{rows} rows are committed already; COPY inside BEGIN and COMMIT is all or nothing."
            ));
        }
        error
    }

    pub(super) async fn copy_out(
        &mut self,
        plan: &CopyPlan,
        mut rows: RowStream,
    ) -> std::result::Result<(), Stop> {
        let columns = i16::try_from(plan.columns.len()).unwrap_or(i16::MAX);
        self.wire.put(&CopyOutResponse::new(0, columns, vec![0; plan.columns.len()]));
        if plan.format.has_header {
            encode::header(plan, &mut self.wire.output);
        }
        let mut count = 0;
        loop {
            match rows.next()? {
                Step::Row(row) => {
                    encode::row(plan, &row, &mut self.wire.output);
                    count += 1;
                }
                Step::RowThenPause(row) => {
                    encode::row(plan, &row, &mut self.wire.output);
                    count += 1;
                    tokio::task::yield_now().await;
                }
                Step::Wait => rows.wait(&self.backend.patience).await?,
                Step::End => break,
            }
            if self.wire.output.len() > OUTPUT_BYTES {
                self.settle().await?;
                self.backend.patience.check()?;
            }
        }
        self.wire.put(&CopyDone::new());
        self.complete(tag("COPY", count));
        Ok(())
    }
}

fn row(plan: &CopyPlan, fields: &[Field]) -> Result<Vec<Value<'static>>> {
    if fields.len() != plan.columns.len() {
        let (given, needed) = (fields.len(), plan.columns.len());
        let message = format!("{given} columns are given, {needed} are expected");
        return Err(SqlError::new("22P04", message));
    }
    let columns = plan.table.definition().columns();
    let mut row = vec![Value::Default; columns.len()];
    for (field, column) in fields.iter().zip(&plan.columns) {
        row[*column] = match field {
            None => Value::Null,
            Some(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|error| {
                    let message = format!("text that is not UTF-8: {error}");
                    SqlError::new(state::NOT_IN_REPERTOIRE, message)
                })?;
                values::read(columns[*column].data_type, text)?.into_owned()
            }
        };
    }
    Ok(row)
}
