//! RETURNING: what is sent of each row that a statement has written.

use std::sync::Arc;

use onrush::Row;
use onrush_query::RowValues;

use super::{Answer, Backend, RowStream, tag};
use crate::error::Result;
use crate::sql::{Bound, Returning};

/// Makes the rows that are sent.
pub(super) struct Returner {
    /// Whether there is a RETURNING.
    pub(super) is_wanted: bool,
    values: Option<Arc<RowValues>>,
}

impl Returner {
    /// What is sent of a row of the table.
    pub(super) fn row(&self, row: Row) -> Result<Row> {
        match &self.values {
            Some(values) => Ok(values.of(&[&row])?),
            None => Ok(row),
        }
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
        Ok(Returner { is_wanted: returning.is_some(), values })
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
