//! Functions that DataFusion has otherwise than PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::math;
use datafusion::functions::unicode::rpad;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, WindowFunction};
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, WindowFunctionDefinition};
use onrush::DataType;

use super::{intervals, numerics};

use crate::error::QueryError;
use crate::functions::{
    LOGARITHM, POSITIVE, bigint_as_numeric, endless_extract, in_common_years, named,
    numeric_average, numeric_deviation, octet_length, real_deviation, real_sum, round_to_even,
    text_function, timestamp_series,
};
use crate::interval::{of_arrow, parse_interval};
use crate::numeric::is_numeric;
use crate::types::{ColumnType, arrow_type, column_type};

/// A logarithm of numbers above zero; of others DataFusion makes what is no number.
pub(super) fn logarithm(mut call: ScalarFunction) -> Result<Expr> {
    let positive = named(POSITIVE)?;
    // By way of another base what is 3 would be a little less.
    if call.func.name() == "log" && call.args.len() == 1 {
        call.func = math::log10();
    }
    if call.func.name() == "log" {
        call.func = named(LOGARITHM)?;
    }
    for given in &mut call.args {
        let number = vec![std::mem::take(given)];
        *given = Expr::ScalarFunction(ScalarFunction::new_udf(positive.clone(), number));
    }
    Ok(Expr::ScalarFunction(call))
}

/// `round(double precision)`.
pub(super) fn round(call: ScalarFunction, schema: &DFSchema) -> Expr {
    let is_float = |of: &Expr| of.get_type(schema).is_ok_and(|own| own.is_floating());
    let is_of_float = matches!(call.args.as_slice(), [of] if is_float(of));
    let func = if is_of_float { round_to_even() } else { call.func };
    Expr::ScalarFunction(ScalarFunction { func, args: call.args })
}

/// A series from one `integer` to another is one of `integer`s.
pub(super) fn series(mut call: ScalarFunction, schema: &DFSchema) -> Expr {
    if let [first, last, step] = call.args.as_mut_slice()
        && intervals::is_one(step, schema)
    {
        let of = |bound: &Expr| bound.get_type(schema).ok();
        let is_local = |own: &Option<ArrowType>| matches!(own, Some(ArrowType::Timestamp(_, None)));
        // Between dates there are timestamps with a zone.
        let wanted = match is_local(&of(first)) || is_local(&of(last)) {
            true => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            false => arrow_type(ColumnType::Stored(DataType::TimestampTz)),
        };
        for bound in [first, last] {
            if of(bound).is_some_and(|own| own != wanted) {
                *bound = Expr::Cast(Cast::new(Box::new(std::mem::take(bound)), wanted.clone()));
            }
        }
        call.func = timestamp_series(wanted);
        return Expr::ScalarFunction(call);
    }
    let is_small =
        |bound: &Expr| matches!(bound.get_type(schema), Ok(ArrowType::Int32 | ArrowType::Int16));
    let are_small = call.args.iter().all(is_small);
    let rows = Expr::ScalarFunction(call);
    if !are_small {
        return rows;
    }
    let integers = ArrowType::List(Arc::new(Field::new_list_field(ArrowType::Int32, true)));
    Expr::Cast(Cast::new(Box::new(rows), integers))
}

/// `extract` of what may be infinite, and `array_to_string`, which writes the elements as DataFusion does.
pub(super) fn of_timestamps(mut call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    if call.func.name() == "array_to_string" {
        if let Some(array) = call.args.first_mut()
            && array.get_type(schema).is_ok_and(|own| is_array_of_timestamps(&own))
        {
            *array = super::call(in_common_years(), vec![std::mem::take(array)]);
        }
        return Ok(Expr::ScalarFunction(call));
    }
    if let [part, of] = call.args.as_slice()
        && let Ok(of) = of.get_type(schema)
        && let Some(endless) = endless_extract(part, &of)?
    {
        call.func = endless;
    }
    Ok(Expr::ScalarFunction(call))
}

/// Whether a type is that of arrays of dates or timestamps.
fn is_array_of_timestamps(arrow: &ArrowType) -> bool {
    let ArrowType::List(element) = arrow else { return false };
    matches!(element.data_type(), ArrowType::Date32 | ArrowType::Timestamp(..))
}

