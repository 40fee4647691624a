//! DECLARE: a query begins whose rows are asked for later.

use onrush_query::Want;

use super::{Answer, Backend};
use crate::error::{Result, SqlError, state};
use crate::sql::{Bound, DeclarePlan, Plan};

impl Backend {
    pub(super) fn declare(&mut self, declared: &DeclarePlan, bound: &Bound) -> Result<Answer> {
        if !self.is_in_transaction() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(
                SqlError::new(state::NO_ACTIVE_TRANSACTION, message).with_hint("BEGIN first.")
            );
        }
        let answer = match &*declared.query {
            Plan::Get(get) => self.get(get, bound),
            Plan::Scalars { columns, values } => self.scalars(columns, values, bound),
            Plan::Query(query) => self.query(query, bound, Want::Rows),
            _ => Err(SqlError::new(state::INTERNAL, "a cursor is of a query")),
        }?;
        match answer {
            Answer::Rows(rows) => Ok(Answer::Declared(declared.name.clone(), rows)),
            _ => Err(SqlError::new(state::INTERNAL, "a query gives rows")),
        }
    }
}
