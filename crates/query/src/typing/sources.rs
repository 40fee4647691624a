//! Where columns come from: tables as they are read, and rows of several sources that become columns of one type.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, TableScan, TableSource,
    Union,
};

use onrush::DataType;

use super::numerics;
use crate::numeric::{self, is_numeric};
use crate::table::StoredTable;
use crate::types::planned_field;

/// A table whose columns have the types of its rows.
pub(super) fn as_read(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::TableScan(scan) = &plan else { return Ok(plan) };
    let Ok(provider) = source_as_provider(&scan.source) else { return Ok(plan) };
    let own = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StoredTable>();
    match own.and_then(StoredTable::as_read) {
        Some(table) => of_source(scan, provider_as_source(Arc::new(table))),
        None => Ok(plan),
    }
}

/// The same scan of another source.
pub(crate) fn of_source(scan: &TableScan, source: Arc<dyn TableSource>) -> Result<LogicalPlan> {
    let built = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(scan.projection.clone())
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch);
    Ok(LogicalPlan::TableScan(built.build()?))
}

/// A node with the schema that its expressions have come to.
pub(super) fn of_own_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Values(values) => of_values(values),
        LogicalPlan::Union(union) => of_union(union),
        LogicalPlan::RecursiveQuery(query) => {
            let RecursiveQuery { name, static_term, recursive_term, is_distinct, .. } = query;
            let static_term = widened(static_term.as_ref().clone(), |_, own| is_numeric(own))?;
            let made = Arc::clone(static_term.schema());
            let recursive_term = widened(recursive_term.as_ref().clone(), |at, own| {
                *made.field(at).data_type() == numeric::ANY && (is_numeric(own) || own.is_integer())
            })?;
            LogicalPlanBuilder::from(static_term)
                .to_recursive_query(name, recursive_term, is_distinct)?
                .build()
        }
        other => other.recompute_schema(),
    }
}

/// VALUES whose columns are of the types that its values have come to.
fn of_values(mut values: datafusion::logical_expr::Values) -> Result<LogicalPlan> {
    let empty = DFSchema::empty();
    for at in 0..values.schema.fields().len() {
        let cells = || values.values.iter().map(|row| &row[at]);
        let types = cells().map(|cell| cell.get_type(&empty)).collect::<Result<Vec<_>>>()?;
        if !types.contains(&numeric::ANY) {
            continue;
        }
        for row in &mut values.values {
            // A whole number that was made a decimal beside others is one again.
            if let Expr::Cast(cast) = &row[at]
                && matches!(cast.field.data_type(), ArrowType::Decimal128(..))
                && cast.expr.get_type(&empty).is_ok_and(|own| own.is_integer())
            {
                row[at] = (*cast.expr).clone();
            }
            numerics::widen(&mut row[at], &empty)?;
        }
    }
    let is_other = |(value, field): (&Expr, &FieldRef)| {
        value.get_type(&empty).is_ok_and(|own| !own.is_null() && own != *field.data_type())
    };
    let fields = values.schema.fields();
    match values.values.iter().any(|row| row.iter().zip(fields).any(is_other)) {
        true => LogicalPlanBuilder::values(values.values)?.build(),
        false => Ok(LogicalPlan::Values(values)),
    }
}

/// A union whose columns are any `numeric` where they are numerics shown with other digits.
fn of_union(union: Union) -> Result<LogicalPlan> {
    let Union { inputs, schema } = union;
    let wide: Vec<bool> = (0..schema.fields().len())
        .map(|at| {
            let own = inputs.iter().map(|input| input.schema().fields().get(at));
            let types =
                own.map(|field| field.map_or(ArrowType::Null, |own| own.data_type().clone()));
            numerics::needs_widening(&types.collect::<Vec<_>>())
        })
        .collect();
    let is_other = |input: &Arc<LogicalPlan>| {
        let fields = input.schema().fields().iter().zip(schema.fields());
        let mut types = fields.map(|(own, made)| own.data_type() == made.data_type());
        types.any(|is_same| !is_same)
    };
    if !wide.contains(&true) && !inputs.iter().any(is_other) {
        return LogicalPlan::Union(Union { inputs, schema }).recompute_schema();
    }
    let inputs = inputs.into_iter().map(|input| {
        widened(input.as_ref().clone(), |at, _| wide.get(at) == Some(&true)).map(Arc::new)
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Rows some of whose columns are made any `numeric`.
fn widened(
    plan: LogicalPlan,
    is_wanted: impl Fn(usize, &ArrowType) -> bool,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let mut is_changed = false;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, (qualifier, field)) in schema.iter().enumerate() {
        let mut column = Expr::Column(Column::from((qualifier, field)));
        if is_wanted(at, field.data_type()) && *field.data_type() != numeric::ANY {
            is_changed = true;
            numerics::widen(&mut column, &schema)?;
            column = column.alias_qualified(qualifier.cloned(), field.name());
        }
        columns.push(column);
    }
    match is_changed {
        true => LogicalPlanBuilder::from(plan).project(columns)?.build(),
        false => Ok(plan),
    }
}

/// The columns of rows that DataFusion has made the decimals that the first rows have, as any `numeric`.
fn uncast(plan: LogicalPlan, wanted: &Schema) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut projection) = plan else { return Ok(plan) };
    for (column, wanted) in projection.expr.iter_mut().zip(wanted.fields()) {
        let cast = match column {
            Expr::Alias(alias) => &mut *alias.expr,
            other => other,
        };
        if let Expr::Cast(cast) = cast
            && *wanted.data_type() == numeric::ANY
            && matches!(cast.field.data_type(), ArrowType::Decimal128(..))
        {
            cast.field = Arc::new(planned_field("", DataType::Numeric(None).into(), true));
        }
    }
    Ok(LogicalPlan::Projection(projection))
}

/// A query that begins anew with its own rows: the table that those are in has the types of the rows that it begins
/// with.
pub(super) fn recursive(
    plan: LogicalPlan,
    typed: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::RecursiveQuery(mut query) = plan else { return Ok(Transformed::no(plan)) };
    let begun = typed(query.static_term.as_ref().clone())?;
    let fields = begun.schema().fields().iter().map(|field| match field.data_type() {
        own if is_numeric(own) => {
            Arc::new(Field::new(field.name(), numeric::ANY, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    let fields: Vec<FieldRef> = fields.collect();
    let read = query.static_term.schema().fields().iter();
    if read.zip(&fields).all(|(read, own)| read.data_type() == own.data_type()) {
        return Ok(Transformed::no(LogicalPlan::RecursiveQuery(query)));
    }
    let source =
        provider_as_source(Arc::new(CteWorkTable::new(&query.name, Arc::new(Schema::new(fields)))));
    let name = query.name.clone();
    let term = query.recursive_term.as_ref().clone().transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let is_own = source_as_provider(&scan.source).is_ok_and(|provider| {
            let own = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<CteWorkTable>();
            own.is_some_and(|table| table.name() == name)
        });
        if !is_own {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(of_source(scan, Arc::clone(&source))?))
    });
    query.recursive_term = Arc::new(uncast(term.data()?, &source.schema())?);
    Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)))
}
