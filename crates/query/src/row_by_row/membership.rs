//! `x IN (SELECT ...)`, which is true, false, or NULL: where nothing equals `x`, and `x` or one of the rows is NULL.
//!
//! DataFusion's joins tell NULL from false in one place alone: where `x NOT IN (SELECT ...)` is a condition of its own,
//! `x` depends on the row outside, and the subquery does not. Where it makes no difference they tell enough: a
//! condition that is NULL keeps no row either. Everything else is [written otherwise](as_existence), or called.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, make_comparator};
use datafusion::arrow::compute::{SortOptions, concat, sort};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};

use super::{needs_call, outer_references};

/// Whether a join tells all that matters of it where it stands in the node.
pub(super) fn is_joined(of: &InSubquery, node: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Filter(filter) = node else { return Ok(false) };
    if has_subquery(&of.expr)? || of.expr.contains_outer() {
        return Ok(false);
    }
    let is_it = |expression: &Expr| matches!(expression, Expr::InSubquery(own) if own == of);
    if of.negated {
        let is_condition = split_conjunction(&filter.predicate).into_iter().any(is_it);
        let is_of_row = !of.expr.column_refs().is_empty();
        let is_alone = outer_references(&of.subquery.subquery)?.is_empty();
        return Ok(is_condition && is_of_row && is_alone && !is_elsewhere(&filter.predicate, of)?);
    }
    Ok(!is_below_others(&filter.predicate, of)?)
}

/// Whether there is a query in it.
pub(crate) fn has_subquery(expression: &Expr) -> Result<bool> {
    expression.exists(|inner| {
        Ok(matches!(inner, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
    })
}

/// Whether it stands below something other than AND and OR, which makes NULL and false something else.
fn is_below_others(predicate: &Expr, of: &InSubquery) -> Result<bool> {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            Ok(is_below_others(left, of)? || is_below_others(right, of)?)
        }
        Expr::InSubquery(own) if own == of => Ok(false),
        other => other.exists(|inner| Ok(matches!(inner, Expr::InSubquery(own) if own == of))),
    }
}

/// Whether it is more than a condition of its own.
fn is_elsewhere(predicate: &Expr, of: &InSubquery) -> Result<bool> {
    for condition in split_conjunction(predicate) {
        let is_it = matches!(condition, Expr::InSubquery(own) if own == of);
        if !is_it
            && condition.exists(|inner| Ok(matches!(inner, Expr::InSubquery(own) if own == of)))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes conditions `x NOT IN (SELECT y ...)` whose subquery depends on the row outside as `NOT EXISTS (SELECT ...
/// WHERE (x = y) IS NOT FALSE)`, where a join can be made of that.
pub(super) fn as_existence(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Filter(filter) = node else { return Ok(node) };
    let conditions: Vec<Expr> = split_conjunction(&filter.predicate).into_iter().cloned().collect();
    let mut written = Vec::with_capacity(conditions.len());
    let mut is_changed = false;
    for condition in conditions {
        match existence(&condition, &filter)? {
            Some(other) => {
                is_changed = true;
                written.push(other);
            }
            None => written.push(condition),
        }
    }
    match conjunction(written) {
        Some(predicate) if is_changed => {
            Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?))
        }
        _ => Ok(LogicalPlan::Filter(filter)),
    }
}

fn existence(condition: &Expr, filter: &Filter) -> Result<Option<Expr>> {
    let Expr::InSubquery(InSubquery { expr, subquery, negated: true }) = condition else {
        return Ok(None);
    };
    let rows = &subquery.subquery;
    if outer_references(rows)?.is_empty()
        || has_subquery(expr)?
        || expr.contains_outer()
        || expr.is_volatile()
    {
        return Ok(None);
    }
    let schema = filter.input.schema();
    let outside = expr.as_ref().clone().transform(|inner| match &inner {
        Expr::Column(column) => {
            let (_, field) = inner.to_field(schema)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column.clone())))
        }
        _ => Ok(Transformed::no(inner)),
    });
    let Some(own) = rows.schema().columns().into_iter().next() else { return Ok(None) };
    let equals = outside.data()?.eq(Expr::Column(own));
    let rows = LogicalPlanBuilder::from(rows.as_ref().clone())
        .filter(Expr::IsNotFalse(Box::new(equals)))?
        .build()?;
    let outer_ref_columns = rows.all_out_ref_exprs();
    let (subquery, spans) = (Arc::new(rows), subquery.spans.clone());
    let subquery = Subquery { subquery, outer_ref_columns, spans };
    let exists = Expr::Exists(Exists { subquery, negated: true });
    let node = LogicalPlan::Filter(Filter::try_new(exists.clone(), Arc::clone(&filter.input))?);
    Ok((!needs_call(&exists, &node)?).then_some(exists))
}

/// The values of a subquery's column, in order.
#[derive(Debug)]
pub(super) struct Members {
    sorted: Option<ArrayRef>,
    has_null: bool,
    is_empty: bool,
    _memory: MemoryReservation,
}

impl Members {
    pub(super) fn new(batches: &[RecordBatch], pool: &Arc<dyn MemoryPool>) -> Result<Members> {
        let memory = MemoryConsumer::new("IN (SELECT ...)").register(pool);
        let columns: Vec<&dyn Array> =
            batches.iter().map(|batch| batch.column(0).as_ref()).collect();
        let bytes: usize = columns.iter().map(|column| column.get_array_memory_size()).sum();
        // They are put together, and then sorted.
        memory.try_grow(bytes.saturating_mul(2))?;
        if columns.iter().all(|column| column.is_empty()) {
            let nothing =
                Members { sorted: None, has_null: false, is_empty: true, _memory: memory };
            return Ok(nothing);
        }
        let all =
            sort(&concat(&columns)?, Some(SortOptions { descending: false, nulls_first: false }))?;
        let nulls = all.null_count();
        let sorted = all.slice(0, all.len() - nulls);
        Ok(Members { sorted: Some(sorted), has_null: nulls > 0, is_empty: false, _memory: memory })
    }

    /// Whether they have a value; NULL where that cannot be told.
    pub(super) fn have(&self, wanted: &ScalarValue) -> Result<Option<bool>> {
        if self.is_empty {
            return Ok(Some(false));
        }
        let Some(sorted) = self.sorted.as_ref().filter(|_| !wanted.is_null()) else {
            return Ok(None);
        };
        let wanted = wanted.to_array()?;
        let compare = make_comparator(sorted, &wanted, SortOptions::default())?;
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(middle, 0) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Some(true)),
            }
        }
        Ok(if self.has_null { None } else { Some(false) })
    }
}
