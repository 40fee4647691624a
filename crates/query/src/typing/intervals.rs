//! Operators of intervals, where DataFusion has none or others than PostgreSQL.

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Cast};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::call;
use crate::error::QueryError;
use crate::functions::{between, divided, interval_sum, span, times};

/// Plans an operator that has an interval on a side, or gives one.
pub(super) fn planned(expr: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    use BinaryOperator as Op;
    let (left, right) = (Kind::of(&expr.left, schema), Kind::of(&expr.right, schema));
    let RawBinaryExpr { op, left: one, right: other } = &expr;
    let (one, other) = (one.clone(), other.clone());
    let planned = match (left, op, right) {
        // Days between two dates are a number.
        (Kind::Timestamp, Op::Minus, Kind::Timestamp | Kind::Date)
        | (Kind::Date, Op::Minus, Kind::Timestamp) => {
            call(between(), vec![timestamp(one), timestamp(other)])
        }
        (Kind::Interval, Op::Multiply, Kind::Number) => call(times(), vec![one, float(other)]),
        (Kind::Number, Op::Multiply, Kind::Interval) => call(times(), vec![other, float(one)]),
        (Kind::Interval, Op::Divide, Kind::Number) => call(divided(), vec![one, float(other)]),
        (Kind::Interval, op, Kind::Interval) => match comparison(op) {
            Some(op) => binary(call(span(), vec![one]), op, call(span(), vec![other])),
            None => return PlannerResult::Original(expr),
        },
        _ => return PlannerResult::Original(expr),
    };
    PlannerResult::Planned(planned)
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

fn timestamp(expression: Expr) -> Expr {
    let timestamp = ArrowType::Timestamp(TimeUnit::Microsecond, None);
    Expr::Cast(Cast::new(Box::new(expression), timestamp))
}

fn float(expression: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), ArrowType::Float64))
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}
