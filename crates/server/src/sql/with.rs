//! WITH in front of INSERT, UPDATE and DELETE: what it names stands before the query that finds their rows.

use sqlparser::ast::{Query, SetExpr, Statement, With};

use super::operand::Parameters;
use super::{Planner, insert, write};
use crate::error::{Result, SqlError};
use crate::execute::plan::WritePlan;

/// The plan of a statement that is no query but has the form of one; none for queries.
pub(super) fn plan(
    planner: &Planner<'_>,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<Option<WritePlan>> {
    let with = query.with.as_ref();
    let plan = match &*query.body {
        SetExpr::Insert(Statement::Insert(statement)) => {
            let mut statement = statement.clone();
            if let (Some(source), Some(with)) = (&mut statement.source, with) {
                put_before(with, source);
            }
            insert::plan(planner, &statement, parameters)
        }
        SetExpr::Update(Statement::Update(statement)) => {
            write::update(planner, with, statement, parameters)
        }
        SetExpr::Delete(Statement::Delete(statement)) => {
            write::delete(planner, with, statement, parameters)
        }
        SetExpr::Insert(other) | SetExpr::Update(other) | SetExpr::Delete(other) => {
            Err(SqlError::not_supported(other, "Write the statement without WITH."))
        }
        _ => return Ok(None),
    };
    plan.map(Some)
}

/// `with` before the WITH that a query has of its own, which may use it.
fn put_before(with: &With, query: &mut Query) {
    let mut all = with.clone();
    if let Some(own) = query.with.take() {
        all.recursive |= own.recursive;
        all.cte_tables.extend(own.cte_tables);
    }
    query.with = Some(all);
}
