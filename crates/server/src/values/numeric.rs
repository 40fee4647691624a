//! Numbers on their way into columns, rounded as PostgreSQL does. The engine's own interface loses
//! nothing, and refuses what would have to be rounded; SQL says that it is.

use std::cmp::Ordering;

use bytes::{BufMut, BytesMut};
use onrush::{DataType, Decimal, Numeric, NumericFault, Value};
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
    match written.parse::<Numeric>() {
        Err(NumericFault::Syntax) => None,
        Err(fault) => Some(Err(told(fault))),
        Ok(number) => Some(small(&number, precision, scale)),
    }
}

/// Text as a value of a column of any numbers, or of those of so many digits.
pub(super) fn read_any(written: &str, limits: Option<(u16, i16)>) -> Result<Value<'static>> {
    match written.parse::<Numeric>() {
        Ok(number) => limited(&number, limits),
        Err(NumericFault::Syntax) => {
            let message = format!("invalid input syntax for type numeric: \"{written}\"");
            Err(SqlError::new(state::INVALID_TEXT, message))
        }
        Err(fault) => Err(told(fault)),
    }
}

fn told(fault: NumericFault) -> SqlError {
    let error = SqlError::new(state::NUMERIC_OUT_OF_RANGE, fault.message());
    match fault.detail() {
        Some(detail) => error.with_detail(detail),
        None => error,
    }
}

/// A number as a column of any numbers, or of those of so many digits, has it.
pub(super) fn limited(number: &Numeric, limits: Option<(u16, i16)>) -> Result<Value<'static>> {
    let fitted = match limits {
        Some((precision, scale)) => number.fitted(precision, scale).map_err(told)?,
        None => number.clone(),
    };
    Ok(Value::Numeric(fitted))
}

/// A number as a column of few digits has it.
pub(super) fn small(number: &Numeric, precision: u8, scale: u8) -> Result<Value<'static>> {
    let fitted = number.fitted(u16::from(precision), i16::from(scale)).map_err(told)?;
    fitted.to_decimal().map(Value::Decimal).ok_or_else(|| {
        SqlError::not_supported(
            format!("{number} in a column of type numeric({precision},{scale})"),
            "A column of type numeric, without digits, takes it.",
        )
    })
}

/// A number of any size as a whole number of this type, halves away from zero.
pub(super) fn whole_of_any(number: &Numeric, data_type: DataType) -> Result<Value<'static>> {
    let infinite = match number {
        Numeric::NaN => "NaN",
        Numeric::Infinity | Numeric::NegativeInfinity => "infinity",
        Numeric::Finite(..) => {
            let whole = number.to_i128().and_then(|whole| i64::try_from(whole).ok());
            let sized = whole.and_then(|whole| sized(whole, data_type));
            return sized.ok_or_else(|| out_of_range(data_type));
        }
    };
    let message = format!("cannot convert {infinite} to {data_type}");
    Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message))
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
    let (precision, scale) = (u16::from(precision), i16::from(scale));
    told(NumericFault::Field { precision, scale, is_infinite: false })
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
        (Value::Numeric(number), _) if is_whole => {
            let whole = number.to_i128().filter(|_| number.is_whole());
            let whole = whole.and_then(|whole| i64::try_from(whole).ok());
            whole.and_then(|whole| sized(whole, data_type))
        }
        (Value::Numeric(number), DataType::Decimal { precision, scale }) => {
            let fitted = number.fitted(u16::from(precision), i16::from(scale)).ok();
            let is_it = |fitted: &Numeric| fitted.compare(number).is_eq();
            fitted.filter(is_it).and_then(|fitted| fitted.to_decimal()).map(Value::Decimal)
        }
        (_, DataType::Numeric(limits)) => {
            let number = value.as_numeric()?;
            let fitted = match limits {
                Some((precision, scale)) => number.fitted(precision, scale).ok(),
                None => Some(number.as_ref().clone()),
            };
            fitted.filter(|fitted| fitted.compare(&number).is_eq()).map(Value::Numeric)
        }
        _ => return None,
    })
}

/// The sign of a number in binary form.
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const NEGATIVE_INFINITE: u16 = 0xF000;

/// Appends the binary form: how many digits of base 10000 there are, the place of the first, the sign, the digits
/// shown after the point, and the digits.
pub(super) fn write_binary(number: &Numeric, out: &mut BytesMut) {
    let sign = match number {
        Numeric::NaN => NAN,
        Numeric::Infinity => INFINITE,
        Numeric::NegativeInfinity => NEGATIVE_INFINITE,
        _ if number.sign() == Some(Ordering::Less) => NEGATIVE,
        _ => 0,
    };
    let scale = number.scale().unwrap_or(0);
    let plain = number.size().to_string();
    let (whole, behind) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut digits = Vec::new();
    let mut place = 0i16;
    if number.scale().is_some() && !number.is_zero() {
        let zeros = whole.len().next_multiple_of(4) - whole.len();
        let groups = format!("{:0>zeros$}{whole}{behind}", "");
        let place_of_first = (whole.len() + zeros) / 4;
        let group = |four: &[u8]| {
            (0..4).fold(0u16, |made, at| {
                made * 10 + u16::from(four.get(at).map_or(0, |digit| digit - b'0'))
            })
        };
        digits = groups.as_bytes().chunks(4).map(group).collect();
        let leading = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..leading);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        place = i16::try_from(place_of_first).unwrap_or(i16::MAX)
            - 1
            - i16::try_from(leading).unwrap_or(0);
    }
    out.put_u16(u16::try_from(digits.len()).unwrap_or(u16::MAX));
    out.put_i16(place);
    out.put_u16(sign);
    out.put_u16(scale);
    digits.iter().for_each(|digit| out.put_u16(*digit));
}

