//! Numbers on their way into columns, rounded as PostgreSQL does. The engine's own interface loses
//! nothing, and refuses what would have to be rounded; SQL says that it is.

use onrush::{DataType, Decimal, Value};
use rust_decimal::RoundingStrategy;
use rust_decimal::prelude::ToPrimitive;

use crate::error::{Result, SqlError, state};

/// Text as a numeric value of any precision; none for what is no number, and for what has more digits
/// in front of the point than any column.
pub(super) fn read(written: &str) -> Option<Decimal> {
    let written = written.trim();
    let exact = Decimal::from_str_exact(written).or_else(|_| Decimal::from_scientific(written));
    // Digits at the end that nobody can keep are rounded.
    exact.ok().or_else(|| written.parse().ok()).or_else(|| {
        let is_tiny = written.parse::<f64>().is_ok_and(|value| value.abs() < 1e-28);
        is_tiny.then_some(Decimal::ZERO)
    })
}

/// Text as a value of a numeric column; none for what is no number.
pub(super) fn read_into(written: &str, precision: u8, scale: u8) -> Option<Result<Value<'static>>> {
    if let Some(value) = read(written) {
        return Some(rounded(value, precision, scale));
    }
    let is_number = written.bytes().any(|byte| byte.is_ascii_digit());
    let is_large = written.trim().parse::<f64>().is_ok_and(|value| value.abs() > 1e28);
    (is_number && is_large).then(|| Err(overflow(precision, scale)))
}

/// The value with as many digits after the point as a column has, halves away from zero.
pub(super) fn rounded(value: Decimal, precision: u8, scale: u8) -> Result<Value<'static>> {
    let away = RoundingStrategy::MidpointAwayFromZero;
    let rounded = value.round_dp_with_strategy(u32::from(scale), away);
    match has_space(rounded, precision, scale) {
        true => Ok(Value::Decimal(rounded)),
        false => Err(overflow(precision, scale)),
    }
}

/// Whether a column has digits enough in front of the point.
fn has_space(value: Decimal, precision: u8, scale: u8) -> bool {
    let in_front = u32::from(precision.saturating_sub(scale));
    value.trunc().mantissa().unsigned_abs() < 10u128.pow(in_front)
}

fn overflow(precision: u8, scale: u8) -> SqlError {
    let in_front = precision.saturating_sub(scale);
    SqlError::new(state::NUMERIC_OUT_OF_RANGE, "numeric field overflow").with_hint(format!(
        "A numeric({precision},{scale}) must round to an absolute value less than 10^{in_front}."
    ))
}

/// A numeric value as a whole number of this type, halves away from zero.
pub(super) fn whole(value: Decimal, data_type: DataType) -> Result<Value<'static>> {
    let away = RoundingStrategy::MidpointAwayFromZero;
    let whole = value.round_dp_with_strategy(0, away).to_i64();
    whole.and_then(|whole| sized(whole, data_type)).ok_or_else(|| out_of_range(data_type))
}

/// A floating-point value as a whole number of this type, halves to the even one.
pub(super) fn whole_of_float(value: f64, data_type: DataType) -> Result<Value<'static>> {
    let whole = whole_float(value.round_ties_even());
    whole.and_then(|whole| sized(whole, data_type)).ok_or_else(|| out_of_range(data_type))
}

fn whole_float(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&value);
    // Within these bounds nothing is cut off.
    #[expect(clippy::cast_possible_truncation)]
    fits.then_some(value as i64)
}

/// A whole number as one of this type, where it has space.
fn sized(whole: i64, data_type: DataType) -> Option<Value<'static>> {
    match data_type {
        DataType::Int16 => i16::try_from(whole).ok().map(Value::Int16),
        DataType::Int32 => i32::try_from(whole).ok().map(Value::Int32),
        DataType::Int64 => Some(Value::Int64(whole)),
        _ => None,
    }
}

/// The type of a number in a statement.
pub(super) fn kind_of(written: &str) -> &'static str {
    match (written.parse::<i32>(), written.parse::<i64>()) {
        (Ok(_), _) => "integer",
        (_, Ok(_)) => "bigint",
        _ => "numeric",
    }
}

fn out_of_range(data_type: DataType) -> SqlError {
    SqlError::new(state::NUMERIC_OUT_OF_RANGE, format!("{data_type} out of range"))
}

/// A number as a column of this type has it; none if no value of the column equals it. `None` at all
/// where either is no number.
pub(super) fn equal(value: &Value<'_>, data_type: DataType) -> Option<Option<Value<'static>>> {
    let is_whole = matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64);
    Some(match (value, data_type) {
        (Value::Int16(_) | Value::Int32(_) | Value::Int64(_), _) if is_whole => {
            value.as_i64().and_then(|whole| sized(whole, data_type))
        }
        (Value::Decimal(value), _) if is_whole => {
            let whole = if value.fract().is_zero() { value.to_i64() } else { None };
            whole.and_then(|whole| sized(whole, data_type))
        }
        (Value::Float32(value), _) if is_whole => {
            whole_float(f64::from(*value)).and_then(|whole| sized(whole, data_type))
        }
        (Value::Float64(value), _) if is_whole => {
            whole_float(*value).and_then(|whole| sized(whole, data_type))
        }
        (
            Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_),
            DataType::Decimal { precision, scale },
        ) => {
            let exact = match value {
                Value::Decimal(value) => value.normalize(),
                other => Decimal::from(other.as_i64()?),
            };
            let fits = exact.scale() <= u32::from(scale) && has_space(exact, precision, scale);
            fits.then_some(Value::Decimal(exact))
        }
        _ => return None,
    })
}
