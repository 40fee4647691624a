//! Comparisons of any `numeric` by what its values are, whatever digits they are shown with, and of jsonb in
//! PostgreSQL's order: where values are ordered, grouped, joined or told apart, their keys stand in their place.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, InSubquery, Sort};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable, GroupingSet, LogicalPlan,
    LogicalPlanBuilder, Subquery, WindowFrame, WindowFrameBound, WindowFrameUnits, when,
};
use onrush::DataType;

use super::records::{check_alike, composite};
use super::{field_of, numerics};
use crate::error::QueryError;
use crate::functions::{
    ARRAY_CONTAINS, ARRAYS_OVERLAP, NUMERIC_KEY, has_numeric, is_cast_to_any, jsonb_key_of, key_of,
    record_key_of,
};
use crate::numeric::{self, is_numeric};
use crate::types::{ColumnType, column_type, field};

const JSONB: ColumnType = ColumnType::Stored(DataType::Jsonb);

/// Whether a type whose values are texts here has another order than texts.
fn is_keyed(own: ColumnType) -> bool {
    own == JSONB || matches!(own, ColumnType::Stored(DataType::Composite(_)))
}

fn is_jsonb(value: &Expr, schema: &DFSchema) -> bool {
    field_of(value, schema).is_some_and(|own| column_type(&own) == JSONB)
}

/// Whether values of an expression may be equal and not the same.
fn needs_key(value: &Expr, schema: &DFSchema) -> bool {
    is_jsonb(value, schema)
        || composite(value, schema).is_some()
        || value.get_type(schema).is_ok_and(|own| has_numeric(&own))
}

/// The key of a value, where its type needs one.
fn keyed(value: &mut Expr, schema: &DFSchema) {
    if is_jsonb(value, schema) {
        *value = jsonb_key_of(std::mem::take(value));
    } else if let Some(of) = composite(value, schema) {
        *value = record_key_of(std::mem::take(value), of);
    } else if needs_key(value, schema) {
        *value = key_of(std::mem::take(value));
    }
}

/// The keys of values that are compared with each other: beside jsonb all are jsonb, and beside a record all are
/// records.
fn keyed_together<'e>(
    values: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let mut values: Vec<&mut Expr> = values.into_iter().collect();
    if let Some(of) = values.iter().find_map(|value| composite(value, schema)) {
        for value in &mut values {
            let own = composite(value, schema).unwrap_or(of);
            check_alike(of, own)?;
            **value = record_key_of(std::mem::take(*value), own);
        }
        return Ok(());
    }
    let has_jsonb = values.iter().any(|value| is_jsonb(value, schema));
    for value in &mut values {
        match has_jsonb {
            true => **value = jsonb_key_of(std::mem::take(*value)),
            false => keyed(value, schema),
        }
    }
    Ok(())
}

