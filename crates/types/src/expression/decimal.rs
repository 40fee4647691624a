//! Decimals as PostgreSQL computes with them, as far as 28 digits go: nothing is rounded but quotients, and
//! what has more digits is an error.

use rust_decimal::Decimal;

use super::EvaluationError;

const SCALE_MAX: u32 = 28;
/// Digits that a quotient has at least.
const SIGNIFICANT_DIGITS_MIN: i64 = 16;

/// The decimal of so many units of its last digit, which is at `scale` after the point.
fn exact(mut units: i128, mut scale: u32) -> Result<Decimal, EvaluationError> {
    loop {
        match Decimal::try_from_i128_with_scale(units, scale) {
            Ok(value) => return Ok(value),
            // Zeros at the end say nothing.
            Err(_) if scale > 0 && units % 10 == 0 => {
                units /= 10;
                scale -= 1;
            }
            Err(_) => return Err(too_large()),
        }
    }
}

pub(super) fn too_large() -> EvaluationError {
    EvaluationError::OutOfRange("a numeric value has more digits than can be computed with")
}

/// Both in units of the same digit, and which that is.
fn aligned(left: Decimal, right: Decimal) -> Result<(i128, i128, u32), EvaluationError> {
    let scale = left.scale().max(right.scale());
    let units = |value: Decimal| {
        value.mantissa().checked_mul(10i128.pow(scale - value.scale())).ok_or_else(too_large)
    };
    Ok((units(left)?, units(right)?, scale))
}

pub(super) fn add(left: Decimal, right: Decimal) -> Result<Decimal, EvaluationError> {
    let (left, right, scale) = aligned(left, right)?;
    exact(left.checked_add(right).ok_or_else(too_large)?, scale)
}

pub(super) fn multiply(left: Decimal, right: Decimal) -> Result<Decimal, EvaluationError> {
    // Without their last zeros products of many digits fit more often.
    let (left, right) = match left.mantissa().checked_mul(right.mantissa()) {
        Some(units) if left.scale() + right.scale() <= SCALE_MAX => {
            return exact(units, left.scale() + right.scale());
        }
        _ => (left.normalize(), right.normalize()),
    };
    let units = left.mantissa().checked_mul(right.mantissa()).ok_or_else(too_large)?;
    exact(units, left.scale() + right.scale())
}

pub(super) fn remainder(left: Decimal, right: Decimal) -> Result<Decimal, EvaluationError> {
    if right.is_zero() {
        return Err(EvaluationError::DivisionByZero);
    }
    let (left, right, scale) = aligned(left, right)?;
    exact(left % right, scale)
}

/// Rounded half away from zero, to as many digits after the point as PostgreSQL gives it.
pub(super) fn divide(left: Decimal, right: Decimal) -> Result<Decimal, EvaluationError> {
    if right.is_zero() {
        return Err(EvaluationError::DivisionByZero);
    }
    let scale = scale_of_quotient(left, right);
    let is_negative = left.is_sign_negative() != right.is_sign_negative();
    let (left_units, right_units) =
        (left.mantissa().unsigned_abs(), right.mantissa().unsigned_abs());
    // The quotient of the units has this many digits after the point too few, or too many.
    let missing = i64::from(scale) - i64::from(left.scale()) + i64::from(right.scale());
    let (mut quotient, mut rest, mut divisor) =
        (left_units / right_units, left_units % right_units, right_units);
    if missing < 0 {
        let more = u32::try_from(-missing).unwrap_or(u32::MAX);
        divisor = 10u128
            .checked_pow(more)
            .and_then(|by| divisor.checked_mul(by))
            .ok_or_else(too_large)?;
        (quotient, rest) = (left_units / divisor, left_units % divisor);
    }
    for _ in 0..missing {
        let digit = rest * 10 / divisor;
        rest = rest * 10 % divisor;
        quotient = quotient
            .checked_mul(10)
            .and_then(|quotient| quotient.checked_add(digit))
            .ok_or_else(too_large)?;
    }
    if rest >= divisor - rest {
        quotient += 1;
    }
    let units = i128::try_from(quotient).map_err(|_| too_large())?;
    exact(if is_negative { -units } else { units }, scale)
}

/// By the weight of the first of PostgreSQL's digits, which are those of base 10,000.
fn scale_of_quotient(left: Decimal, right: Decimal) -> u32 {
    let first = |value: Decimal| -> (i64, u128) {
        let mut units = value.mantissa().unsigned_abs();
        if units == 0 {
            return (0, 0);
        }
        // In whole digits of base 10,000.
        let filled = value.scale().next_multiple_of(4);
        units = units.saturating_mul(10u128.pow(filled - value.scale()));
        let mut weight = -i64::from(filled / 4);
        while units >= 10_000 {
            units /= 10_000;
            weight += 1;
        }
        (weight, units)
    };
    let ((left_weight, left_first), (right_weight, right_first)) = (first(left), first(right));
    let weight = left_weight - right_weight - i64::from(left_first <= right_first);
    let scale = SIGNIFICANT_DIGITS_MIN - weight * 4;
    let scale = scale.max(i64::from(left.scale())).max(i64::from(right.scale())).max(0);
    u32::try_from(scale).unwrap_or(0)
}

/// To so many digits after the point, or in front of it where there are less than none.
pub(super) fn to_digits(
    value: Decimal,
    digits: i32,
    is_rounded: bool,
) -> Result<Decimal, EvaluationError> {
    let scale = i64::from(value.scale());
    let digits = i64::from(digits).clamp(-100, 100);
    if digits >= scale {
        return Ok(value);
    }
    let Some(unit) = u32::try_from(scale - digits).ok().and_then(|by| 10i128.checked_pow(by))
    else {
        return Ok(Decimal::ZERO);
    };
    let (mut units, rest) = (value.mantissa() / unit, value.mantissa() % unit);
    if is_rounded && rest.abs() >= unit - rest.abs() {
        units += rest.signum();
    }
    match u32::try_from(digits) {
        Ok(scale) => exact(units, scale),
        Err(_) => {
            let places = u32::try_from(-digits).unwrap_or(u32::MAX);
            let units = 10i128.checked_pow(places).and_then(|unit| units.checked_mul(unit));
            exact(units.ok_or_else(too_large)?, 0)
        }
    }
}

/// As a column of so many digits takes it.
pub(super) fn with_digits(
    value: Decimal,
    precision: u8,
    scale: u8,
) -> Result<Decimal, EvaluationError> {
    let rounded = to_digits(value, i32::from(scale), true)?;
    let limit = 10i128.pow(u32::from(precision - scale));
    if rounded.trunc().mantissa().abs() >= limit {
        return Err(EvaluationError::OutOfRange("numeric field overflow"));
    }
    Ok(rounded)
}

pub(super) fn to_float(value: Decimal) -> Result<f64, EvaluationError> {
    // Exact as a fraction of two floats, so rounded once.
    const EXACT_MAX: i128 = 1 << 53;
    if value.mantissa().abs() <= EXACT_MAX && value.scale() <= 22 {
        let (units, unit) = (value.mantissa() as f64, 10f64.powi(value.scale().cast_signed()));
        return Ok(units / unit);
    }
    value.to_string().parse().map_err(|_| too_large())
}
