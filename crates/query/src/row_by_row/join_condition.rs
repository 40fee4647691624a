//! Subqueries in the condition of an outer join: each becomes a column of the side that it depends on, as the condition
//! alone does not tell which rows there are.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchemaRef, Result, not_impl_err};
use datafusion::logical_expr::expr::{Alias, InSubquery};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, col};

use super::{call, columns_of, outer_references, subquery_of};

/// The join over columns of what its condition would have called.
pub(super) fn computed_below(join: Join, calls: &[Expr]) -> Result<Transformed<LogicalPlan>> {
    let schemas = [Arc::clone(join.left.schema()), Arc::clone(join.right.schema())];
    let mut added = [Vec::new(), Vec::new()];
    let mut names = Vec::with_capacity(calls.len());
    for (number, of) in calls.iter().enumerate() {
        let side = side_of(of, &schemas)?;
        let name = format!("__subquery_{number}");
        let computed = call(of, &schemas[side])?;
        added[side].push(Expr::Alias(Alias::new(computed, None::<&str>, name.clone())));
        names.push(name);
    }
    let Some(condition) = join.filter else {
        return not_impl_err!("a subquery in what a join is made by");
    };
    let condition = condition.transform_up(|inner| {
        Ok(match calls.iter().position(|call| *call == inner) {
            Some(number) => Transformed::yes(col(names[number].as_str())),
            None => Transformed::no(inner),
        })
    });
    let [of_left, of_right] = added;
    let joined = Join::try_new(
        with_columns(join.left, of_left)?,
        with_columns(join.right, of_right)?,
        join.on,
        Some(condition.data()?),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let shown = columns_of(&join.schema);
    let joined = LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(shown)?.build()?;
    Ok(Transformed::yes(joined))
}

fn with_columns(side: Arc<LogicalPlan>, added: Vec<Expr>) -> Result<Arc<LogicalPlan>> {
    if added.is_empty() {
        return Ok(side);
    }
    let all = columns_of(side.schema()).into_iter().chain(added);
    let side = LogicalPlanBuilder::from(Arc::unwrap_or_clone(side));
    Ok(Arc::new(side.project(all)?.build()?))
}

/// The side whose columns a subquery depends on; the right one, if it depends on none.
fn side_of(of: &Expr, schemas: &[DFSchemaRef; 2]) -> Result<usize> {
    let mut used: Vec<Column> = Vec::new();
    if let Some((rows, _)) = subquery_of(of) {
        used.extend(outer_references(rows)?.into_iter().filter_map(|reference| match reference {
            Expr::OuterReferenceColumn(_, column) => Some(column),
            _ => None,
        }));
    }
    if let Expr::InSubquery(InSubquery { expr, .. }) = of {
        used.extend(expr.column_refs().into_iter().cloned());
    }
    let has_all = |side: &usize| used.iter().all(|column| schemas[*side].has_column(column));
    match [1, 0].into_iter().find(has_all) {
        Some(side) => Ok(side),
        None => not_impl_err!("a subquery in ON of an outer join that depends on both sides"),
    }
}