/// An expression that compares, by keys.
pub(super) fn compared(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    match &expression {
        Expr::BinaryExpr(binary) => {
            refuse_intervals([&*binary.left, &*binary.right], schema)?;
        }
        Expr::InList(list) => refuse_intervals([&*list.expr], schema)?,
        Expr::Between(between) => refuse_intervals([&*between.expr], schema)?,
        Expr::WindowFunction(window) => refuse_intervals(&window.params.partition_by, schema)?,
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "nullif" | ARRAY_CONTAINS | ARRAYS_OVERLAP) =>
        {
            refuse_intervals(&call.args, schema)?;
        }
        _ => {}
    }
    Ok(match expression {
        Expr::BinaryExpr(mut binary) if binary.op.supports_propagation() => {
            keyed_together([&mut *binary.left, &mut *binary.right], schema)?;
            Expr::BinaryExpr(binary)
        }
        Expr::InList(mut list) => {
            keyed_together(list.list.iter_mut().chain([&mut *list.expr]), schema)?;
            Expr::InList(list)
        }
        Expr::Between(mut between) => {
            let parts = [&mut *between.expr, &mut *between.low, &mut *between.high];
            keyed_together(parts, schema)?;
            Expr::Between(between)
        }
        Expr::Case(mut case) if case.expr.is_some() => {
            let wanted = case.when_then_expr.iter_mut().map(|(wanted, _)| &mut **wanted);
            keyed_together(case.expr.as_deref_mut().into_iter().chain(wanted), schema)?;
            Expr::Case(case)
        }
        Expr::InSubquery(given) => {
            let inner = given.subquery.subquery.schema().field(0);
            if let Some(of) = composite(&given.expr, schema) {
                if let ColumnType::Stored(DataType::Composite(own)) = column_type(inner) {
                    check_alike(of, own)?;
                }
                return Ok(Expr::InSubquery(in_keys(given, |value| record_key_of(value, of))?));
            }
            if is_jsonb(&given.expr, schema) || column_type(inner) == JSONB {
                return Ok(Expr::InSubquery(in_keys(given, jsonb_key_of)?));
            }
            let (own, others) = (given.expr.get_type(schema)?, inner.data_type());
            if !has_numeric(&own) && !has_numeric(others) {
                return Ok(Expr::InSubquery(given));
            }
            if !is_numeric(&own) && !own.is_integer() {
                return Err(not_supported("IN (SELECT ...) of numeric and another type"));
            }
            Expr::InSubquery(in_keys(given, key_of)?)
        }
        Expr::ScalarFunction(mut call)
            if matches!(
                call.func.name(),
                "array_has"
                    | ARRAY_CONTAINS
                    | ARRAYS_OVERLAP
                    | "array_position"
                    | "array_positions"
            ) =>
        {
            let needs = |given: &Expr| given.get_type(schema).is_ok_and(|own| has_numeric(&own));
            if call.args.iter().any(needs) {
                call.args
                    .iter_mut()
                    .take(2)
                    .for_each(|given| *given = key_of(std::mem::take(given)));
            }
            Expr::ScalarFunction(call)
        }
        Expr::ScalarFunction(mut call) if call.func.name() == "nullif" => {
            match call.args.as_mut_slice() {
                [value, other]
                    if let Some(of) = composite(value, schema).or(composite(other, schema)) =>
                {
                    let (value, other) = (std::mem::take(value), std::mem::take(other));
                    let others = composite(&other, schema).unwrap_or(of);
                    let own = composite(&value, schema).unwrap_or(of);
                    check_alike(own, others)?;
                    let is_it = record_key_of(value.clone(), own).eq(record_key_of(other, others));
                    let null = Expr::Literal(ScalarValue::Utf8(None), None);
                    let column = ColumnType::Stored(DataType::Composite(own));
                    noted(when(is_it, null).otherwise(value)?, column)
                }
                [value, other] if is_jsonb(value, schema) => {
                    let value = std::mem::take(value);
                    let other = jsonb_key_of(std::mem::take(other));
                    let is_it = jsonb_key_of(value.clone()).eq(other);
                    let null = Expr::Literal(ScalarValue::Utf8(None), None);
                    noted(when(is_it, null).otherwise(value)?, JSONB)
                }
                [value, other] if value.get_type(schema).is_ok_and(|own| has_numeric(&own)) => {
                    let value = std::mem::take(value);
                    let is_it = key_of(value.clone()).eq(key_of(std::mem::take(other)));
                    let null = Expr::Literal(ScalarValue::LargeBinary(None), None);
                    when(is_it, null).otherwise(value)?
                }
                _ => Expr::ScalarFunction(call),
            }
        }
        Expr::ScalarFunction(call)
            if matches!(
                call.func.name(),
                "array_remove"
                    | "array_remove_all"
                    | "array_replace"
                    | "array_replace_all"
                    | "array_distinct"
                    | "array_union"
                    | "array_intersect"
                    | "array_except"
            ) && call
                .args
                .iter()
                .any(|given| given.get_type(schema).is_ok_and(|own| has_numeric(&own))) =>
        {
            return Err(not_supported(&format!("{} of numeric", call.func.name())));
        }
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "greatest" | "least")
                && call.args.iter().any(|given| composite(given, schema).is_some()) =>
        {
            return Err(not_supported(&format!("{} of records", call.func.name())));
        }
        Expr::AggregateFunction(aggregate)
            if matches!(aggregate.func.name(), "min" | "max" | "mode" | "percentile_disc")
                && aggregate.params.args.iter().any(|it| composite(it, schema).is_some()) =>
        {
            return Err(not_supported(&format!("{} of records", aggregate.func.name())));
        }
        Expr::AggregateFunction(mut aggregate) => {
            let name = aggregate.func.name().to_owned();
            aggregate.params.order_by.iter_mut().for_each(|sort| keyed(&mut sort.expr, schema));
            if aggregate.params.distinct && !matches!(name.as_str(), "min" | "max") {
                distinct(&name, &mut aggregate.params.args, schema)?;
            }
            Expr::AggregateFunction(aggregate)
        }
        Expr::WindowFunction(mut window) => {
            let name = window.fun.name().to_owned();
            window.params.partition_by.iter_mut().for_each(|part| keyed(part, schema));
            let needs = |sort: &Sort| needs_key(&sort.expr, schema);
            if window.params.order_by.iter().any(needs) {
                window.params.window_frame = by_peers(&window.params.window_frame)?;
            }
            window.params.order_by.iter_mut().for_each(|sort| keyed(&mut sort.expr, schema));
            if window.params.distinct && !matches!(name.as_str(), "min" | "max") {
                distinct(&name, &mut window.params.args, schema)?;
            }
            Expr::WindowFunction(window)
        }
        other => other,
    })
}

