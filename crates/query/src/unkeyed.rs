//! Keys behind rows that are made of rows: `unnest`, `generate_series` and LATERAL give a row several times, with what
//! is made of it, and its key is one no longer. DataFusion takes it for one all the same, and leaves out columns of
//! ORDER BY and GROUP BY, DISTINCT and outer joins, or adds columns to GROUP BY.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, TableScan};
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::functions::{kept_by_unkeyed, unkeyed};
use crate::table::StoredTable;
use crate::typing::of_source;

/// Plans what stands in FROM so that it tells no key where rows are made in it: GROUP BY looks for keys while a
/// statement is planned.
#[derive(Debug, Default)]
pub(crate) struct UnkeyedRelations {
    /// The planner of statements has been asked for the relation that comes next, and will ask here again.
    is_asking: AtomicBool,
}

impl RelationPlanner for UnkeyedRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if self.is_asking.swap(false, Ordering::Relaxed) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        self.is_asking.store(true, Ordering::Relaxed);
        let plan = context.plan(relation)?;
        let has_key = !plan.schema().functional_dependencies().is_empty();
        let plan =
            match has_key && plan.exists(|node| Ok(matches!(node, LogicalPlan::Unnest(_))))? {
                true => unkeyed_columns(&plan)?,
                false => plan,
            };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// The plan without keys, where rows of what has one may come several times with what is made of each: DataFusion
/// takes the key to tell rows apart behind that, too, and leaves out groups, orders and joins. Tables do not tell their
/// keys, and the columns that rows are made beside are no longer those of the groups below.
pub(crate) fn without_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut makes_rows = false;
    plan.apply_with_subqueries(|node| {
        makes_rows |= match node {
            LogicalPlan::Unnest(_) => true,
            LogicalPlan::Join(join) => is_lateral(&join.left) || is_lateral(&join.right),
            _ => false,
        };
        Ok(if makes_rows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !makes_rows {
        return Ok(plan);
    }
    let without_key = |node: LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => without_own_key(scan),
        LogicalPlan::Projection(projection) => Ok(keyed_again(projection)?),
        LogicalPlan::Unnest(unnest) if has_groups(&unnest.input)? => {
            let input = unkeyed_columns(&unnest.input)?;
            let node = LogicalPlan::Unnest(unnest);
            Ok(Transformed::yes(node.with_new_exprs(node.expressions(), vec![input])?))
        }
        LogicalPlan::Join(mut join) if is_lateral(&join.right) && has_groups(&join.left)? => {
            join.left = Arc::new(unkeyed_columns(&join.left)?);
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(without_key).data()
}

fn without_own_key(scan: TableScan) -> Result<Transformed<LogicalPlan>> {
    let unchanged = |scan| Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    let Ok(provider) = source_as_provider(&scan.source) else { return unchanged(scan) };
    let own = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StoredTable>();
    match own.and_then(StoredTable::without_key) {
        Some(table) => Ok(Transformed::yes(of_source(&scan, provider_as_source(Arc::new(table)))?)),
        None => unchanged(scan),
    }
}

/// Takes away again what [`UnkeyedRelations`] put there: once nothing below tells a key, filters are to come through.
fn keyed_again(projection: Projection) -> Result<Transformed<LogicalPlan>> {
    let is_added = !projection.expr.is_empty()
        && projection.expr.iter().all(|column| column_below(column).is_some());
    let node = LogicalPlan::Projection(projection);
    if !is_added {
        return Ok(Transformed::no(node));
    }
    let columns = node.expressions().into_iter();
    let columns = columns.map(|column| column_below(&column).cloned().unwrap_or(column)).collect();
    let inputs = node.inputs().into_iter().cloned().collect();
    Ok(Transformed::yes(node.with_new_exprs(columns, inputs)?))
}

/// Whether something in a plan makes columns of which no two rows have the same.
fn has_groups(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(
            node,
            LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_)
        ))
    })
}

/// The same columns, of which it is not known that no two rows have the same.
fn unkeyed_columns(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let column = |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        unkeyed(column).alias_qualified(qualifier.cloned(), field.name())
    };
    let columns: Vec<Expr> = plan.schema().iter().map(column).collect();
    LogicalPlanBuilder::from(plan.clone()).project(columns)?.build()
}

/// Whether a side of a join depends on the other one.
fn is_lateral(side: &LogicalPlan) -> bool {
    match side {
        LogicalPlan::SubqueryAlias(aliased) => is_lateral(&aliased.input),
        other => matches!(other, LogicalPlan::Subquery(_)),
    }
}

/// The column below one that is [`unkeyed_columns`]'s.
fn column_below(column: &Expr) -> Option<&Expr> {
    match column {
        Expr::Alias(alias) => kept_by_unkeyed(&alias.expr),
        _ => None,
    }
}
