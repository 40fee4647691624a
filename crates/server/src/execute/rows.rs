//! Rows on their way to a client.

use std::sync::Arc;

use onrush::{DataType, Row, Scan, Value};

use super::tag;
use crate::error::Result;
use crate::sql::{Operator, OutputColumn};

/// A condition with its value.
pub(super) struct Filter {
    pub(super) column: usize,
    pub(super) data_type: DataType,
    pub(super) operator: Operator,
    pub(super) value: Value<'static>,
}

impl Filter {
    /// Whether the row is wanted. NULL is neither equal nor unequal to anything.
    pub(super) fn takes(&self, row: &Row) -> bool {
        let value = &row[self.column];
        match self.operator {
            Operator::IsNull => return value.is_null(),
            Operator::IsNotNull => return !value.is_null(),
            _ => {}
        }
        if value.is_null() || self.value.is_null() {
            return false;
        }
        let order = self.data_type.compare(value, &self.value);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::IsNull | Operator::IsNotNull => false,
        }
    }
}

/// Rows that a call of [`RowStream::next`] looks at before it lets others have the thread.
const ROWS_PER_TURN: usize = 4096;

/// What a call of [`RowStream::next`] found.
pub(crate) enum Step {
    /// A row, with the columns of the relation; which of them are sent, and in which order,
    /// [`RowStream::columns`] says.
    Row(Row),
    /// Nothing yet: whoever asks looks at the clock and asks again.
    Pause,
    End,
}

pub(super) enum Source {
    Scan(Box<Scan>),
    Rows(std::vec::IntoIter<Row>),
}

/// Rows in the making, one by one.
pub(crate) struct RowStream {
    columns: Arc<[OutputColumn]>,
    source: Source,
    filters: Vec<Filter>,
    skip: u64,
    left: u64,
    sent: u64,
    verb: &'static str,
}

impl RowStream {
    pub(super) fn new(
        columns: Arc<[OutputColumn]>,
        source: Source,
        filters: Vec<Filter>,
        (skip, left): (u64, u64),
    ) -> RowStream {
        RowStream { columns, source, filters, skip, left, sent: 0, verb: "SELECT" }
    }

    /// Rows that are there already.
    pub(super) fn of_rows(
        columns: Arc<[OutputColumn]>,
        rows: Vec<Row>,
        verb: &'static str,
    ) -> RowStream {
        let source = Source::Rows(rows.into_iter());
        RowStream { columns, source, filters: Vec::new(), skip: 0, left: u64::MAX, sent: 0, verb }
    }

    /// One text.
    pub(super) fn one_text(name: &str, text: String, verb: &'static str) -> RowStream {
        RowStream::texts(name, vec![text], verb)
    }

    /// One text a row.
    pub(super) fn texts(name: &str, texts: Vec<String>, verb: &'static str) -> RowStream {
        let column = OutputColumn { name: name.to_owned(), data_type: DataType::Text, source: 0 };
        let rows = texts.into_iter().map(|text| vec![Value::from(text)]).collect();
        RowStream::of_rows([column].into(), rows, verb)
    }

    pub(crate) fn columns(&self) -> &Arc<[OutputColumn]> {
        &self.columns
    }

    /// The next row that is wanted.
    pub(crate) fn next(&mut self) -> Result<Step> {
        for _ in 0..ROWS_PER_TURN {
            if self.left == 0 {
                return Ok(Step::End);
            }
            let row = match &mut self.source {
                Source::Scan(scan) => scan.next().transpose()?,
                Source::Rows(rows) => rows.next(),
            };
            let Some(row) = row else { return Ok(Step::End) };
            if !self.filters.iter().all(|filter| filter.takes(&row)) {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            self.sent += 1;
            return Ok(Step::Row(row));
        }
        Ok(Step::Pause)
    }

    /// The words that tell that all rows were sent.
    pub(crate) fn tag(&self) -> std::borrow::Cow<'static, str> {
        tag(self.verb, self.sent)
    }
}
