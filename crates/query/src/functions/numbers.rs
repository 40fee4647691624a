//! Functions of numbers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Numeric, Value};

use super::typed::{Given, TypedFunction};
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// What a logarithm is taken of: a number above zero.
pub(crate) const POSITIVE: &str = "positive";

/// A logarithm to a base.
pub(crate) const LOGARITHM: &str = "logarithm";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let float = |_: &[ColumnType]| ColumnType::Stored(DataType::Float64);
    let functions = [
        TypedFunction::new("sign", whole_or_float, sign),
        TypedFunction::new("div", whole_or_float, of_numerics),
        TypedFunction::new("numeric_series", series_type, series),
        TypedFunction::new("trim_scale", |_| WHOLE.into(), of_numerics),
        TypedFunction::new("scale", |_| DataType::Int32.into(), of_numerics),
        TypedFunction::new("min_scale", |_| DataType::Int32.into(), of_numerics),
        TypedFunction::new(POSITIVE, float, positive),
        TypedFunction::new("sqrt", float, square_root),
        TypedFunction::new("acos", float, |given| {
            of_range(given, f64::acos, |number| number.abs() > 1.0)
        }),
        TypedFunction::new("asin", float, |given| {
            of_range(given, f64::asin, |number| number.abs() > 1.0)
        }),
        TypedFunction::new("acosh", float, |given| {
            of_range(given, f64::acosh, |number| number < 1.0)
        }),
        TypedFunction::new("atanh", float, |given| {
            of_range(given, f64::atanh, |number| number.abs() > 1.0)
        }),
        TypedFunction::new(LOGARITHM, float, logarithm),
        TypedFunction::new("power", float, power),
        TypedFunction::new("exp", float, exponential),
        TypedFunction::new("pow", float, power),
        TypedFunction::new("gcd", divided_alike, gcd),
        TypedFunction::new("lcm", divided_alike, lcm),
        TypedFunction::new("width_bucket", |_| DataType::Int32.into(), width_bucket),
    ];
    functions.into_iter().map(|function| function.strict().into_udf()).collect()
}

/// What stands for `numeric` while a statement is read.
const WHOLE: DataType = DataType::Decimal { precision: 28, scale: 0 };

fn is_numeric(given: &ColumnType) -> bool {
    matches!(given, ColumnType::Stored(DataType::Decimal { .. } | DataType::Numeric(_)))
}

/// A `numeric` without digits after the point, of numerics alone.
fn whole_or_float(given: &[ColumnType]) -> ColumnType {
    let is_float = |given: &ColumnType| {
        matches!(given, ColumnType::Stored(DataType::Float32 | DataType::Float64))
    };
    let is_whole = given.iter().any(is_numeric) && !given.iter().any(is_float);
    // div is of numerics; sign of a whole number is that of the float it is.
    match is_whole || given.len() == 2 {
        true => WHOLE.into(),
        false => DataType::Float64.into(),
    }
}

fn float(value: &Value<'_>) -> Result<f64> {
    match value {
        Value::Float64(value) => Ok(*value),
        Value::Float32(value) => Ok((*value).into()),
        value if let Some(number) = value.as_numeric() => Ok(number.to_f64()),
        Value::Text(text) => text.trim().parse().map_err(|_| not_a_number()),
        _ => Err(not_a_number()),
    }
}

fn not_a_number() -> QueryError {
    QueryError::UnknownFunction { message: "the function is one of numbers".to_owned() }
}

