//! Operators of intervals, where DataFusion has none or others than PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Cast};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use onrush::DataType;

use super::call;
use crate::error::QueryError;
use crate::functions::{between, divided, interval_sum, named, span, times};
use crate::types::{ColumnType, arrow_type};

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
        if Kind::of(expression, schema) == Kind::Interval {
            *expression = call(span(), vec![std::mem::take(expression)]);
        }
    }
}

/// Whether one of these is an interval.
pub(super) fn is_among(expressions: &[Expr], schema: &DFSchema) -> bool {
    expressions.iter().any(|expression| Kind::of(expression, schema) == Kind::Interval)
}

/// Aggregates that compute with intervals, by functions of their own.
///
/// # Errors
/// Those for which there are none.
pub(super) fn aggregate(mut call: AggregateFunction) -> Result<AggregateFunction> {
    call.func = match call.func.name() {
        "sum" => interval_sum(),
        "min" | "max" => {
            let message = "min and max of intervals are not supported".to_owned();
            return Err(QueryError::NotSupported { message }.into());
        }
        _ => call.func,
    };
    Ok(call)
}

/// What matters here of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interval,
    Timestamp,
    Date,
    Number,
    Other,
}

impl Kind {
    fn of(expression: &Expr, schema: &DFSchema) -> Kind {
        match expression.get_type(schema) {
            Ok(ArrowType::Interval(_)) => Kind::Interval,
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
