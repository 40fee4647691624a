//! Where a recursive query must not name itself.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    JoinOperator, ObjectName, SetExpr, SetOperator, TableFactor, TableWithJoins, visit_relations,
};

use super::Columns;
use crate::error::{QueryError, Result};
use crate::syntax::unqualified;

/// Refuses a recursive part that names itself more than once, or where what is new in a round would not only come of
/// what was new in the one before: in an outer join, which makes up rows, in a subquery, or behind EXCEPT.
///
/// # Errors
/// `42P19`.
pub(super) fn check_recursion(name: &str, part: &SetExpr) -> Result<()> {
    let mut found = 0;
    check_part(name, part, &mut found)?;
    match found {
        0 | 1 => Ok(()),
        _ => Err(refused(name, "more than once")),
    }
}

/// Refuses a query that names itself and is no UNION, or names itself in front of that.
///
/// # Errors
/// `42P19`.
pub(super) fn check_form(
    name: &str,
    operator: SetOperator,
    left: &SetExpr,
    right: &SetExpr,
) -> Result<()> {
    let is_named = |part: &SetExpr| {
        let mut found = 0;
        // How it names itself there does not matter.
        let _ = check_part(name, part, &mut found);
        found > 0
    };
    if is_named(left) {
        return Err(refused(name, "within its non-recursive term"));
    }
    if operator != SetOperator::Union && is_named(right) {
        let message = format!(
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
        );
        return Err(QueryError::refused("42P19", message));
    }
    Ok(())
}

fn refused(name: &str, place: &str) -> QueryError {
    let message = format!("recursive reference to query \"{name}\" must not appear {place}");
    QueryError::refused("42P19", message)
}

fn check_part(name: &str, part: &SetExpr, found: &mut usize) -> Result<()> {
    match part {
        SetExpr::Select(select) => {
            let in_subquery = |seen: ControlFlow<()>| match seen.is_break() {
                true => Err(refused(name, "within a subquery")),
                false => Ok(()),
            };
            let is_it = |relation: &ObjectName| match unqualified(relation).join(".") == name {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            in_subquery(visit_relations(&select.projection, is_it))?;
            in_subquery(visit_relations(&select.selection, is_it))?;
            in_subquery(visit_relations(&select.having, is_it))?;
            select.from.iter().try_for_each(|from| {
                check_joins(name, from)?;
                let joined = from.joins.iter().map(|join| &join.relation);
                let all = std::iter::once(&from.relation).chain(joined);
                all.into_iter().try_for_each(|factor| count_names(name, factor, found))
            })
        }
        SetExpr::SetOperation { op, left, right, .. } => {
            check_part(name, left, found)?;
            let before = *found;
            check_part(name, right, found)?;
            match op {
                SetOperator::Except if *found > before => Err(refused(name, "within EXCEPT")),
                _ => Ok(()),
            }
        }
        SetExpr::Query(query) => check_part(name, &query.body, found),
        _ => Ok(()),
    }
}

fn count_names(name: &str, factor: &TableFactor, found: &mut usize) -> Result<()> {
    match factor {
        TableFactor::Table { name: table, args: None, .. } => {
            *found += usize::from(unqualified(table).join(".") == name);
            Ok(())
        }
        TableFactor::NestedJoin { table_with_joins, .. } => {
            count_names(name, &table_with_joins.relation, found)?;
            let mut joins = table_with_joins.joins.iter();
            joins.try_for_each(|join| count_names(name, &join.relation, found))
        }
        TableFactor::Derived { subquery, .. } => check_part(name, &subquery.body, found),
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
            return Err(refused(name, "within an outer join"));
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
