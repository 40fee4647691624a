//! EXISTS as a value of a row. DataFusion knows it as a condition only; as a value it becomes the
//! count of the rows, of which one is enough where the subquery does not look at the row outside.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{
    Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType, Subquery, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use super::rewrite;

/// Counts rows where EXISTS is a value.
#[derive(Debug)]
pub(crate) struct ExistsAsValue;

impl AnalyzerRule for ExistsAsValue {
    fn name(&self) -> &str {
        "exists_as_value"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            if !matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) {
                return Ok(Transformed::no(plan));
            }
            rewrite(plan, counted)
        })
        .data()
    }
}

fn counted(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expression else {
        return Ok(Transformed::no(expression));
    };
    let rows = unlimited(Arc::clone(&subquery.subquery))?;
    let mut rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(rows));
    if subquery.outer_ref_columns.is_empty() {
        rows = rows.limit(0, Some(1))?;
    }
    let count = rows.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?.build()?;
    let count = Expr::ScalarSubquery(Subquery { subquery: Arc::new(count), ..subquery });
    let none = lit(0_i64);
    Ok(Transformed::yes(if negated { count.eq(none) } else { count.gt(none) }))
}

/// Without a LIMIT of one or more, which leaves a row where there is one, and keeps a subquery from
/// being joined.
fn unlimited(rows: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let LogicalPlan::Limit(limit) = &*rows else { return Ok(rows) };
    let skips_none = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    let leaves_one = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1..) | None)));
    Ok(if skips_none && leaves_one { Arc::clone(&limit.input) } else { rows })
}
