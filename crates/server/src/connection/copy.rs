//! COPY FROM STDIN and TO STDOUT: in PostgreSQL's text format, as CSV, and in its binary format.
//!
//! Outside of a transaction rows are committed in batches while they arrive: the largest
//! transaction is bounded, and a copy is not. What an error says is in which line it was found and
//! how many rows stay.

mod binary;
mod decode;
mod encode;
mod fields;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use onrush::{Row, Value};
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use tokio::io::{AsyncRead, AsyncWrite};

use super::memory::Part;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::{RowStream, Step, tag};
use crate::schemas;
use crate::sql::{CopyFormat, CopyPlan, OutputColumn};
use crate::values::{self, Wire};
use fields::Fields;
use onrush_query::style::{ClientEncoding, client_encoding};

/// Rows committed at a time.
const BATCH_ROWS: usize = 1000;
/// Bytes of input committed at a time, about.
const BATCH_BYTES: usize = 256 << 10;
/// What a copy takes: a batch as it came, as values, as rows, and its record.
const COPY_BYTES: usize = 4 * BATCH_BYTES;

/// A copy on its way in.
struct Incoming<'p> {
    plan: &'p CopyPlan,
    decoder: Decoder,
    /// The rows of the batch, as they stand in the stream.
    fields: Fields,
    /// The row of the batch that has been found bad.
    bad_row: Option<usize>,
    committed: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) async fn copy_in(&mut self, plan: &CopyPlan) -> std::result::Result<(), Stop> {
        self.wire.memory.ask(Part::Copy, COPY_BYTES)?;
        let columns = i16::try_from(plan.columns.len()).unwrap_or(i16::MAX);
        let code = code(&plan.format);
        let codes = vec![i16::from(code); plan.columns.len()];
        self.wire.put(&CopyInResponse::new(code, columns, codes));
        self.settle().await?;
        let mut incoming = Incoming {
            plan,
            decoder: Decoder::new(&plan.format),
            fields: Fields::default(),
            bad_row: None,
            committed: 0,
        };
        let outcome = self.receive(&mut incoming).await;
        self.wire.memory.note(Part::Copy, 0);
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
                // Nothing is answered before the end, so nothing need be durable before.
                if !self.wire.output.is_empty() {
                    self.settle().await?;
                }
                self.wait_for_input().await?;
                continue;
            };
            if let Some(why) = frame.refused {
                return Err(why.into());
            }
            match frame.kind {
                b'd' => {
                    match &incoming.decoder {
                        Decoder::Lines(_) if client_encoding().is_other() => {
                            let decoded =
                                client_encoding().decode(&frame.body).map_err(SqlError::from)?;
                            incoming.decoder.push(decoded.as_bytes());
                        }
                        _ => incoming.decoder.push(&frame.body),
                    }
                    self.take_rows(incoming, false)?;
                    self.backend.patience.check()?;
                    tokio::task::consume_budget().await;
                }
                b'c' => {
                    self.take_rows(incoming, true)?;
                    self.commit_batch(incoming)?;
                    return Ok(self.backend.settle_references()?);
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
        while incoming.decoder.next(is_end, &mut incoming.fields)? {
            let fields = &incoming.fields;
            if fields.row_count() >= BATCH_ROWS || fields.byte_count() >= BATCH_BYTES {
                self.commit_batch(incoming)?;
            }
        }
        Ok(())
    }

    fn commit_batch(&mut self, incoming: &mut Incoming<'_>) -> Result<()> {
        let Incoming { plan, fields, .. } = incoming;
        let (rows, width) = (fields.row_count(), plan.table.definition().columns().len());
        if rows == 0 {
            return Ok(());
        }
        let mut values = Vec::with_capacity(rows * width);
        for index in 0..rows {
            if let Err(error) = read_row(plan, fields.row(index), &mut values) {
                incoming.bad_row = Some(index);
                return Err(error);
            }
        }
        self.backend.insert_rows(&plan.table, values.chunks_exact(width))?;
        incoming.fields.clear();
        incoming.committed += rows as u64;
        Ok(())
    }

    fn explain(&self, incoming: &Incoming<'_>, mut error: SqlError) -> SqlError {
        let rows = incoming.fields.row_count();
        let rows_behind = incoming.bad_row.map_or(0, |bad| rows - 1 - bad);
        let place = incoming.decoder.place(rows_behind as u64);
        let table = schemas::own_name(incoming.plan.table.name());
        error.context = Some(format!("COPY {table}, {place}"));
        if !self.backend.is_in_transaction() {
            let rows = incoming.committed;
            let stays = format!(
                "{rows} rows are committed already; COPY inside BEGIN and COMMIT is all or nothing."
            );
            error.hint = Some(match error.hint.take() {
                None => stays,
                Some(hint) => format!("{stays} {hint}"),
            });
        }
        error
    }

    pub(super) async fn copy_out(
        &mut self,
        format: &CopyFormat,
        mut rows: RowStream,
    ) -> std::result::Result<(), Stop> {
        let columns = Arc::clone(rows.columns());
        let count = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        let code = code(format);
        let codes = vec![i16::from(code); columns.len()];
        self.wire.put(&CopyOutResponse::new(code, count, codes));
        if let CopyFormat::Lines(format) = format
            && format.has_header
        {
            encode::header(&columns, format, &mut self.wire.output)?;
        }
        let mut count = 0;
        loop {
            match rows.next()? {
                Step::Row(row) => {
                    put_row(&columns, format, (count == 0, &row), &mut self.wire.output)?;
                    count += 1;
                }
                Step::RowThenPause(row) => {
                    put_row(&columns, format, (count == 0, &row), &mut self.wire.output)?;
                    count += 1;
                    tokio::task::yield_now().await;
                }
                Step::Wait => rows.wait(&self.backend.patience).await?,
                Step::End => break,
            }
            self.send_if_much().await?;
        }
        if *format == CopyFormat::Binary {
            message(&mut self.wire.output, |output| {
                if count == 0 {
                    binary::header(output);
                }
                binary::end(output);
            });
        }
        self.wire.put(&CopyDone::new());
        self.complete(tag("COPY", count));
        Ok(())
    }
}