fn sign(given: &Given<'_>) -> Result<Value<'static>> {
    let [number] = given.values else { return Err(not_a_number()) };
    let number = float(number)?;
    Ok(Value::Float64(if number == 0.0 || number.is_nan() { number } else { number.signum() }))
}

fn series_type(given: &[ColumnType]) -> ColumnType {
    let is_known = given.contains(&ColumnType::Stored(DataType::Numeric(None)));
    ColumnType::Array(if is_known { DataType::Numeric(None) } else { WHOLE })
}

/// Most elements of a series.
const SERIES_MAX: usize = 10_000_000;

/// The numbers from one to another, as an array.
fn series(given: &Given<'_>) -> Result<Value<'static>> {
    let number = |at: usize| given.values.get(at).and_then(Value::as_numeric);
    let (Some(from), Some(to)) = (number(0), number(1)) else { return Err(not_a_number()) };
    let step = number(2).map_or_else(|| Numeric::from(1i64), Cow::into_owned);
    let refused = |message: String| Err(QueryError::refused("22023", message));
    for (number, name) in [(&*from, "start"), (&*to, "stop"), (&step, "step size")] {
        if number.scale().is_none() {
            let what = if *number == Numeric::NaN { "NaN" } else { "infinity" };
            let name = if name == "step size" { name.to_owned() } else { format!("{name} value") };
            return refused(format!("{name} cannot be {what}"));
        }
    }
    if step.is_zero() {
        return refused("step size cannot equal zero".to_owned());
    }
    let past = if step.sign() == Some(Ordering::Less) { Ordering::Less } else { Ordering::Greater };
    let (mut number, mut written) = (from.into_owned(), Vec::new());
    while number.compare(&to) != past {
        if written.len() == SERIES_MAX {
            let message = "a series of so many numbers is not supported".to_owned();
            return Err(QueryError::NotSupported { message });
        }
        written.push(number.to_string());
        number = number.plus(&step)?;
    }
    Ok(write_array(written.iter().map(|number| Some(number.as_str()))).into())
}

/// What is of exact numbers is put in the place of these once all types are known.
fn of_numerics(_: &Given<'_>) -> Result<Value<'static>> {
    Err(not_a_number())
}

/// The type of whole numbers that both have, or `numeric`.
fn divided_alike(given: &[ColumnType]) -> ColumnType {
    let is_small =
        |given: &ColumnType| matches!(given, ColumnType::Stored(DataType::Int16 | DataType::Int32));
    match given.iter().any(is_numeric) {
        true => WHOLE.into(),
        false if given.iter().all(is_small) => DataType::Int32.into(),
        false => DataType::Int64.into(),
    }
}

/// The greatest common divisor.
fn gcd(given: &Given<'_>) -> Result<Value<'static>> {
    let [one, other] = given.values else { return Err(not_a_number()) };
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        return whole(divisor(one.into(), other.into()), divided_alike(given.types));
    }
    Err(not_a_number())
}

/// The least common multiple.
fn lcm(given: &Given<'_>) -> Result<Value<'static>> {
    let [one, other] = given.values else { return Err(not_a_number()) };
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        let (one, other) = (i128::from(one), i128::from(other));
        let multiple = match divisor(one, other) {
            0 => 0,
            divisor => (one / divisor * other).abs(),
        };
        return whole(multiple, divided_alike(given.types));
    }
    Err(not_a_number())
}

fn divisor(mut one: i128, mut other: i128) -> i128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.abs()
}

/// A whole number of a type, if it has space for it.
fn whole(number: i128, column: ColumnType) -> Result<Value<'static>> {
    let (value, name) = match column {
        ColumnType::Stored(DataType::Int32) => {
            (i32::try_from(number).ok().map(Value::Int32), "integer")
        }
        _ => (i64::try_from(number).ok().map(Value::Int64), "bigint"),
    };
    value.ok_or_else(|| QueryError::refused("22003", format!("{name} out of range")))
}

fn positive(given: &Given<'_>) -> Result<Value<'static>> {
    let [number] = given.values else { return Err(not_a_number()) };
    let number = float(number)?;
    if number == 0.0 {
        return Err(QueryError::refused("2201E", "cannot take logarithm of zero"));
    }
    if number < 0.0 {
        return Err(QueryError::refused("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(Value::Float64(number))
}

/// A function of the numbers that are not outside of its range.
fn of_range(
    given: &Given<'_>,
    function: fn(f64) -> f64,
    is_outside: fn(f64) -> bool,
) -> Result<Value<'static>> {
    let [number] = given.values else { return Err(not_a_number()) };
    let number = float(number)?;
    match is_outside(number) {
        true => Err(QueryError::refused("22003", "input is out of range")),
        false => Ok(Value::Float64(function(number))),
    }
}

fn logarithm(given: &Given<'_>) -> Result<Value<'static>> {
    let [base, number] = given.values else { return Err(not_a_number()) };
    let (base, number) = (float(base)?, float(number)?);
    match base {
        1.0 => Err(QueryError::DivisionByZero),
        _ => Ok(Value::Float64(number.ln() / base.ln())),
    }
}

fn square_root(given: &Given<'_>) -> Result<Value<'static>> {
    let [number] = given.values else { return Err(not_a_number()) };
    let number = float(number)?;
    if number < 0.0 {
        return Err(QueryError::refused("2201F", "cannot take square root of a negative number"));
    }
    Ok(Value::Float64(number.sqrt()))
}

fn power(given: &Given<'_>) -> Result<Value<'static>> {
    let [number, exponent] = given.values else { return Err(not_a_number()) };
    let (number, exponent) = (float(number)?, float(exponent)?);
    if number == 0.0 && exponent < 0.0 {
        let message = "zero raised to a negative power is undefined";
        return Err(QueryError::refused("2201F", message));
    }
    if number < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(QueryError::refused("2201F", message));
    }
    let made = number.powf(exponent);
    let are_finite = number.is_finite() && exponent.is_finite();
    in_range(made, are_finite, number == 0.0)
}

fn exponential(given: &Given<'_>) -> Result<Value<'static>> {
    let [exponent] = given.values else { return Err(not_a_number()) };
    let exponent = float(exponent)?;
    in_range(exponent.exp(), exponent.is_finite(), false)
}

/// What is made of finite numbers is finite, and zero only where it may be.
fn in_range(made: f64, are_finite: bool, may_be_zero: bool) -> Result<Value<'static>> {
    match made {
        _ if are_finite && made.is_infinite() => {
            Err(QueryError::refused("22003", "value out of range: overflow"))
        }
        0.0 if are_finite && !may_be_zero => {
            Err(QueryError::refused("22003", "value out of range: underflow"))
        }
        _ => Ok(Value::Float64(made)),
    }
}

/// `width_bucket(number, low, high, count)`.
fn width_bucket(given: &Given<'_>) -> Result<Value<'static>> {
    let [number, low, high, count] = given.values else { return Err(not_a_number()) };
    let count = count.as_i64().ok_or_else(not_a_number)?;
    if count <= 0 {
        return Err(QueryError::refused("2201G", "count must be greater than zero"));
    }
    if count >= i64::from(i32::MAX) {
        return Err(QueryError::refused("22003", "integer out of range"));
    }
    let (number, low, high) = (float(number)?, float(low)?, float(high)?);
    if number.is_nan() || low.is_nan() || high.is_nan() {
        return Err(QueryError::refused(
            "2201G",
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(QueryError::refused("2201G", "lower and upper bounds must be finite"));
    }
    let place = |number: f64, low: f64, high: f64| {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let place = (number - low) / (high - low) * count as f64;
        #[expect(clippy::cast_possible_truncation, reason = "below the count")]
        Some(place.floor() as i64)
    };
    let bucket = bucket(number, low, high, count, place)?;
    Ok(bucket.and_then(|bucket| i32::try_from(bucket).ok()).map_or(Value::Null, Value::Int32))
}

/// The number of the part between `low` and `high`, from 1; 0 before them, and one more behind.
fn bucket<T: PartialOrd + Copy>(
    number: T,
    low: T,
    high: T,
    count: i64,
    place: impl Fn(T, T, T) -> Option<i64>,
) -> Result<Option<i64>> {
    let (is_before, is_behind) = match low.partial_cmp(&high) {
        Some(Ordering::Less) => (number < low, number >= high),
        Some(Ordering::Greater) => (number > low, number <= high),
        _ => return Err(QueryError::refused("2201G", "lower bound cannot equal upper bound")),
    };
    Ok(match (is_before, is_behind) {
        (true, _) => Some(0),
        (_, true) => Some(count + 1),
        _ => place(number, low, high).map(|place| place.min(count - 1) + 1),
    })
}
