//! Rows on their way to a client.

use std::sync::Arc;

use onrush::{Row, RowView, Scan, Table, Value};
use onrush_query::Rows;

use super::stored_rows::StoredRows;
use super::{Patience, tag};
use crate::error::Result;
use crate::sql::OutputColumn;
use crate::sql::plan::text_column;

/// What a call of [`RowStream::next`] found.
pub(crate) enum Step {
    /// A row, with the columns of the relation; which of them are sent, and in which order,
    /// [`RowStream::columns`] says.
    Row(Row),
    /// A row, after which others should get the thread.
    RowThenPause(Row),
    /// Nothing yet: whoever asks waits with [`RowStream::wait`], and asks again.
    Wait,
    End,
}

/// What a call of [`RowStream::visit_stored`] has handed out.
pub(crate) struct Stored {
    /// None: there are no more.
    pub(crate) rows: u64,
    /// Whether others should get the thread.
    pub(crate) is_turn: bool,
}

pub(super) enum Source {
    /// Of a table.
    Scan(Box<Scan>, Table),
    Stored(StoredRows),
    Rows(std::vec::IntoIter<Row>),
    Query(Rows),
    Nothing,
}

/// Rows of a scan that are handed out before others get the thread.
const ROWS_PER_TURN: u64 = 4096;
/// Rows as they are stored that are handed out at a time, and bytes of those with long values.
const STORED_ROWS_MAX: u64 = 64;
const LONG_BYTES_MAX: usize = 64 << 10;

/// Rows in the making, one by one.
pub(crate) struct RowStream {
    columns: Arc<[OutputColumn]>,
    /// Sent before those of the source.
    first: Option<Row>,
    source: Source,
    sent: u64,
    verb: &'static str,
    /// Where keys begin behind the columns, and those of the row that was handed out last.
    keys: Option<(usize, Vec<Value<'static>>)>,
}

impl RowStream {
    pub(super) fn new(
        columns: Arc<[OutputColumn]>,
        source: Source,
        verb: &'static str,
    ) -> RowStream {
        RowStream { columns, first: None, source, sent: 0, verb, keys: None }
    }

    /// The same rows, of which so many columns are shown. Behind them stand keys.
    pub(super) fn with_keys_behind(mut self, visible: usize) -> RowStream {
        self.columns = self.columns[..visible.min(self.columns.len())].into();
        self.keys = Some((visible, Vec::new()));
        self
    }

    /// What stood behind the columns of the row that was handed out last.
    pub(crate) fn last_keys(&self) -> &[Value<'static>] {
        self.keys.as_ref().map_or(&[], |(_, keys)| keys)
    }

    /// The rows of a query.
    pub(super) fn of_query(columns: Arc<[OutputColumn]>, rows: Rows) -> RowStream {
        RowStream::new(columns, Source::Query(rows), "SELECT")
    }

    /// Rows that are there already.
    pub(crate) fn of_rows(
        columns: Arc<[OutputColumn]>,
        rows: Vec<Row>,
        verb: &'static str,
    ) -> RowStream {
        RowStream::new(columns, Source::Rows(rows.into_iter()), verb)
    }

    /// The same rows of one text each, behind another one.
    pub(super) fn behind(mut self, text: String) -> RowStream {
        self.first = Some(vec![Value::from(text)]);
        self
    }

    /// One text a row.
    pub(super) fn texts(name: &str, texts: Vec<String>, verb: &'static str) -> RowStream {
        let column = text_column(name);
        let rows = texts.into_iter().map(|text| vec![Value::from(text)]).collect();
        RowStream::of_rows([column].into(), rows, verb)
    }

    pub(crate) fn columns(&self) -> &Arc<[OutputColumn]> {
        &self.columns
    }

    /// How many were handed out.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Step> {
        if let Some(first) = self.first.take() {
            self.sent += 1;
            return Ok(Step::Row(first));
        }
        let row = match &mut self.source {
            Source::Scan(scan, _) => scan.next().transpose()?,
            Source::Stored(rows) => rows.next()?,
            Source::Rows(rows) => rows.next(),
            Source::Query(rows) => match rows.next_here()? {
                None => return Ok(Step::Wait),
                row => row,
            },
            Source::Nothing => None,
        };
        let Some(row) = row else { return Ok(Step::End) };
        if let Some((visible, keys)) = &mut self.keys {
            *keys = row.get(*visible..).unwrap_or_default().to_vec();
        }
        self.sent += 1;
        let is_turn =
            matches!(self.source, Source::Scan(..)) && self.sent.is_multiple_of(ROWS_PER_TURN);
        // A pause would lose the row: it comes before the next one.
        Ok(if is_turn { Step::RowThenPause(row) } else { Step::Row(row) })
    }

    /// Hands out the next rows as they are stored, up to so many. None: they are not of one table, and
    /// [`next`](Self::next) has them.
    pub(crate) fn visit_stored(
        &mut self,
        rows_max: u64,
        mut visit: impl FnMut(&RowView<'_>) -> Result<()>,
    ) -> Result<Option<Stored>> {
        if self.first.is_some() || self.keys.is_some() {
            return Ok(None);
        }
        let rows_max = rows_max.min(STORED_ROWS_MAX);
        let before = self.sent;
        match &mut self.source {
            Source::Scan(scan, table) => {
                let schema = table.schema();
                let mut outcome = Ok(());
                let part = scan.visit_part(rows_max, LONG_BYTES_MAX, |key, value| {
                    if outcome.is_ok() {
                        outcome =
                            schema.view(key, value).map_err(Into::into).and_then(|row| visit(&row));
                    }
                })?;
                outcome?;
                self.sent += part.rows;
            }
            Source::Stored(rows) => self.sent += rows.visit(rows_max, visit)?,
            _ => return Ok(None),
        }
        let is_turn = before / ROWS_PER_TURN != self.sent / ROWS_PER_TURN;
        Ok(Some(Stored { rows: self.sent - before, is_turn }))
    }

    /// Waits for more rows of a query, as long as the statement may go on.
    pub(crate) async fn wait(&mut self, patience: &Patience) -> Result<()> {
        if let Source::Query(rows) = &mut self.source
            && !patience.wait(rows).await?
        {
            self.source = Source::Nothing;
        }
        Ok(())
    }

    /// The words that tell that all rows were sent.
    pub(crate) fn tag(&self) -> std::borrow::Cow<'static, str> {
        tag(self.verb, self.sent)
    }
}
