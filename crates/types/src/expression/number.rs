//! Arithmetic, with PostgreSQL's results and errors.

use std::cmp::Ordering;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::decimal;
use super::evaluate::{EvaluationError, mismatch};
use super::tree::{Arithmetic, Kind};
use crate::Value;
use crate::calendar;
use crate::numeric::{Divided, Numeric, NumericFault};

type Outcome = Result<Value<'static>, EvaluationError>;

const SMALLINT: EvaluationError = EvaluationError::OutOfRange("smallint out of range");
const INTEGER: EvaluationError = EvaluationError::OutOfRange("integer out of range");
const BIGINT: EvaluationError = EvaluationError::OutOfRange("bigint out of range");
const DATE: EvaluationError = EvaluationError::TimestampOutOfRange("date out of range");
const INFINITE_DATES: EvaluationError =
    EvaluationError::TimestampOutOfRange("cannot subtract infinite dates");
const TOO_LARGE: EvaluationError = EvaluationError::OutOfRange("value out of range: overflow");
const TOO_SMALL: EvaluationError = EvaluationError::OutOfRange("value out of range: underflow");

pub(super) fn arithmetic(
    arithmetic: Arithmetic,
    kind: Kind,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Outcome {
    match (left, right) {
        (Value::Decimal(left), Value::Decimal(right)) => Ok(Value::Decimal(match arithmetic {
            Arithmetic::Add => decimal::add(*left, *right)?,
            Arithmetic::Subtract => decimal::add(*left, -*right)?,
            Arithmetic::Multiply => decimal::multiply(*left, *right)?,
            Arithmetic::Divide => decimal::divide(*left, *right)?,
            Arithmetic::Remainder => decimal::remainder(*left, *right)?,
        })),
        (Value::Numeric(left), Value::Numeric(right)) => {
            numerics(arithmetic, left, right).map(Value::Numeric)
        }
        // Parts of an infinity are infinite.
        (Value::Numeric(left), Value::Decimal(right)) => {
            numerics(arithmetic, left, &(*right).into()).map(Value::Numeric)
        }
        (Value::Decimal(left), Value::Numeric(right)) => {
            numerics(arithmetic, &(*left).into(), right).map(Value::Numeric)
        }
        (Value::Float64(left), Value::Float64(right)) => {
            floats(arithmetic, *left, *right, f64::is_infinite).map(Value::Float64)
        }
        (Value::Float32(left), Value::Float32(right)) => {
            // Two single precisions have space in a double one, so the result is rounded once.
            let is_too_large = |value: f64| (value as f32).is_infinite();
            let (left, right) = (f64::from(*left), f64::from(*right));
            let value = floats(arithmetic, left, right, is_too_large)? as f32;
            let is_product = matches!(arithmetic, Arithmetic::Multiply | Arithmetic::Divide);
            let is_lost = is_product && value == 0.0 && left != 0.0 && !right.is_infinite();
            if is_lost && (right != 0.0) {
                return Err(TOO_SMALL);
            }
            Ok(Value::Float32(value))
        }
        (Value::Date(left), Value::Date(right)) => {
            if calendar::is_infinite_date(*left) || calendar::is_infinite_date(*right) {
                return Err(INFINITE_DATES);
            }
            left.checked_sub(*right).map(Value::Int32).ok_or(DATE)
        }
        (Value::Date(day), Value::Int32(_)) if calendar::is_infinite_date(*day) => {
            Ok(Value::Date(*day))
        }
        (Value::Date(day), Value::Int32(days)) => {
            let moved = match arithmetic {
                Arithmetic::Add => day.checked_add(*days),
                _ => day.checked_sub(*days),
            };
            let is_there = |day: &i32| calendar::is_date(*day) && !calendar::is_infinite_date(*day);
            moved.filter(is_there).map(Value::Date).ok_or(DATE)
        }
        _ => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => {
                let value = whole(arithmetic, left, right)?.ok_or_else(|| range_of(kind))?;
                of_kind(kind, i128::from(value))
            }
            _ => Err(mismatch()),
        },
    }
}

fn whole(arithmetic: Arithmetic, left: i64, right: i64) -> Result<Option<i64>, EvaluationError> {
    Ok(match arithmetic {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => {
            return Err(EvaluationError::DivisionByZero);
        }
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => Some(left.wrapping_rem(right)),
    })
}