/// `value IN (SELECT ...)`, by the keys of both.
fn in_keys(given: InSubquery, key_of: impl Fn(Expr) -> Expr) -> Result<InSubquery> {
    let InSubquery { mut expr, subquery, negated } = given;
    let inner = subquery.subquery.schema();
    let column = Expr::Column(Column::from(inner.qualified_field(0)));
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
        .project([key_of(column).alias(inner.field(0).name())])?
        .build()?;
    *expr = key_of(std::mem::take(&mut *expr));
    let subquery = Subquery { subquery: Arc::new(plan), ..subquery };
    Ok(InSubquery { expr, subquery, negated })
}

/// The same value, noted as one of a type.
fn noted(value: Expr, own: ColumnType) -> Expr {
    let noted = Arc::new(field("", own, true));
    Expr::Cast(Cast::new_from_field(Box::new(value), noted))
}

fn not_supported(what: &str) -> datafusion::error::DataFusionError {
    QueryError::NotSupported { message: format!("{what} is not supported") }.into()
}

/// A frame of a range up to the rows that are equal: those of one group of equal rows. Keys have no distance.
fn by_peers(frame: &WindowFrame) -> Result<WindowFrame> {
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            !distance.is_null()
        }
        WindowFrameBound::CurrentRow => false,
    };
    if frame.units != WindowFrameUnits::Range {
        return Ok(frame.clone());
    }
    if is_distance(&frame.start_bound) || is_distance(&frame.end_bound) {
        return Err(not_supported("RANGE with a distance of numeric"));
    }
    let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
    Ok(WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end))
}

/// What an aggregate is given, each value once.
fn distinct(name: &str, arguments: &mut [Expr], schema: &DFSchema) -> Result<()> {
    let needs = |given: &Expr| given.get_type(schema).is_ok_and(|own| has_numeric(&own));
    match name {
        "count" => arguments.iter_mut().for_each(|given| keyed(given, schema)),
        _ if arguments.iter().any(needs) => {
            return Err(not_supported(&format!("{name}(DISTINCT ...) of numeric")));
        }
        _ => {}
    }
    Ok(())
}

