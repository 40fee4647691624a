//! RETURNING: what is sent of each row that a statement has written.

use std::sync::Arc;

use onrush::{Row, Value};
use onrush_query::RowValues;

use super::{Answer, Backend, RowStream, tag};
use crate::error::Result;
use crate::sql::{Bound, Returning};

/// Makes the rows that are sent.
pub(super) struct Returner {
    /// Whether there is a RETURNING.
    pub(super) is_wanted: bool,
    values: Option<Arc<RowValues>>,
    beside: usize,
}

impl Returner {
    /// What is sent of a row of the table.
    pub(super) fn row(&self, row: Row) -> Result<Row> {
        self.row_found(row, &[])
    }

    /// What is sent of a row of the table, with what was found with it.
    pub(super) fn row_found(&self, row: Row, found: &[Value<'static>]) -> Result<Row> {
        let Some(values) = &self.values else { return Ok(row) };
        let beside = std::iter::repeat_n(found, self.beside);
        let rows: Vec<&[Value<'static>]> = std::iter::once(&*row).chain(beside).collect();
        Ok(values.of(&rows)?)
    }
}

impl Backend {
    /// For one execution of a statement.
    pub(super) fn returner(
        &self,
        returning: &Option<Returning>,
        bound: &Bound,
    ) -> Result<Returner> {
        let computed = returning.as_ref().and_then(|returning| returning.computed.as_ref());
        let values = match computed {
            Some(computed) => Some(self.finder().row_values(computed, bound)?),
            None => None,
        };
        let beside = returning.as_ref().map_or(0, |returning| returning.beside);
        Ok(Returner { is_wanted: returning.is_some(), values, beside })
    }
}

/// The answer of a statement that wrote `count` rows, of which `rows` are sent.
pub(super) fn answer(
    verb: &'static str,
    returning: &Option<Returning>,
    rows: Vec<Row>,
    count: u64,
) -> Answer {
    match returning {
        None => Answer::Done(tag(verb, count)),
        Some(returning) => {
            Answer::rows(RowStream::of_rows(Arc::clone(&returning.columns), rows, verb))
        }
    }
}
