//! `VALUES` of subqueries.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Visit, Visitor,
};

use crate::one_row;

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
    let named = |(index, value): (usize, &Expr)| SelectItem::ExprWithAlias {
        expr: value.clone(),
        alias: Ident::new(format!("column{}", index + 1)),
    };
    let items = values.iter().enumerate().map(named).collect();
    Some(*one_row::select(items, &[]).ok()?.body)
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
