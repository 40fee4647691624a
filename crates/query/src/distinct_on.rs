//! DISTINCT ON: of the rows that have the same in some columns, the first in the order of the query.
//!
//! DataFusion takes the first value of each column by itself, which may be one of another row where the order leaves
//! several to choose from.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit,
};

/// Numbers the rows where DISTINCT ON is asked for, and takes the first ones. Comes before all that changes
/// expressions, as DataFusion cannot give a DISTINCT ON with an order others.
pub(crate) fn first_rows_of(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = |node: LogicalPlan| match node {
        LogicalPlan::Distinct(Distinct::On(distinct)) => {
            Ok(Transformed::yes(first_rows(distinct)?))
        }
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(numbered).data()
}

fn first_rows(distinct: DistinctOn) -> Result<LogicalPlan> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = distinct;
    let order = sort_expr.unwrap_or_default();
    let mut number = row_number().partition_by(on_expr);
    if !order.is_empty() {
        number = number.order_by(order.clone());
    }
    let numbered = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
        .window(vec![number.build()?])?
        .build()?;
    let number = numbered.schema().columns().pop().map(Expr::Column);
    let is_first = number.unwrap_or_else(|| lit(1_u64)).eq(lit(1_u64));
    let mut first = LogicalPlanBuilder::from(numbered).filter(is_first)?;
    if !order.is_empty() {
        first = first.sort(order)?;
    }
    let shown = select_expr.into_iter().zip(schema.iter());
    let shown = shown.map(|(expression, (qualifier, field))| {
        expression.alias_qualified(qualifier.cloned(), field.name())
    });
    first.project(shown)?.build()
}