/// Appends the binary form of a number that fits into a [`Decimal`], as [`write_binary`] has it.
pub(super) fn write_decimal(number: Decimal, out: &mut BytesMut) {
    const BASE: u128 = 10_000;
    let scale = number.scale();
    let behind = scale.div_ceil(4);
    let shift = 10u128.pow(behind * 4 - scale);
    // Groups of four digits, the last first: a mantissa has 96 bits, of at most 29 digits.
    let mut rest = number.mantissa().unsigned_abs() * shift;
    let mut groups = [0u16; 9];
    let mut count = 0;
    while rest > 0 {
        groups[count] = u16::try_from(rest % BASE).unwrap_or(0);
        rest /= BASE;
        count += 1;
    }
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let place = match count {
        0 => 0,
        count => i16::try_from(count).unwrap_or(0) - 1 - i16::try_from(behind).unwrap_or(0),
    };
    out.put_u16(u16::try_from(count - zeros).unwrap_or(0));
    out.put_i16(place);
    out.put_u16(if count > 0 && number.is_sign_negative() { NEGATIVE } else { 0 });
    out.put_u16(u16::try_from(scale).unwrap_or(0));
    groups[zeros..count].iter().rev().for_each(|group| out.put_u16(*group));
}

/// The number in binary form.
pub(super) fn read_binary(bytes: &[u8]) -> Result<Numeric> {
    let malformed = |what: &str| {
        SqlError::new(
            state::INVALID_BINARY,
            format!("invalid {what} in external \"numeric\" value"),
        )
    };
    let (numbers, rest) = bytes.as_chunks::<2>();
    let [count, place, sign, scale, digits @ ..] = numbers else { return Err(malformed("length")) };
    let [count, sign, scale] = [count, sign, scale].map(|number| u16::from_be_bytes(*number));
    let place = i64::from(i16::from_be_bytes(*place));
    if digits.len() != usize::from(count) || !rest.is_empty() {
        return Err(malformed("length"));
    }
    let is_negative = match sign {
        0 => false,
        NEGATIVE => true,
        NAN => return Ok(Numeric::NaN),
        INFINITE => return Ok(Numeric::Infinity),
        NEGATIVE_INFINITE => return Ok(Numeric::NegativeInfinity),
        _ => return Err(malformed("sign")),
    };
    let mut written = String::from(if is_negative { "-0" } else { "0" });
    for digit in digits {
        match u16::from_be_bytes(*digit) {
            digit @ ..10_000 => written.push_str(&format!("{digit:04}")),
            _ => return Err(malformed("digit")),
        }
    }
    // Of the last digit; more digits after the point than are shown are cut off.
    let exponent = (place + 1 - i64::from(count)) * 4;
    let number: Numeric = format!("{written}e{exponent}").parse().map_err(told)?;
    Ok(number.cut(i32::from(scale)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_binary_form_is_read_back() {
        for written in [
            "0",
            "0.00",
            "1",
            "-1.10",
            "12345.6789",
            "0.000012",
            "10000",
            "-123456789012345678901234567890.5",
            "1e100",
            "1e-100",
            "NaN",
            "Infinity",
            "-Infinity",
        ] {
            let number: Numeric = written.parse().expect("a number");
            let mut out = BytesMut::new();
            write_binary(&number, &mut out);
            assert_eq!(read_binary(&out).expect("a number"), number, "{written}");
        }
        let mut out = BytesMut::new();
        write_binary(&"1.10".parse().expect("a number"), &mut out);
        assert_eq!(&out[..], [0, 2, 0, 0, 0, 0, 0, 2, 0, 1, 3, 0xE8]);
    }

    proptest! {
        #[test]
        fn a_small_number_has_the_binary_form_of_any_number(
            mantissa in prop_oneof![Just(0i128), -100_000i128..100_000, -(1i128 << 96) + 1..1i128 << 96],
            zeros in 0u32..9,
            scale in 0u32..=28,
        ) {
            let padded = mantissa.checked_mul(10i128.pow(zeros)).unwrap_or(mantissa);
            let fits = |number: &i128| Decimal::try_from_i128_with_scale(*number, scale).is_ok();
            let mantissa = [padded, mantissa, 0].into_iter().find(fits).unwrap_or(0);
            let number = Decimal::from_i128_with_scale(mantissa, scale);
            let [mut small, mut any] = [BytesMut::new(), BytesMut::new()];
            write_decimal(number, &mut small);
            write_binary(&Numeric::from(number), &mut any);
            prop_assert_eq!(small, any);
        }
    }
}
