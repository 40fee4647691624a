//! Groups of intervals: those that are equal are one, however they are written.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
};

use super::call;
use super::intervals::{is_among, is_one, not_supported};
use crate::functions::{first_interval, span};

/// Lets a plan that groups by intervals group by what they are compared by. Of those that are equal the first is shown.
///
/// # Errors
/// Several groupings at once.
pub(super) fn by_spans(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(&input) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            grouped(Aggregate::try_new(input, columns, Vec::new())?)
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        other => Ok(other),
    }
}

fn has_interval(plan: &LogicalPlan) -> bool {
    let mut fields = plan.schema().fields().iter();
    fields.any(|field| matches!(field.data_type(), ArrowType::Interval(_)))
}

fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let below = Arc::clone(aggregate.input.schema());
    if let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() {
        let has_interval = sets.distinct_expr().into_iter().any(|own| is_one(own, &below));
        return match has_interval {
            true => Err(not_supported("several groupings of intervals")),
            false => Ok(LogicalPlan::Aggregate(aggregate)),
        };
    }
    if !is_among(&aggregate.group_expr, &below) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let (mut groups, mut firsts) = (Vec::new(), Vec::new());
    // Where each column of the old plan stands in the new one.
    let mut places = Vec::new();
    let count = aggregate.group_expr.len();
    for (at, group) in aggregate.group_expr.into_iter().enumerate() {
        if matches!(group.get_type(&below), Ok(ArrowType::Interval(_))) {
            places.push(count + aggregate.aggr_expr.len() + firsts.len());
            let first = AggregateFunction::new_udf(
                first_interval(),
                vec![group.clone().unalias()],
                false,
                None,
                Vec::new(),
                None,
            );
            firsts.push(Expr::AggregateFunction(first).alias(format!("first interval {at}")));
            groups.push(call(span(), vec![group.unalias()]));
        } else {
            places.push(at);
            groups.push(group);
        }
    }
    places.extend((0..aggregate.aggr_expr.len()).map(|at| count + at));
    let aggregates = aggregate.aggr_expr.into_iter().chain(firsts).collect();
    let new = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, groups, aggregates)?);
    let shown = places.into_iter().zip(aggregate.schema.iter()).map(|(place, (table, field))| {
        let column = Expr::Column(Column::from(new.schema().qualified_field(place)));
        column.alias_qualified(table.cloned(), field.name())
    });
    let shown: Vec<Expr> = shown.collect();
    LogicalPlanBuilder::from(new).project(shown)?.build()
}
