//! A filter that no row passes.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A filter of which one condition is false or NULL leaves no row: DataFusion sees so where it is the only one. Of
/// several it pushes that one below an aggregate, and `GROUP BY ROLLUP` of no row has a row.
#[derive(Debug)]
pub(crate) struct NoRows;

impl OptimizerRule for NoRows {
    fn name(&self) -> &'static str {
        "no_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
        let is_never = |condition: &&Expr| match condition {
            Expr::Literal(value, _) => value.is_null() || *value == ScalarValue::from(false),
            _ => false,
        };
        if !split_conjunction(&filter.predicate).iter().any(is_never) {
            return Ok(Transformed::no(plan));
        }
        Ok(Transformed::yes(LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::clone(plan.schema()),
        })))
    }
}
