//! Rows on their way to the client: encoded into the output as they are stored, where they are of one table.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use onrush::{Row, RowView, Value};
use onrush_query::style::client_encoding;
use pgwire::messages::data::{FieldDescription, RowDescription};
use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::OUTPUT_BYTES;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::{RowStream, Step};
use crate::sql::OutputColumn;
use crate::values::{self, Formats};

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn row_description(
        &mut self,
        columns: &[OutputColumn],
        formats: &Formats,
    ) -> Result<()> {
        for column in columns {
            client_encoding().encode(&column.name)?;
        }
        let field = |(index, column): (usize, &OutputColumn)| {
            FieldDescription::new(
                column.name.clone(),
                0,
                0,
                values::oid_of(column.column_type),
                values::type_size(column.column_type),
                values::type_modifier(column.column_type),
                i16::from(formats.is_binary(index)),
            )
        };
        let fields = columns.iter().enumerate().map(field).collect();
        self.wire.put(&RowDescription::new(fields));
        Ok(())
    }

    /// Sends rows, at most so many. False if there are none left.
    pub(super) async fn rows(
        &mut self,
        rows: &mut RowStream,
        formats: &Formats,
        rows_max: Option<u64>,
    ) -> std::result::Result<bool, Stop> {
        let columns = Arc::clone(rows.columns());
        let mut left = rows_max.unwrap_or(u64::MAX);
        while left > 0 {
            let output = &mut self.wire.output;
            let stored = rows.visit_stored(left, |row| data_row(row, &columns, formats, output))?;
            if let Some(stored) = stored {
                if stored.rows == 0 {
                    return Ok(false);
                }
                left -= stored.rows;
                if stored.is_turn {
                    self.backend.patience.check()?;
                    tokio::task::yield_now().await;
                }
                self.send_if_much().await?;
                continue;
            }
            match rows.next()? {
                Step::Row(row) => {
                    data_row(&row, &columns, formats, &mut self.wire.output)?;
                    left -= 1;
                }
                Step::RowThenPause(row) => {
                    data_row(&row, &columns, formats, &mut self.wire.output)?;
                    left -= 1;
                    self.backend.patience.check()?;
                    tokio::task::yield_now().await;
                }
                Step::Wait => rows.wait(&self.backend.patience).await?,
                Step::End => return Ok(false),
            }
            self.send_if_much().await?;
        }
        Ok(true)
    }

    /// Sends what is there, if it is much.
    pub(super) async fn send_if_much(&mut self) -> std::result::Result<(), Stop> {
        if self.wire.output.len() > OUTPUT_BYTES {
            self.settle().await?;
            self.backend.patience.check()?;
        }
        Ok(())
    }
}

/// A row whose columns are looked at one by one.
pub(super) trait Columns {
    fn value(&self, column: usize) -> Result<Value<'_>>;
}

impl Columns for Row {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        Ok(self[column].borrowed())
    }
}

impl Columns for RowView<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        Ok(self.column(column)?)
    }
}

/// Writes one row as a message, straight into the output; nothing of one that cannot be sent.
pub(super) fn data_row(
    row: &impl Columns,
    columns: &[OutputColumn],
    formats: &Formats,
    output: &mut BytesMut,
) -> Result<()> {
    let start = output.len();
    let put = put_data_row(row, columns, formats, output);
    if put.is_err() {
        output.truncate(start);
    }
    put
}

fn put_data_row(
    row: &impl Columns,
    columns: &[OutputColumn],
    formats: &Formats,
    output: &mut BytesMut,
) -> Result<()> {
    let too_long = || SqlError::new(state::LIMIT_EXCEEDED, "a row is too long to be sent");
    let start = output.len();
    output.put_u8(b'D');
    output.put_i32(0);
    output.put_u16(u16::try_from(columns.len()).map_err(|_| too_long())?);
    let encoding = client_encoding();
    for (index, column) in columns.iter().enumerate() {
        let value = &row.value(column.source)?;
        if matches!(value, Value::Null | Value::Default) {
            output.put_i32(-1);
            continue;
        }
        let at = output.len();
        output.put_i32(0);
        if formats.is_binary(index) {
            values::binary(value, column.column_type, output)?;
        } else {
            values::write_text_of(value, column.column_type, output)?;
            values::as_of_client(output, at + 4, encoding)?;
        }
        let length = i32::try_from(output.len() - at - 4).map_err(|_| too_long())?;
        output[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    let length = i32::try_from(output.len() - start - 1).map_err(|_| too_long())?;
    output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
