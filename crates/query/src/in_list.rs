//! `x IN (a, b)` with elements that are of the row: DataFusion takes one for a constant that comes to a single value
//! for no rows, as CASE does.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, LogicalPlan, or};
use datafusion::optimizer::analyzer::AnalyzerRule;

use crate::functions::{has_expression, rewrite};

/// Compares with such elements one by one.
#[derive(Debug)]
pub(crate) struct ListsOfRows;

impl AnalyzerRule for ListsOfRows {
    fn name(&self) -> &str {
        "lists_of_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let is_sought = |inner: &Expr| Ok(matches!(inner, Expr::InList(list) if is_of_row(list)?));
        if !has_expression(&plan, is_sought)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            rewrite(node, |expression| {
                Ok(match expression {
                    Expr::InList(list) if is_of_row(&list)? => Transformed::yes(compared(list)),
                    other => Transformed::no(other),
                })
            })
        })
        .data()
    }
}

fn is_of_row(list: &InList) -> Result<bool> {
    // What comes to another value each time is computed once.
    if list.expr.is_volatile() {
        return Ok(false);
    }
    for element in &list.list {
        if is_element_of_row(element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_element_of_row(element: &Expr) -> Result<bool> {
    element.exists(|inner| {
        Ok(matches!(
            inner,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
        ))
    })
}

fn compared(list: InList) -> Expr {
    let InList { expr, list, negated } = list;
    let (of_rows, constants): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|element| is_element_of_row(element).unwrap_or(true));
    let mut compared: Vec<Expr> = Vec::with_capacity(of_rows.len() + 1);
    if !constants.is_empty() {
        compared.push(expr.as_ref().clone().in_list(constants, false));
    }
    compared.extend(of_rows.into_iter().map(|element| expr.as_ref().clone().eq(element)));
    let found = any_of(compared);
    if negated { Expr::Not(Box::new(found)) } else { found }
}

/// As a tree that is no deeper than it must be.
fn any_of(mut all: Vec<Expr>) -> Expr {
    let rest = all.split_off(all.len().div_ceil(2));
    match (all.len(), rest.is_empty()) {
        (1, true) => all.swap_remove(0),
        _ => or(any_of(all), any_of(rest)),
    }
}
