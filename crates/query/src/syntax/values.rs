//! `VALUES` of subqueries.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, Visit,
    Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Writes lists of values that have subqueries in them as queries of one row each: DataFusion computes
/// lists before it runs anything.
pub(super) fn with_subqueries(body: &mut Box<SetExpr>) {
    let SetExpr::Values(values) = &**body else { return };
    if values.rows.visit(&mut Seeker).is_continue() {
        return;
    }
    let rows = values.rows.iter().map(|row| one_row(&row.content));
    if let Some(Some(all)) = rows.reduce(|above, below| Some(both(above?, below?))) {
        **body = all;
    }
}

/// `SELECT value AS column1, ...`.
fn one_row(values: &[Expr]) -> Option<SetExpr> {
    let mut select = select()?;
    let named = |(index, value): (usize, &Expr)| SelectItem::ExprWithAlias {
        expr: value.clone(),
        alias: Ident::new(format!("column{}", index + 1)),
    };
    select.projection = values.iter().enumerate().map(named).collect();
    Some(SetExpr::Select(select))
}

fn select() -> Option<Box<Select>> {
    let Statement::Query(query) =
        Parser::parse_sql(&PostgreSqlDialect {}, "SELECT 1").ok()?.pop()?
    else {
        return None;
    };
    match *query.body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

fn both(above: SetExpr, below: SetExpr) -> SetExpr {
    SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(above),
        right: Box::new(below),
    }
}

/// Breaks off at a subquery.
struct Seeker;

impl Visitor for Seeker {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}
