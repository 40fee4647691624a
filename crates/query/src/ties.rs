//! `FETCH FIRST 3 ROWS WITH TIES`: also the rows that ORDER BY has in the same place as the last of the three. They are
//! those whose rank is not behind it.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::functions_window::rank::rank;
use datafusion::logical_expr::logical_plan::{Limit, Projection, Sort};
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, cast, col};

use crate::error::QueryError;
use crate::functions::WITH_TIES;

/// What the rank of a row is called.
const RANK: &str = "onrush_rank";

/// The plan with ranks in the place of counts that take ties along.
pub(crate) fn by_rank(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Limit(limit) = &node else { return Ok(Transformed::no(node)) };
        match limit.fetch.as_deref() {
            Some(count) if takes_ties(count) => ranked(limit, count).map(Transformed::yes),
            _ => Ok(Transformed::no(node)),
        }
    })
    .data()
}

fn takes_ties(count: &Expr) -> bool {
    let is_it = |inner: &Expr| match inner {
        Expr::ScalarFunction(function) => function.name() == WITH_TIES,
        _ => false,
    };
    count.exists(|inner| Ok(is_it(inner))).unwrap_or(false)
}

fn ranked(limit: &Limit, count: &Expr) -> Result<LogicalPlan> {
    let input = match &*limit.input {
        LogicalPlan::Sort(sort) => first_of(sort, limit, count)?,
        // Behind a sort by columns that the answer does not have.
        LogicalPlan::Projection(shown) => match &*shown.input {
            LogicalPlan::Sort(sort) => {
                let input = Arc::new(first_of(sort, limit, count)?);
                LogicalPlan::Projection(Projection::try_new(shown.expr.clone(), input)?)
            }
            _ => return Err(without_order()),
        },
        _ => return Err(without_order()),
    };
    Ok(match &limit.skip {
        None => input,
        skip => {
            LogicalPlan::Limit(Limit { skip: skip.clone(), fetch: None, input: Arc::new(input) })
        }
    })
}

/// The rows, still in their order, up to the last one that is wanted and those in its place.
fn first_of(sort: &Sort, limit: &Limit, count: &Expr) -> Result<LogicalPlan> {
    let shown = sort.input.schema().columns().into_iter().map(Expr::Column);
    let ranked = rank().order_by(sort.expr.clone()).build()?.alias(RANK);
    let whole = |count: &Expr| cast(count.clone(), ArrowType::Int64);
    let last = match limit.skip.as_deref() {
        Some(skip) => whole(skip) + whole(count),
        None => whole(count),
    };
    let is_first = cast(col(RANK), ArrowType::Int64).lt_eq(last);
    let input = LogicalPlanBuilder::from(Arc::clone(&sort.input))
        .window([ranked])?
        .filter(is_first)?
        .project(shown)?
        .build()?;
    Ok(LogicalPlan::Sort(Sort { input: Arc::new(input), ..sort.clone() }))
}

fn without_order() -> datafusion::error::DataFusionError {
    let message = "WITH TIES cannot be specified without ORDER BY clause".to_owned();
    QueryError::refused("42601", message).into()
}
