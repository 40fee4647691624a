//! Operators of intervals, where DataFusion has none or others than PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Cast, InSubquery, ScalarFunction, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlanBuilder, Operator, ScalarUDF, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, when,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use onrush::DataType;

use super::call;
use crate::error::QueryError;
use crate::functions::{
    between, date_at_time, date_with_time, divided, extreme_interval, in_reach, interval_aggregate,
    interval_of_time, named, span, time_as, time_of_interval, time_tz_moved, times, type_name,
};
use crate::interval::parse_interval;
use crate::types::{ColumnType, TIME_TZ_BYTES, arrow_type, column_type};

/// Plans an operator that has an interval on a side, or gives one.
pub(super) fn planned(
    expr: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    use BinaryOperator as Op;
    let (left, right) = (Kind::of(&expr.left, schema), Kind::of(&expr.right, schema));
    let RawBinaryExpr { op, left: one, right: other } = &expr;
    let (one, other) = (one.clone(), other.clone());
    let planned = match (left, op, right) {
        // Days between two dates are a number.
        (Kind::Timestamp, Op::Minus, Kind::Timestamp | Kind::Date)
        | (Kind::Date, Op::Minus, Kind::Timestamp) => {
            let [one, other] = in_utc([one, other], schema)?;
            call(between(), vec![one, other])
        }
        (Kind::TimeTz, Op::Plus | Op::Minus, Kind::Interval) => {
            call(time_tz_moved(*op == Op::Minus), vec![one, other])
        }
        (Kind::Interval, Op::Plus, Kind::TimeTz) => call(time_tz_moved(false), vec![other, one]),
        (Kind::Date, Op::Plus, Kind::TimeTz) => call(date_at_time(), vec![one, other]),
        (Kind::TimeTz, Op::Plus, Kind::Date) => call(date_at_time(), vec![other, one]),
        (Kind::TimeTz, Op::Plus, Kind::TimeTz) => {
            let name = "time with time zone";
            let message = format!("operator does not exist: {name} + {name}");
            return Err(QueryError::refused("42883", message).into());
        }
        (Kind::Date, Op::Plus, Kind::Time) => call(date_with_time(), vec![one, other]),
        (Kind::Time, Op::Plus, Kind::Date) => call(date_with_time(), vec![other, one]),
        (Kind::Time, Op::Plus, Kind::Time) => {
            let name = "time without time zone";
            let message = format!("operator is not unique: {name} + {name}");
            return Err(QueryError::refused("42725", message).into());
        }
        (Kind::Interval, Op::Multiply, Kind::Number) => call(times(), vec![one, float(other)]),
        (Kind::Number, Op::Multiply, Kind::Interval) => call(times(), vec![other, float(one)]),
        (Kind::Interval, Op::Divide, Kind::Number) => call(divided(), vec![one, float(other)]),
        (Kind::Interval, op, Kind::Interval) => match comparison(op) {
            Some(op) => binary(call(span(), vec![one]), op, call(span(), vec![other])),
            None => return Ok(PlannerResult::Original(expr)),
        },
        _ => return Ok(PlannerResult::Original(expr)),
    };
    Ok(PlannerResult::Planned(planned))
}

/// Intervals that are compared, as what they are compared by.
pub(super) fn as_spans<'e>(compared: impl IntoIterator<Item = &'e mut Expr>, schema: &DFSchema) {
    for expression in compared {
        if is_one(expression, schema) {
            *expression = call(span(), vec![std::mem::take(expression)]);
        }
    }
}

/// Whether one of these is an interval.
pub(super) fn is_among(expressions: &[Expr], schema: &DFSchema) -> bool {
    expressions.iter().any(|expression| is_one(expression, schema))
}

pub(super) fn is_one(expression: &Expr, schema: &DFSchema) -> bool {
    Kind::of(expression, schema) == Kind::Interval
}

/// Aggregates that compute with intervals, by functions of their own.
///
/// # Errors
/// DISTINCT, but of a count.
pub(super) fn aggregate(
    mut call: AggregateFunction,
    schema: &DFSchema,
) -> Result<AggregateFunction> {
    match call.func.name() {
        "count" if call.params.distinct => as_spans(&mut call.params.args, schema),
        "min" | "max" => call.params.distinct = false,
        name if call.params.distinct => {
            return Err(not_supported(&format!("{name} of intervals with DISTINCT")));
        }
        _ => {}
    }
    if let Some(own) = interval_aggregate(call.func.name()) {
        call.func = own;
    }
    Ok(call)
}

/// A window of intervals, or by them.
///
/// # Errors
/// A distance that values of what the window is ordered by do not have (`0A000`), or one below zero (`22013`).
pub(super) fn window(window: &mut WindowFunction, schema: &DFSchema) -> Result<()> {
    let WindowFunctionParams { args, partition_by, order_by, window_frame, .. } =
        &mut window.params;
    if let [sort] = order_by.as_slice() {
        check_distances(&sort.expr, window_frame, schema)?;
    }
    as_spans(partition_by, schema);
    as_spans(order_by.iter_mut().map(|sort| &mut sort.expr), schema);
    if distances(window_frame).next().is_some() {
        for sort in order_by.iter_mut() {
            if matches!(Kind::of(&sort.expr, schema), Kind::Timestamp | Kind::Date) {
                sort.expr = call(in_reach(), vec![std::mem::take(&mut sort.expr)]);
            }
        }
    }
    if is_among(args, schema)
        && let WindowFunctionDefinition::AggregateUDF(function) = &window.fun
        && let Some(own) = interval_aggregate(function.name())
    {
        window.fun = WindowFunctionDefinition::AggregateUDF(own);
    }
    Ok(())
}