/// Whether PostgreSQL's function gives an `integer`, or an array of them, where DataFusion's gives more.
pub(super) fn counts_as_integer(function: &str) -> bool {
    matches!(
        function,
        "array_length" | "array_ndims" | "array_position" | "array_positions" | "cardinality"
    )
}

/// A call whose numbers are `integer`s.
pub(super) fn as_integers(call: ScalarFunction) -> Expr {
    let own = match call.func.name() {
        "array_positions" => {
            ArrowType::List(Arc::new(Field::new_list_field(ArrowType::Int32, true)))
        }
        _ => ArrowType::Int32,
    };
    Expr::Cast(Cast::new(Box::new(Expr::ScalarFunction(call)), own))
}

/// The first argument, a number, as a `double precision`.
pub(super) fn as_double(arguments: &mut [Expr], schema: &DFSchema) {
    let Some(number) = arguments.first_mut() else { return };
    match number.get_type(schema) {
        Ok(own) if own == crate::numeric::ANY => {
            *number = numerics::as_float(std::mem::take(number));
        }
        Ok(own) if own.is_numeric() && own != ArrowType::Float64 => {
            let given = Box::new(std::mem::take(number));
            *number = Expr::Cast(Cast::new(given, ArrowType::Float64));
        }
        _ => {}
    }
}

/// What is joined is joined as it is shown: true as `t`, and `char(n)` with its blanks.
pub(super) fn joined(mut call: ScalarFunction, schema: &DFSchema) -> Expr {
    for given in &mut call.args {
        let Ok((_, field)) = given.to_field(schema) else { continue };
        match (column_type(&field), field.data_type()) {
            (ColumnType::Stored(DataType::Char(length)), _) => {
                let length = Expr::Literal(ScalarValue::Int64(Some(length.into())), None);
                let text = vec![std::mem::take(given), length];
                *given = Expr::ScalarFunction(ScalarFunction::new_udf(rpad(), text));
            }
            (_, ArrowType::Utf8 | ArrowType::Null) => {}
            _ => {
                let value = vec![std::mem::take(given)];
                *given = Expr::ScalarFunction(ScalarFunction::new_udf(text_function(), value));
            }
        }
    }
    Expr::ScalarFunction(call)
}

/// Intervals and arrays as the text that is shown of them; further inside they are text of one style.
pub(super) fn written(given: &mut Expr, schema: &DFSchema) {
    if matches!(given.get_type(schema), Ok(ArrowType::Interval(_) | ArrowType::List(_))) {
        let value = vec![std::mem::take(given)];
        *given = Expr::ScalarFunction(ScalarFunction::new_udf(text_function(), value));
    }
}

/// The length of bytes is their number, whatever they would be as text.
///
/// # Errors
/// What is neither has none (`42883`).
pub(super) fn length(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let is_number = |of: &Expr| of.get_type(schema).is_ok_and(|own| own.is_numeric());
    if call.args.iter().any(is_number) {
        let message = "function length of a number does not exist".to_owned();
        return Err(QueryError::UnknownFunction { message }.into());
    }
    let is_binary = |of: &Expr| matches!(of.get_type(schema), Ok(ArrowType::Binary));
    let are_bytes = matches!(call.args.as_slice(), [of] if is_binary(of));
    let func = if are_bytes { octet_length() } else { call.func };
    Ok(Expr::ScalarFunction(ScalarFunction { func, args: call.args }))
}

/// The width of the bins of `date_bin` is more than nothing, and of one length.
pub(super) fn check_stride(call: &ScalarFunction) -> Result<()> {
    let stride = match call.args.first() {
        Some(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(stride)), _)) => {
            of_arrow(*stride)
        }
        Some(Expr::Literal(ScalarValue::Utf8(Some(written)), _)) => parse_interval(written)?,
        _ => return Ok(()),
    };
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(QueryError::refused("0A000", message).into());
    }
    if stride.span_micros() <= 0 {
        return Err(QueryError::refused("22008", "stride must be greater than zero").into());
    }
    Ok(())
}

/// A sum of `bigint` is a `numeric`, and so does not overflow. One of `real` is a `real`: the function for it.
pub(super) fn sum(arguments: &mut [Expr], schema: &DFSchema) -> Option<Arc<AggregateUDF>> {
    let [number] = arguments else { return None };
    match number.get_type(schema) {
        Ok(ArrowType::Int64) => *number = bigint_as_numeric(std::mem::take(number)),
        Ok(ArrowType::Float32) => return Some(real_sum()),
        _ => {}
    }
    None
}