/// A node of a plan that orders, groups or joins, by keys.
pub(super) fn node(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            refuse_intervals(sort.expr.iter().map(|sort| &sort.expr), &schema)?;
            sort.expr.iter_mut().for_each(|sort| keyed(&mut sort.expr, &schema));
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
            for (one, other) in &mut join.on {
                if let (Some(own), Some(others)) = (composite(one, &left), composite(other, &right))
                {
                    check_alike(own, others)?;
                    *one = record_key_of(std::mem::take(one), own);
                    *other = record_key_of(std::mem::take(other), others);
                    continue;
                }
                if is_jsonb(one, &left) || is_jsonb(other, &right) {
                    *one = jsonb_key_of(std::mem::take(one));
                    *other = jsonb_key_of(std::mem::take(other));
                    continue;
                }
                let (own, others) = (one.get_type(&left)?, other.get_type(&right)?);
                // Decimals and whole numbers that have one type are joined as they are, and floats as floats.
                if own.is_floating() || others.is_floating() {
                    for (side, own) in [(&mut *one, &own), (&mut *other, &others)] {
                        let number = std::mem::take(side);
                        *side = match own {
                            _ if *own == numeric::ANY => numerics::as_float(number),
                            _ if own.is_decimal() => {
                                Expr::Cast(Cast::new(Box::new(number), ArrowType::Float64))
                            }
                            _ => number,
                        };
                    }
                } else if has_numeric(&own)
                    || has_numeric(&others)
                    || !numerics::are_joined(&own, &others)
                {
                    *one = key_of(std::mem::take(one));
                    *other = key_of(std::mem::take(other));
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Distinct(Distinct::All(input)) if has_intervals(input.schema()) => {
            Err(not_supported("telling arrays of intervals apart"))
        }
        LogicalPlan::Distinct(Distinct::All(input))
            if input
                .schema()
                .fields()
                .iter()
                .any(|field| has_numeric(field.data_type()) || is_keyed(column_type(field))) =>
        {
            let columns = input.schema().iter().map(|field| Expr::Column(Column::from(field)));
            let groups = columns.collect();
            grouped(Aggregate::try_new(input, groups, Vec::new())?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = Arc::clone(on.input.schema());
            refuse_intervals(&on.on_expr, &schema)?;
            on.on_expr.iter_mut().for_each(|part| keyed(part, &schema));
            for sort in on.sort_expr.iter_mut().flatten() {
                keyed(&mut sort.expr, &schema);
            }
            let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = on;
            let on = DistinctOn::try_new(on_expr, select_expr, sort_expr, input)?;
            Ok(LogicalPlan::Distinct(Distinct::On(on)))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        other => Ok(other),
    }
}

fn has_intervals(schema: &DFSchema) -> bool {
    let of_intervals = ColumnType::Array(DataType::Interval);
    schema.fields().iter().any(|field| column_type(field) == of_intervals)
}

/// Arrays of intervals are not ordered or told apart: two may be equal whose intervals are written otherwise.
fn refuse_intervals<'e>(
    values: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let of_intervals = ColumnType::Array(DataType::Interval);
    let is_one =
        |value: &Expr| field_of(value, schema).is_some_and(|own| column_type(&own) == of_intervals);
    match values.into_iter().any(is_one) {
        true => Err(not_supported("comparing and ordering arrays of intervals")),
        false => Ok(()),
    }
}

/// Rows are grouped by the key; the number of a group is that of its first row.
fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = Arc::clone(aggregate.input.schema());
    let needs = |group: &Expr| needs_key(group, &schema);
    refuse_intervals(&aggregate.group_expr, &schema)?;
    let groups = datafusion::logical_expr::utils::grouping_set_to_exprlist(&aggregate.group_expr)?;
    let groups: Vec<Expr> = groups.into_iter().cloned().collect();
    if !groups.iter().any(needs) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let key_name = |at: usize| format!("__key{at}");
    let at_of = |group: &Expr| groups.iter().position(|other| other == group);
    let keyed_group = |group: &Expr| match at_of(group).filter(|_| needs(group)) {
        Some(at) => {
            let mut key = group.clone();
            keyed(&mut key, &schema);
            key.alias(key_name(at))
        }
        None => group.clone(),
    };
    let group_expr: Vec<Expr> = aggregate
        .group_expr
        .iter()
        .map(|group| match group {
            Expr::GroupingSet(GroupingSet::Rollup(groups)) => {
                Expr::GroupingSet(GroupingSet::Rollup(groups.iter().map(keyed_group).collect()))
            }
            Expr::GroupingSet(GroupingSet::Cube(groups)) => {
                Expr::GroupingSet(GroupingSet::Cube(groups.iter().map(keyed_group).collect()))
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                let set = |set: &Vec<Expr>| set.iter().map(keyed_group).collect();
                Expr::GroupingSet(GroupingSet::GroupingSets(sets.iter().map(set).collect()))
            }
            other => keyed_group(other),
        })
        .collect();
    let mut aggr_expr = aggregate.aggr_expr.clone();
    for (at, group) in groups.iter().enumerate().filter(|(_, group)| needs(group)) {
        let first = AggregateFunction::new_udf(
            first_value_udaf(),
            vec![group.clone()],
            false,
            None,
            Vec::new(),
            None,
        );
        aggr_expr.push(Expr::AggregateFunction(first).alias(format!("__first{at}")));
    }
    let own = Aggregate::try_new(aggregate.input, group_expr, aggr_expr)?;
    let made = Arc::clone(&own.schema);
    let mut columns = Vec::new();
    for (place, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let column = |at: usize| Expr::Column(Column::from(made.qualified_field(at)));
        let value = match groups.get(place).filter(|group| needs(group)) {
            Some(group) => {
                let first = Expr::Column(Column::new_unqualified(format!("__first{place}")));
                let is_there = Expr::Column(Column::new_unqualified(key_name(place))).is_not_null();
                let value = when(is_there, first).end()?;
                match field_of(group, &schema).map(|own| column_type(&own)) {
                    Some(own) if is_keyed(own) => noted(value, own),
                    _ => value,
                }
            }
            None => column(place),
        };
        columns.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(own)).project(columns)?.build()
}

/// A plan whose parameters have become constants: a decimal that is compared with some is compared as it is, which
/// finds rows by keys and indexes.
pub(crate) fn with_constants(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let schema = datafusion::logical_expr::utils::merge_schema(&node.inputs());
        crate::functions::rewrite(node, |inner| Ok(as_decimals(inner, &schema)))
    })
    .data()
}

