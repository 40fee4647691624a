//! What is another value each time it is computed is computed for the rows of an answer alone, in their order: behind
//! ORDER BY and LIMIT, as in PostgreSQL. `SELECT nextval('s') FROM t ORDER BY a LIMIT 10` takes ten numbers.
//!
//! Where ORDER BY is by such a value, DataFusion takes a call for a constant that has nothing but constants among its
//! arguments, and does not sort by it. So there it stands below a call that has no arguments.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::functions::expr_fn::random;
use datafusion::logical_expr::logical_plan::{Projection, Sort};
use datafusion::logical_expr::{Expr, LogicalPlan, lit, when};

use crate::row_by_row::has_subquery;

/// How columns are called that only what is postponed looks at.
const NEEDED: &str = "onrush_needed_";
/// How columns are called that rows are ordered by.
const KEY: &str = "onrush_key_";

/// The plan with such values computed behind the sorts.
pub(crate) fn volatile_behind_sorts(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Sort(sort) = &node else { return Ok(Transformed::no(node)) };
        let LogicalPlan::Projection(projection) = &*sort.input else {
            return Ok(Transformed::no(node));
        };
        Ok(match behind(sort, projection)? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(node),
        })
    })
    .data()
}

fn behind(sort: &Sort, projection: &Projection) -> Result<Option<LogicalPlan>> {
    let keys = sort.expr.iter().map(|key| &key.expr);
    if !projection.expr.iter().chain(keys).any(Expr::is_volatile) {
        return Ok(None);
    }
    let mut ordering = HashSet::new();
    for key in &sort.expr {
        ordering.extend(key.expr.column_refs());
    }
    let outputs = projection.schema.columns();
    // A query in it has its own way to the columns outside.
    let is_postponed = |(expr, output): (&Expr, &Column)| {
        Ok(expr.is_volatile() && !has_subquery(expr)? && !ordering.contains(output))
    };
    let postponed = projection.expr.iter().zip(&outputs).map(is_postponed);
    let postponed: Vec<bool> = postponed.collect::<Result<_>>()?;
    let (mut before, mut after, mut needed) = (Vec::new(), Vec::new(), Vec::<Column>::new());
    for ((expr, output), postponed) in projection.expr.iter().zip(&outputs).zip(&postponed) {
        if !postponed {
            before.push(match expr.is_volatile() {
                true => not_constant(expr.clone())?.alias(output.name.clone()),
                false => expr.clone(),
            });
            after.push(Expr::Column(output.clone()));
            continue;
        }
        let moved = expr.clone().transform(|inner| {
            let Expr::Column(column) = &inner else { return Ok(Transformed::no(inner)) };
            let known = needed.iter().position(|known| known == column);
            let at = known.unwrap_or_else(|| {
                needed.push(column.clone());
                needed.len() - 1
            });
            Ok(Transformed::yes(Expr::Column(Column::from_name(format!("{NEEDED}{at}")))))
        })?;
        after.push(moved.data.alias(output.name.clone()));
    }
    let named = |(at, column)| Expr::Column(column).alias(format!("{NEEDED}{at}"));
    before.extend(needed.into_iter().enumerate().map(named));
    let input = Projection::try_new(before, Arc::clone(&projection.input))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let sort = LogicalPlan::Sort(by_columns(Sort { input, ..sort.clone() })?);
    Projection::try_new(after, Arc::new(sort)).map(LogicalPlan::Projection).map(Some)
}

/// The same order by columns: a value that is another one each time is computed once for each row, and the rows of
/// several threads, which are merged, keep theirs.
fn by_columns(mut sort: Sort) -> Result<Sort> {
    let mut columns: Vec<Expr> =
        sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    let count = columns.len();
    for key in sort.expr.iter_mut().filter(|key| key.expr.is_volatile()) {
        let name = format!("{KEY}{}", columns.len());
        columns.push(not_constant(std::mem::take(&mut key.expr))?.alias(name.clone()));
        key.expr = Expr::Column(Column::from_name(name));
    }
    if columns.len() > count {
        let keyed = Projection::try_new(columns, Arc::clone(&sort.input))?;
        sort.input = Arc::new(LogicalPlan::Projection(keyed));
    }
    Ok(sort)
}

/// The same value, which does not look like a constant.
fn not_constant(expr: Expr) -> Result<Expr> {
    when(random().lt(lit(2.0)), expr).end()
}