/// Appends a value for each column of the table.
fn read_row<'f>(
    plan: &CopyPlan,
    fields: impl ExactSizeIterator<Item = Option<&'f [u8]>>,
    rows: &mut Vec<Value<'f>>,
) -> Result<()> {
    if fields.len() != plan.columns.len() {
        let columns = plan.table.definition().columns();
        let message = match plan.columns.get(fields.len()) {
            Some(missing) => format!("missing data for column {:?}", columns[*missing].name),
            None => "extra data after last expected column".to_owned(),
        };
        return Err(SqlError::new(state::BAD_COPY_FORMAT, message));
    }
    let columns = plan.table.definition().columns();
    let first = rows.len();
    rows.resize(first + columns.len(), Value::Default);
    let is_binary = plan.format == CopyFormat::Binary;
    // Lines are decoded as they come.
    let encoding = if is_binary { client_encoding() } else { ClientEncoding::Utf8 };
    for (field, column) in fields.zip(&plan.columns) {
        rows[first + column] = match field {
            None => Value::Null,
            Some(bytes) => {
                let wire = Wire { bytes, is_binary, oid: 0, encoding };
                values::decode(wire, columns[*column].data_type)?
            }
        };
    }
    Ok(())
}

/// How the protocol names a format.
fn code(format: &CopyFormat) -> i8 {
    i8::from(*format == CopyFormat::Binary)
}

/// Drivers want the header of a binary copy in the message of its first row, as PostgreSQL sends it.
fn put_row(
    columns: &[OutputColumn],
    format: &CopyFormat,
    (is_first, row): (bool, &Row),
    output: &mut BytesMut,
) -> Result<()> {
    let start = output.len();
    let put = match format {
        CopyFormat::Lines(format) => encode::row(columns, format, row, output),
        CopyFormat::Binary => message(output, |output| {
            if is_first {
                binary::header(output);
            }
            binary::row(columns, row, output)
        }),
    };
    if put.is_err() {
        output.truncate(start);
    }
    put
}

/// One message of the copy's data.
fn message<T>(output: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> T) -> T {
    let start = output.len();
    output.put_u8(b'd');
    output.put_i32(0);
    let written = write(output);
    // A row is far shorter than a message may be.
    let length = i32::try_from(output.len() - start - 1).unwrap_or(i32::MAX);
    output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    written
}

/// Cuts rows out of what has arrived, in either format.
enum Decoder {
    Lines(decode::Decoder),
    Binary(binary::Decoder),
}

impl Decoder {
    fn new(format: &CopyFormat) -> Decoder {
        match format {
            CopyFormat::Lines(format) => Decoder::Lines(decode::Decoder::new(format)),
            CopyFormat::Binary => Decoder::Binary(binary::Decoder::default()),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Decoder::Lines(lines) => lines.push(bytes),
            Decoder::Binary(binary) => binary.push(bytes),
        }
    }

    /// Cuts the next row, if all of it is there.
    fn next(&mut self, is_end: bool, fields: &mut Fields) -> Result<bool> {
        match self {
            Decoder::Lines(lines) => lines.next(is_end, fields),
            Decoder::Binary(binary) => binary.next(is_end, fields),
        }
    }

    /// Where in the stream the row is that was cut last but so many.
    fn place(&self, rows_behind: u64) -> String {
        match self {
            Decoder::Lines(lines) => format!("line {}", lines.line() - rows_behind),
            Decoder::Binary(binary) => format!("row {}", binary.row() - rows_behind),
        }
    }
}