fn as_decimals(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = expression.clone();
    let parts: Vec<&mut Expr> = match &mut changed {
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => {
            vec![&mut *binary.left, &mut *binary.right]
        }
        Expr::Between(between) => {
            vec![&mut *between.expr, &mut *between.low, &mut *between.high]
        }
        Expr::InList(list) => std::iter::once(&mut *list.expr).chain(&mut list.list).collect(),
        _ => return Transformed::no(expression),
    };
    let own = parts.iter().filter_map(|part| decimal_of(part)).next();
    let Some(own) = own.and_then(|own| own.get_type(schema).ok()) else {
        return Transformed::no(expression);
    };
    for part in parts {
        let decimal = match decimal_of(part) {
            Some(decimal) => Some(decimal.clone()),
            None => inside_of_key(part).and_then(|constant| numerics::narrowed(constant, &own)),
        };
        match decimal {
            Some(decimal) => *part = decimal,
            None => return Transformed::no(expression),
        }
    }
    Transformed::yes(changed)
}

fn inside_of_key(value: &Expr) -> Option<&Expr> {
    match value {
        Expr::ScalarFunction(call) if call.func.name() == NUMERIC_KEY => call.args.first(),
        _ => None,
    }
}

/// The decimal of which this is the key, by way of any `numeric`.
fn decimal_of(value: &Expr) -> Option<&Expr> {
    match inside_of_key(value)? {
        Expr::ScalarFunction(call) if is_cast_to_any(call) => call.args.first(),
        _ => None,
    }
}
