//! Where a recursive query must not name itself.

use datafusion::sql::sqlparser::ast::{JoinOperator, SetExpr, TableFactor, TableWithJoins};

use super::Columns;
use crate::error::{QueryError, Result};
use crate::syntax::unqualified;

/// Refuses a recursive part that names itself where an outer join makes up rows for those that it has not: what is
/// new in a round would not only come of what was new in the one before.
///
/// # Errors
/// `42P19`.
pub(super) fn check_recursion(name: &str, part: &SetExpr) -> Result<()> {
    match part {
        SetExpr::Select(select) => select.from.iter().try_for_each(|from| check_joins(name, from)),
        SetExpr::SetOperation { left, right, .. } => {
            check_recursion(name, left)?;
            check_recursion(name, right)
        }
        _ => Ok(()),
    }
}

fn check_joins(name: &str, from: &TableWithJoins) -> Result<()> {
    let mut is_before = names(name, &from.relation);
    check_nested(name, &from.relation)?;
    for join in &from.joins {
        let is_joined = names(name, &join.relation);
        check_nested(name, &join.relation)?;
        let is_refused = match join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => is_joined,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => is_before,
            JoinOperator::FullOuter(_) => is_before || is_joined,
            _ => false,
        };
        if is_refused {
            let message = format!(
                "recursive reference to query \"{name}\" must not appear within an outer join"
            );
            return Err(QueryError::refused("42P19", message));
        }
        is_before |= is_joined;
    }
    Ok(())
}

fn check_nested(name: &str, factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => check_joins(name, table_with_joins),
        _ => Ok(()),
    }
}

fn names(name: &str, factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name: table, .. } => unqualified(table).join(".") == name,
        TableFactor::NestedJoin { table_with_joins, .. } => {
            let TableWithJoins { relation, joins } = &**table_with_joins;
            names(name, relation) || joins.iter().any(|join| names(name, &join.relation))
        }
        _ => false,
    }
}

/// Numbers of the recursive term have space in the type of the other one.
pub(super) fn check_types(name: &str, columns: &Columns, others: &Columns) -> Result<()> {
    let (Some(columns), Some(others)) = (columns, others) else { return Ok(()) };
    for (at, ((_, own), (_, other))) in columns.iter().zip(others).enumerate() {
        if let (Some(width), Some(other_width)) = (own.width(), other.width())
            && width < other_width
        {
            let message = format!(
                "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                at + 1,
                own.name(),
                other.name()
            );
            let hint = "Cast the output of the non-recursive term to the correct type.";
            return Err(QueryError::refused("42804", message).hint(hint));
        }
    }
    Ok(())
}