fn numerics(
    arithmetic: Arithmetic,
    left: &Numeric,
    right: &Numeric,
) -> Result<Numeric, EvaluationError> {
    match arithmetic {
        Arithmetic::Add => left.plus(right).map_err(too_many_digits),
        Arithmetic::Subtract => left.minus(right).map_err(too_many_digits),
        Arithmetic::Multiply => left.times(right).map_err(too_many_digits),
        Arithmetic::Divide => Err(mismatch()),
        Arithmetic::Remainder => match left.remainder(right) {
            Divided::Number(rest) => Ok(rest),
            Divided::ByZero => Err(EvaluationError::DivisionByZero),
        },
    }
}

pub(super) fn too_many_digits(fault: NumericFault) -> EvaluationError {
    EvaluationError::OutOfRange(fault.message())
}

fn floats(
    arithmetic: Arithmetic,
    left: f64,
    right: f64,
    is_too_large: impl Fn(f64) -> bool,
) -> Result<f64, EvaluationError> {
    let value = match arithmetic {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide if right == 0.0 && !left.is_nan() => {
            return Err(EvaluationError::DivisionByZero);
        }
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => return Err(mismatch()),
    };
    if is_too_large(value) && left.is_finite() && right.is_finite() {
        return Err(TOO_LARGE);
    }
    let is_product = matches!(arithmetic, Arithmetic::Multiply | Arithmetic::Divide);
    let right_matters = arithmetic == Arithmetic::Multiply && right == 0.0;
    if is_product && value == 0.0 && left != 0.0 && !right_matters && right.is_finite() {
        return Err(TOO_SMALL);
    }
    Ok(value)
}

fn range_of(kind: Kind) -> EvaluationError {
    match kind {
        Kind::Int16 => SMALLINT,
        Kind::Int32 => INTEGER,
        _ => BIGINT,
    }
}

fn of_kind(kind: Kind, value: i128) -> Outcome {
    let made = match kind {
        Kind::Int16 => i16::try_from(value).ok().map(Value::Int16),
        Kind::Int32 => i32::try_from(value).ok().map(Value::Int32),
        Kind::Int64 => i64::try_from(value).ok().map(Value::Int64),
        _ => return Err(mismatch()),
    };
    made.ok_or_else(|| range_of(kind))
}

pub(super) fn negate(kind: Kind, value: &Value<'_>) -> Outcome {
    match value {
        // There is no zero below zero.
        Value::Decimal(value) if value.is_zero() => Ok(Value::Decimal(*value)),
        Value::Decimal(value) => Ok(Value::Decimal(-*value)),
        Value::Numeric(value) => Ok(Value::Numeric(value.negated())),
        Value::Float32(value) => Ok(Value::Float32(-value)),
        Value::Float64(value) => Ok(Value::Float64(-value)),
        other => of_kind(kind, -i128::from(other.as_i64().ok_or_else(mismatch)?)),
    }
}

pub(super) fn absolute(kind: Kind, value: &Value<'_>) -> Outcome {
    match value {
        Value::Decimal(value) => Ok(Value::Decimal(value.abs())),
        Value::Numeric(value) => Ok(Value::Numeric(value.size())),
        Value::Float32(value) => Ok(Value::Float32(value.abs())),
        Value::Float64(value) => Ok(Value::Float64(value.abs())),
        other => of_kind(kind, i128::from(other.as_i64().ok_or_else(mismatch)?).abs()),
    }
}

/// Between numbers. Halves go away from zero, those of floats to the even one.
pub(super) fn cast(value: &Value<'_>, to: Kind, digits: Option<(u8, u8)>) -> Outcome {
    if to.is_whole() {
        return to_whole(value, to);
    }
    match to {
        Kind::Numeric => {
            let number = value.as_numeric().ok_or_else(mismatch)?;
            Ok(Value::Numeric(number.into_owned()))
        }
        Kind::Decimal => {
            let exact = match value {
                Value::Decimal(value) => *value,
                Value::Numeric(value) => fitted(value, digits)?,
                other => Decimal::from(other.as_i64().ok_or_else(mismatch)?),
            };
            match digits {
                Some((precision, scale)) => decimal::with_digits(exact, precision, scale),
                None => Ok(exact),
            }
            .map(Value::Decimal)
        }
        Kind::Float32 => {
            let wide = match value {
                Value::Float32(value) => return Ok(Value::Float32(*value)),
                // Rounded once.
                Value::Int16(_) | Value::Int32(_) | Value::Int64(_) => {
                    return Ok(Value::Float32(value.as_i64().unwrap_or_default() as f32));
                }
                Value::Decimal(value) => {
                    let value = value.to_string().parse::<f32>();
                    return value.map(Value::Float32).map_err(|_| decimal::too_large());
                }
                other => float(other)?,
            };
            let value = wide as f32;
            if value.is_infinite() && wide.is_finite() {
                return Err(TOO_LARGE);
            }
            if value == 0.0 && wide != 0.0 {
                return Err(TOO_SMALL);
            }
            Ok(Value::Float32(value))
        }
        _ => float(value).map(Value::Float64),
    }
}