/// Refuses distances that there are none of between values of a type.
fn check_distances(ordered: &Expr, frame: &WindowFrame, schema: &DFSchema) -> Result<()> {
    for distance in distances(frame) {
        let written = match distance {
            ScalarValue::Utf8(Some(written)) => written.clone(),
            other => other.to_string(),
        };
        let is_number = written.parse::<f64>().is_ok();
        let beside = match Kind::of(ordered, schema) {
            Kind::Number => continue,
            Kind::Other => "",
            _ if is_number => " and offset type integer",
            _ if parse_interval(&written)?.span_micros() < 0 => {
                let message = "invalid preceding or following size in window function";
                return Err(QueryError::refused("22013", message).into());
            }
            _ => continue,
        };
        let (_, own) = ordered.to_field(schema)?;
        let own = type_name(column_type(&own));
        let what = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type";
        return Err(QueryError::refused("0A000", format!("{what} {own}{beside}")).into());
    }
    Ok(())
}

/// How far away a frame ends, where it ends where a value is so far away.
fn distances(frame: &WindowFrame) -> impl Iterator<Item = &ScalarValue> {
    let is_range = frame.units == WindowFrameUnits::Range;
    let bounds = [&frame.start_bound, &frame.end_bound].into_iter().filter(move |_| is_range);
    let distances = bounds.filter_map(|bound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            Some(distance)
        }
        WindowFrameBound::CurrentRow => None,
    });
    distances.filter(|distance| !distance.is_null())
}

/// `interval IN (SELECT ...)`.
pub(super) fn in_subquery(mut subquery: InSubquery, schema: &DFSchema) -> Result<Expr> {
    if is_one(&subquery.expr, schema) {
        as_spans([&mut *subquery.expr], schema);
        let plan = &subquery.subquery.subquery;
        let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
        let spans =
            LogicalPlanBuilder::from(Arc::clone(plan)).project([call(span(), vec![column])]);
        subquery.subquery.subquery = Arc::new(spans?.build()?);
    }
    Ok(Expr::InSubquery(subquery))
}

/// `greatest` and `least`.
pub(super) fn extreme(mut function: ScalarFunction) -> Expr {
    function.func = extreme_interval(function.func.name() == "greatest");
    Expr::ScalarFunction(function)
}

/// `nullif` compares.
pub(super) fn null_if(function: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    match function.args.as_slice() {
        [one, other] if is_one(one, schema) && is_one(other, schema) => {
            let spans = [one, other].map(|interval| call(span(), vec![interval.clone()]));
            let [left, right] = spans;
            when(left.eq(right), Expr::Literal(ScalarValue::Null, None)).otherwise(one.clone())
        }
        _ => Ok(Expr::ScalarFunction(function)),
    }
}

/// The function that casts between intervals and times of day.
pub(super) fn cast(from: &ArrowType, to: &ArrowType) -> Option<Arc<ScalarUDF>> {
    match (from, to) {
        (ArrowType::Interval(_), ArrowType::Time64(_)) => Some(time_of_interval()),
        (ArrowType::Time64(_), ArrowType::Interval(_)) => Some(interval_of_time()),
        (ArrowType::FixedSizeBinary(TIME_TZ_BYTES), ArrowType::Time64(_)) => {
            Some(time_as(DataType::Time))
        }
        (
            ArrowType::Time64(_) | ArrowType::Timestamp(_, Some(_)),
            ArrowType::FixedSizeBinary(TIME_TZ_BYTES),
        ) => Some(time_as(DataType::TimeTz)),
        _ => None,
    }
}

pub(super) fn not_supported(what: &str) -> DataFusionError {
    QueryError::NotSupported { message: format!("{what} is not supported") }.into()
}

/// What matters here of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interval,
    TimeTz,
    Time,
    Timestamp,
    Date,
    Number,
    Other,
}

impl Kind {
    fn of(expression: &Expr, schema: &DFSchema) -> Kind {
        match expression.get_type(schema) {
            Ok(ArrowType::Interval(_)) => Kind::Interval,
            Ok(ArrowType::Time64(_)) => Kind::Time,
            Ok(ArrowType::FixedSizeBinary(TIME_TZ_BYTES)) => Kind::TimeTz,
            Ok(ArrowType::Timestamp(..)) => Kind::Timestamp,
            Ok(ArrowType::Date32) => Kind::Date,
            Ok(other) if other.is_numeric() => Kind::Number,
            _ => Kind::Other,
        }
    }
}

fn comparison(operator: &BinaryOperator) -> Option<Operator> {
    Some(match operator {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// Timestamps without a zone; if there is one with a zone, both as clocks in UTC show them.
fn in_utc(both: [Expr; 2], schema: &DFSchema) -> Result<[Expr; 2]> {
    let has_zone =
        |one: &Expr| matches!(one.get_type(schema), Ok(ArrowType::Timestamp(_, Some(_))));
    let is_with_zone = both.iter().any(has_zone);
    let to = match is_with_zone {
        true => arrow_type(ColumnType::Stored(DataType::TimestampTz)),
        false => ArrowType::Timestamp(TimeUnit::Microsecond, None),
    };
    let at_zone = named("timezone")?;
    Ok(both.map(|one| {
        let one = match has_zone(&one) {
            true => one,
            false => Expr::Cast(Cast::new(Box::new(one), to.clone())),
        };
        let utc = Expr::Literal(ScalarValue::from("UTC"), None);
        if is_with_zone { call(Arc::clone(&at_zone), vec![utc, one]) } else { one }
    }))
}

fn float(expression: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), ArrowType::Float64))
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}
