//! `(a, b) IN (SELECT ...)`: DataFusion compares one column with one. It is whether there is a row that is the same;
//! and where that is not known of any, because of NULL, it is NULL, which no condition of WHERE tells from false.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::all_names;
use super::compared::fields;
use crate::error::{QueryError, Result};

/// Writes all of them.
///
/// # Errors
/// A query of more or fewer columns than the row has.
pub(super) fn as_existence(query: &mut Query) -> Result<()> {
    match query.visit(&mut Writer) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Writer;

impl VisitorMut for Writer {
    type Break = QueryError;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<QueryError> {
        match rows(expression) {
            Some((row, query, _)) => check_width(&row, query),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<QueryError> {
        if let Some(condition) = &mut select.selection {
            in_condition(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<QueryError> {
        if let Some((row, query, negated)) = rows(expression)
            && let Some(written) = three_valued(&row, query, negated)
        {
            *expression = written;
        }
        ControlFlow::Continue(())
    }
}

/// Refuses a query of another number of columns, where the statement alone tells it.
fn check_width(row: &[Expr], query: &Query) -> ControlFlow<QueryError> {
    let columns = all_names(query).map_or(row.len(), |names| names.len());
    let what = match columns.cmp(&row.len()) {
        Ordering::Less => "few",
        Ordering::Equal => return ControlFlow::Continue(()),
        Ordering::Greater => "many",
    };
    let message = format!("subquery has too {what} columns");
    ControlFlow::Break(QueryError::refused("42601", message))
}

/// What of WHERE is to be true.
fn in_condition(condition: &mut Expr) {
    match condition {
        Expr::Nested(inner) => in_condition(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            in_condition(left);
            in_condition(right);
        }
        other => {
            if let Some((row, query, false)) = rows(other)
                && check_width(&row, query).is_continue()
                && let Some(written) = exists(&row, query, "")
            {
                *other = written;
            }
        }
    }
}

fn rows(expression: &Expr) -> Option<(Vec<Expr>, &Query, bool)> {
    let Expr::InSubquery { expr, subquery, negated } = expression else { return None };
    let row = fields(expr).filter(|row| row.len() > 1)?;
    Some((row, subquery, *negated))
}

/// `EXISTS (SELECT 1 FROM (query) AS found (...) WHERE (row = found) is_so)`.
fn exists(row: &[Expr], query: &Query, is_so: &str) -> Option<Expr> {
    let names: Vec<String> = (1..=row.len()).map(|at| format!("found_column{at}")).collect();
    // What stands for the fields is put in their places below.
    let same: Vec<String> = names.iter().map(|name| format!("NULL = found_rows.{name}")).collect();
    let text = format!(
        "SELECT EXISTS (SELECT 1 FROM (SELECT 1) AS found_rows ({}) WHERE ({}) {is_so})",
        names.join(", "),
        same.join(" AND ")
    );
    let Statement::Query(made) = Parser::parse_sql(&PostgreSqlDialect {}, &text).ok()?.pop()?
    else {
        return None;
    };
    let SetExpr::Select(mut outer) = *made.body else { return None };
    let SelectItem::UnnamedExpr(mut exists) = outer.projection.pop()? else { return None };
    let Expr::Exists { subquery, .. } = &mut exists else { return None };
    let SetExpr::Select(select) = &mut *subquery.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    **subquery = query.clone();
    let mut fields = row.iter();
    put_in(select.selection.as_mut()?, &mut fields);
    Some(exists)
}

/// Puts the fields in front of what they are compared with, from the left to the right.
fn put_in<'f>(condition: &mut Expr, fields: &mut impl Iterator<Item = &'f Expr>) {
    match condition {
        Expr::Nested(inner) | Expr::IsNull(inner) => put_in(inner, fields),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            put_in(left, fields);
            put_in(right, fields);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, .. } => {
            if let Some(field) = fields.next() {
                **left = Expr::Nested(Box::new(field.clone()));
            }
        }
        _ => {}
    }
}

/// True, false, or NULL where no row is the same and of one it is not known.
fn three_valued(row: &[Expr], query: &Query, negated: bool) -> Option<Expr> {
    let (yes, no) = if negated { ("false", "true") } else { ("true", "false") };
    let text = format!("SELECT CASE WHEN NULL THEN {yes} WHEN NULL THEN NULL ELSE {no} END");
    let Statement::Query(made) = Parser::parse_sql(&PostgreSqlDialect {}, &text).ok()?.pop()?
    else {
        return None;
    };
    let SetExpr::Select(mut select) = *made.body else { return None };
    let SelectItem::UnnamedExpr(mut case) = select.projection.pop()? else { return None };
    let Expr::Case { conditions, .. } = &mut case else { return None };
    let [is_there, is_unknown] = conditions.as_mut_slice() else { return None };
    is_there.condition = exists(row, query, "")?;
    is_unknown.condition = exists(row, query, "IS NULL")?;
    Some(Expr::Nested(Box::new(case)))
}
