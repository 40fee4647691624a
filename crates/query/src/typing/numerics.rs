//! Functions of `numeric` that are `numeric`, where DataFusion has those of `double precision` alone.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable};
use onrush::Decimal;

use super::call;
use super::operands::as_decimal;
use crate::functions::{Numeric, NumericFunction};
use crate::types::any_numeric;

/// Digits behind the point of results that depend on rows: sixteen that count, of all numbers from 0.0001 on.
const SCALE: i8 = 20;
/// Digits behind the point of a power with a whole exponent, where its base has no more.
const POWER_SCALE: i8 = 16;

/// The call of a function of numerics; none of another function, or of other arguments.
pub(super) fn of_numerics(known: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let (name, mut arguments) = (known.func.name(), known.args.clone());
    let function = match (name, arguments.len()) {
        ("exp", 1) => NumericFunction::Exponential,
        ("ln", 1) => NumericFunction::NaturalLogarithm,
        ("log" | "log10", 1) => {
            arguments.insert(0, Expr::Literal(ScalarValue::Int64(Some(10)), None));
            NumericFunction::Logarithm
        }
        ("log", 2) => NumericFunction::Logarithm,
        ("power" | "pow", 2) => NumericFunction::Power,
        ("sqrt", 1) => NumericFunction::SquareRoot,
        _ => return None,
    };
    let types = known.args.iter().map(|given| given.get_type(schema));
    let types = types.collect::<Result<Vec<_>, _>>().ok()?;
    // PostgreSQL has a logarithm to a base of numerics alone.
    let is_numeric = types.iter().any(ArrowType::is_decimal)
        || (name == "log" && types.len() == 2 && types.iter().any(ArrowType::is_integer));
    if !is_numeric || types.iter().any(ArrowType::is_floating) {
        return None;
    }
    let constants: Option<Vec<Numeric>> = arguments.iter().map(constant).collect();
    // What is wrong with constants is told when they are computed, which they may never be.
    if let Some((value, scale)) =
        constants.and_then(|given| function.of(&given).ok()?.constant().ok())
    {
        return Some(Expr::Literal(ScalarValue::Decimal128(Some(value), 38, scale), None));
    }
    let exponent = arguments.get(1).and_then(constant);
    let is_whole = exponent.is_some_and(|exponent| exponent.is_whole());
    let arguments: Option<Vec<Expr>> =
        arguments.iter().map(|given| operand(given, schema)).collect();
    let arguments = arguments?;
    let scales = arguments.iter().map(|given| match given.get_type(schema) {
        Ok(ArrowType::Decimal128(_, scale)) => scale,
        _ => 0,
    });
    let scale = match (function, is_whole) {
        (NumericFunction::Power, true) => scales.take(1).fold(POWER_SCALE, i8::max),
        _ => scales.fold(SCALE, i8::max),
    };
    Some(call(function.of_columns(scale), arguments))
}

fn operand(given: &Expr, schema: &DFSchema) -> Option<Expr> {
    let own = given.get_type(schema).ok()?;
    match (given, &own) {
        (_, ArrowType::Null) => Some(cast(given)),
        (Expr::Literal(ScalarValue::Utf8(_), _), _) => Some(cast(given)),
        _ => as_decimal(given, &own),
    }
}

fn cast(given: &Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(given.clone()), any_numeric()))
}

/// A constant with the digits that it is written with.
fn constant(given: &Expr) -> Option<Numeric> {
    match given {
        Expr::Literal(ScalarValue::Decimal128(Some(value), _, scale), _) => {
            Some(Numeric::new(*value, i32::from(*scale)))
        }
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => Some(Numeric::new(*value, 0)),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => Some(Numeric::new(*value, 0)),
        Expr::Literal(ScalarValue::Utf8(Some(written)), _) => {
            let written = written.trim();
            let read = written.parse().or_else(|_| Decimal::from_scientific(written));
            let read: Decimal = read.ok()?;
            Some(Numeric::new(read.mantissa(), i32::try_from(read.scale()).ok()?))
        }
        Expr::Negative(of) => constant(of).map(|of| of.negated()),
        Expr::Cast(cast) if *cast.field.data_type() == any_numeric() => constant(&cast.expr),
        _ => None,
    }
}