/// With digits that a decimal has space for.
fn fitted(value: &Numeric, digits: Option<(u8, u8)>) -> Result<Decimal, EvaluationError> {
    let value = match digits {
        Some((precision, scale)) => {
            value.fitted(u16::from(precision), i16::from(scale)).map_err(too_many_digits)?
        }
        None => value.clone(),
    };
    value.to_decimal().ok_or_else(decimal::too_large)
}

fn float(value: &Value<'_>) -> Result<f64, EvaluationError> {
    match value {
        Value::Numeric(number) => {
            let value = number.to_f64();
            match number {
                Numeric::Finite(..) if value.is_infinite() => Err(TOO_LARGE),
                Numeric::Finite(..) if value == 0.0 && !number.is_zero() => Err(TOO_SMALL),
                _ => Ok(value),
            }
        }
        Value::Float32(value) => Ok(f64::from(*value)),
        Value::Float64(value) => Ok(*value),
        Value::Decimal(value) => decimal::to_float(*value),
        other => Ok(other.as_i64().ok_or_else(mismatch)? as f64),
    }
}

fn to_whole(value: &Value<'_>, to: Kind) -> Outcome {
    let whole = match value {
        Value::Float32(value) => rounded(f64::from(*value)),
        Value::Float64(value) => rounded(*value),
        Value::Decimal(value) => decimal::to_digits(*value, 0, true)?.to_i128(),
        Value::Numeric(value) => value.rounded(0).to_i128(),
        other => other.as_i64().map(i128::from),
    };
    of_kind(to, whole.ok_or_else(|| range_of(to))?)
}

fn rounded(value: f64) -> Option<i128> {
    value.is_finite().then(|| value.round_ties_even() as i128)
}

/// What is done with the digits after the point.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rounding {
    Nearest,
    Up,
    Down,
    TowardsZero,
}

pub(super) fn round(rounding: Rounding, value: &Value<'_>, digits: i32) -> Outcome {
    match value {
        Value::Float64(value) => Ok(Value::Float64(match rounding {
            Rounding::Nearest => value.round_ties_even(),
            Rounding::Up => value.ceil(),
            Rounding::Down => value.floor(),
            Rounding::TowardsZero => value.trunc(),
        })),
        Value::Decimal(value) => Ok(Value::Decimal(match rounding {
            Rounding::Nearest => decimal::to_digits(*value, digits, true)?,
            Rounding::TowardsZero => decimal::to_digits(*value, digits, false)?,
            Rounding::Up => value.ceil(),
            Rounding::Down => value.floor(),
        })),
        Value::Numeric(value) => Ok(Value::Numeric(match rounding {
            Rounding::Nearest => value.rounded(digits),
            Rounding::TowardsZero => value.cut(digits),
            Rounding::Up => value.whole(true).map_err(too_many_digits)?,
            Rounding::Down => value.whole(false).map_err(too_many_digits)?,
        })),
        _ => Err(mismatch()),
    }
}

pub(super) fn sign(value: &Value<'_>) -> Outcome {
    match value {
        // What is no number is neither above nor below zero.
        Value::Float64(value) if *value == 0.0 || value.is_nan() => Ok(Value::Float64(0.0)),
        Value::Float64(value) => Ok(Value::Float64(value.signum())),
        Value::Decimal(value) if value.is_zero() => Ok(Value::Decimal(Decimal::ZERO)),
        Value::Decimal(value) if value.is_sign_negative() => {
            Ok(Value::Decimal(Decimal::NEGATIVE_ONE))
        }
        Value::Decimal(_) => Ok(Value::Decimal(Decimal::ONE)),
        Value::Numeric(value) => Ok(Value::Numeric(match value.sign() {
            Some(Ordering::Less) => Numeric::from(-1i64),
            Some(Ordering::Equal) => Numeric::ZERO,
            Some(Ordering::Greater) => Numeric::from(1i64),
            None => Numeric::NaN,
        })),
        _ => Err(mismatch()),
    }
}