/// An average of whole numbers or of `numeric` is a `numeric`: the function for that, or DataFusion's own.
pub(super) fn average(arguments: &mut [Expr], schema: &DFSchema) -> Arc<AggregateUDF> {
    let [number] = arguments else { return avg_udaf() };
    match number.get_type(schema) {
        Ok(own) if as_numeric(number, &own) => numeric_average(),
        _ => avg_udaf(),
    }
}

/// A whole number as `numeric`; whether it is one now.
fn as_numeric(number: &mut Expr, own: &ArrowType) -> bool {
    if own.is_integer() {
        let whole = Cast::new(Box::new(std::mem::take(number)), ArrowType::Int64);
        *number = bigint_as_numeric(Expr::Cast(whole));
    }
    own.is_integer() || matches!(own, ArrowType::Decimal128(..))
}

/// A variance or a standard deviation of whole numbers or of `numeric` is a `numeric`, one of floating-point numbers is
/// a `double precision`: the function for it.
pub(super) fn deviation(
    name: &str,
    arguments: &mut [Expr],
    schema: &DFSchema,
) -> Option<Arc<AggregateUDF>> {
    let [number] = arguments else { return None };
    let own = number.get_type(schema).ok()?;
    let function = match own.is_floating() {
        true => real_deviation(name)?,
        false => numeric_deviation(name)?,
    };
    if own == ArrowType::Float32 {
        let double = Cast::new(Box::new(std::mem::take(number)), ArrowType::Float64);
        *number = Expr::Cast(double);
    }
    (own.is_floating() || as_numeric(number, &own)).then_some(function)
}

/// `lead` and `lag` give what they are told to give where there is no row, which DataFusion makes the type of the
/// column; `nth_value` counts from 1.
pub(super) fn offset(window: &mut WindowFunction, schema: &DFSchema) -> Result<()> {
    let name = window.fun.name().to_owned();
    let params = &mut window.params;
    if let Some(own) = numerics::sum_of(&name, &params.args, params.distinct, schema)? {
        params.distinct = false;
        window.fun = WindowFunctionDefinition::AggregateUDF(own);
        return Ok(());
    }
    match (name.as_str(), window.params.args.as_mut_slice()) {
        ("lead" | "lag", [value, _, other]) => {
            let (Ok(own), Ok(given)) = (value.get_type(schema), other.get_type(schema)) else {
                return Ok(());
            };
            if is_numeric(&own) || is_numeric(&given) {
                return numerics::together([value, other], schema);
            }
            let wider = match given {
                _ if !own.is_integer() => return Ok(()),
                ArrowType::Float32 | ArrowType::Float64 => ArrowType::Float64,
                _ => return Ok(()),
            };
            *value = Expr::Cast(Cast::new(Box::new(std::mem::take(value)), wider));
            Ok(())
        }
        ("sum", arguments) => {
            let is_whole = window.params.window_frame.start_bound.is_unbounded();
            if let Some(own) = sum(arguments, schema).filter(|_| is_whole) {
                window.fun = WindowFunctionDefinition::AggregateUDF(own);
            }
            Ok(())
        }
        ("avg", arguments) => {
            let own = average(arguments, schema);
            window.fun = WindowFunctionDefinition::AggregateUDF(own);
            Ok(())
        }
        ("stddev" | "stddev_pop" | "var" | "var_pop", arguments) => {
            // Numbers that are added to a sum of floats are not taken away again.
            let is_float = |of: &Expr| of.get_type(schema).is_ok_and(|own| own.is_floating());
            let is_whole = window.params.window_frame.start_bound.is_unbounded();
            if !is_whole && arguments.iter().any(is_float) {
                return Ok(());
            }
            if let Some(own) = deviation(&name, arguments, schema) {
                window.fun = WindowFunctionDefinition::AggregateUDF(own);
            }
            Ok(())
        }
        ("nth_value", [_, Expr::Literal(ScalarValue::Int32(Some(..1)), _)]) => {
            let message = "argument of nth_value must be greater than zero";
            Err(QueryError::refused("22016", message).into())
        }
        _ => Ok(()),
    }
}
