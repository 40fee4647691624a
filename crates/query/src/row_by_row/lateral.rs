//! Rows of FROM that depend on the rows in front of them, and that no join can stand for: each row in front gets an
//! array of them, which is taken apart.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ListArray, StructArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{
    Column, Result, ScalarValue, TableReference, UnnestOptions, internal_err,
};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{
    Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery, col,
};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use super::{Tells, call_of, has_calls_of_outer, is_lateral};

const ROWS: &str = "__lateral_rows";

/// A plan of the rows of a join whose right side depends on the rows of the left one; none if it does not, or if
/// DataFusion has a join for it.
pub(super) fn rows(join: &Join) -> Result<Option<LogicalPlan>> {
    let is_kept = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        _ => return Ok(None),
    };
    let Some((subquery, alias)) = lateral_side(&join.right) else { return Ok(None) };
    let rows = &subquery.subquery;
    if rows.all_out_ref_exprs().is_empty() || is_joined(rows)? || !join.on.is_empty() {
        return Ok(None);
    }
    let left = join.left.schema();
    let mut inner = LogicalPlanBuilder::from(rows.as_ref().clone());
    if let Some(alias) = alias {
        inner = inner.alias(alias)?;
    }
    if let Some(condition) = &join.filter {
        let of_left = condition.clone().transform_up(|inner| match &inner {
            Expr::Column(column) if left.has_column(column) => {
                let (_, field) = left.qualified_field_from_column(column)?;
                let reference = Expr::OuterReferenceColumn(Arc::clone(field), column.clone());
                Ok(Transformed::yes(reference))
            }
            _ => Ok(Transformed::no(inner)),
        });
        inner = inner.filter(of_left.data()?)?;
    }
    let inner = Arc::new(inner.build()?);
    let right = join.right.schema();
    let field = |(at, field): (usize, &Arc<Field>)| {
        field.as_ref().clone().with_name(format!("c{at}")).with_nullable(true)
    };
    let fields: Fields = right.fields().iter().enumerate().map(field).collect();
    let item = Field::new_list_field(ArrowType::Struct(fields.clone()), true);
    let returns = Field::new(ROWS, ArrowType::List(Arc::new(item)), true);
    let call = call_of(&inner, Tells::Rows { is_kept }, returns, left, None)?;
    let of_left: Vec<Expr> = left.columns().into_iter().map(Expr::Column).collect();
    let with_rows = of_left.iter().cloned().chain([call.alias(ROWS)]);
    let part =
        |(field, (qualifier, own)): (&Arc<Field>, (Option<&TableReference>, &Arc<Field>))| {
            get_field(col(ROWS), field.name()).alias_qualified(qualifier.cloned(), own.name())
        };
    let parts = fields.iter().zip(right.iter()).map(part);
    let options = UnnestOptions::new().with_preserve_nulls(is_kept);
    let plan = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .project(with_rows)?
        .unnest_column_with_options(Column::from_name(ROWS), options)?
        .project(of_left.into_iter().chain(parts))?;
    Ok(Some(plan.build()?))
}

/// The side of a join that depends on the other one, and what it is called.
fn lateral_side(side: &LogicalPlan) -> Option<(&Subquery, Option<TableReference>)> {
    match side {
        LogicalPlan::Subquery(subquery) => Some((subquery, None)),
        LogicalPlan::SubqueryAlias(aliased) => match &*aliased.input {
            LogicalPlan::Subquery(subquery) => Some((subquery, Some(aliased.alias.clone()))),
            _ => None,
        },
        _ => None,
    }
}

/// Whether DataFusion makes a join of the rows.
fn is_joined(rows: &LogicalPlan) -> Result<bool> {
    // A call is made of a row, not of what rows are joined by.
    if rows.exists(|node| Ok(is_lateral(node)))? || has_calls_of_outer(rows)? {
        return Ok(false);
    }
    let mut pulled = PullUpCorrelatedExpr::new().with_need_handle_count_bug(true);
    let is_refused = rows.clone().rewrite(&mut pulled).is_err();
    Ok(!is_refused && pulled.can_pull_up && pulled.pull_up_having_expr.is_none())
}

/// The rows of batches as one value of an array type.
pub(super) fn array_of(batches: &[RecordBatch], array: &ArrowType) -> Result<ScalarValue> {
    let ArrowType::List(item) = array else { return internal_err!("{array} is no array") };
    let ArrowType::Struct(fields) = item.data_type() else {
        return internal_err!("{array} is no array of rows");
    };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let parts: Vec<&dyn Array> =
            batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        columns.push(match parts.is_empty() {
            true => new_empty_array(field.data_type()),
            false => concat(&parts)?,
        });
    }
    let rows_of = Arc::new(StructArray::try_new(fields.clone(), columns, None)?);
    let offsets = OffsetBuffer::from_lengths([rows]);
    Ok(ScalarValue::List(Arc::new(ListArray::try_new(Arc::clone(item), offsets, rows_of, None)?)))
}
