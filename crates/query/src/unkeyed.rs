//! Columns of which no two rows have the same.
//!
//! DataFusion leaves out columns of ORDER BY and GROUP BY, DISTINCT and outer joins where it takes some columns for a
//! key of all. It does so too often: behind `unnest` and LATERAL, which give a row several times, and where the rows of
//! a join are grouped by more than the key of one side. So a key serves the planning of GROUP BY, as in PostgreSQL, and
//! is told no more after that. Neither do groups tell that they are keys to groups above, or to rows made of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, TableScan};
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::functions::{kept_by_unkeyed, unkeyed};
use crate::table::StoredTable;
use crate::typing::of_source;

/// Plans what stands in FROM so that queries there tell no key: GROUP BY looks for keys while a statement is planned,
/// and those of tables alone suffice for it.
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
        let plan = match has_key && !is_of_tables(&plan) {
            true => unkeyed_columns(&plan)?,
            false => plan,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// Whether it is a table, also with other names for its columns, or a join.
fn is_of_tables(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(aliased) => is_of_tables(&aliased.input),
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let is_column = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(_));
            expr.iter().all(is_column) && is_of_tables(input)
        }
        LogicalPlan::TableScan(_) | LogicalPlan::Join(_) => true,
        _ => false,
    }
}

/// The plan of a statement, without what its relations tell of keys, and with groups that do not tell them either
/// where others build on them.
pub(crate) fn without_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let without_key = |node: LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => without_own_key(scan),
        LogicalPlan::Projection(projection) => keyed_again(projection),
        LogicalPlan::Join(mut join) if is_lateral(&join.right) && has_groups(&join.left)? => {
            join.left = Arc::new(unkeyed_columns(&join.left)?);
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        LogicalPlan::Unnest(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_) => match node.inputs().as_slice() {
            [input] if has_groups(input)? => {
                let input = unkeyed_columns(input)?;
                Ok(Transformed::yes(node.with_new_exprs(node.expressions(), vec![input])?))
            }
            _ => Ok(Transformed::no(node)),
        },
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
