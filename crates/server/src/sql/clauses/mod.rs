//! Refuses each clause of a statement that nothing would come of.
//!
//! The planners of statements take what they know out of what the parser has read. So that no clause is passed over
//! in silence, every node that they accept is taken apart here field by field, without `..`: a field that is new in
//! the parser does not compile before somebody says what becomes of it, and one that has no effect is refused by
//! its name. Queries, and the expressions in all statements, are looked at by the query engine likewise.
//!
//! - `rows.rs`: INSERT, UPDATE, DELETE, COPY. `definitions.rs`: tables and what belongs to them.
//!   `sessions.rs`: transactions, settings, roles and cursors.
//!
//! A field that is not refused is one that the statement's planner reads; where it has no meaning of its own its name
//! here says why.

mod definitions;
mod rows;
mod sessions;

use sqlparser::ast::{SetExpr, Statement};

use super::Planner;
use crate::error::{Result, SqlError};

/// Looks at a statement before it is planned.
///
/// # Errors
/// A clause that would have no effect (`0A000`).
pub(super) fn check(planner: &Planner<'_>, statement: &Statement) -> Result<()> {
    match statement {
        // The query engine looks at the others when it plans them.
        Statement::Query(query) => match &*query.body {
            SetExpr::Insert(changed) | SetExpr::Update(changed) | SetExpr::Delete(changed) => {
                rows::check_with(planner, query)?;
                check(planner, changed)
            }
            _ => Ok(()),
        },
        Statement::Insert(insert) => {
            rows::check_insert(insert)?;
            Ok(planner.queries.check_clauses(insert)?)
        }
        Statement::Update(update) => {
            rows::check_update(update)?;
            Ok(planner.queries.check_clauses(update)?)
        }
        Statement::Delete(delete) => {
            rows::check_delete(delete)?;
            Ok(planner.queries.check_clauses(delete)?)
        }
        Statement::Copy { .. } => rows::check_copy(statement),
        Statement::Call(call) => {
            sessions::check_call(call)?;
            Ok(planner.queries.check_clauses(call)?)
        }
        Statement::CreateTable(create) => {
            definitions::check_create(create)?;
            Ok(planner.queries.check_clauses(create)?)
        }
        Statement::AlterTable(alter) => {
            definitions::check_alter(alter)?;
            Ok(planner.queries.check_clauses(alter)?)
        }
        Statement::Drop { .. } | Statement::Truncate(_) => definitions::check_away(statement),
        other => sessions::check(other),
    }
}

/// Refuses a clause that is there.
fn none(is_there: bool, what: &str, instead: &str) -> Result<()> {
    if is_there { Err(SqlError::not_supported(what, instead)) } else { Ok(()) }
}
