//! What a column accepts: the one place where a value meets a data type.
//!
//! Rule: nothing is lost. Integers widen (`smallint` into `bigint`, any integer into `decimal`),
//! a decimal may have fewer digits after the point than declared, and blanks at the end of a
//! `char` value do not count. Everything else that does not fit is an error.

use std::borrow::Cow;
use std::cmp::Ordering;

use rust_decimal::Decimal;

use crate::array;
use crate::calendar::{self, DAY_MICROS};
use crate::data_type::NAME_BYTES_MAX;
use crate::{
    ColumnName, CompositeType, DataType, EnumType, Interval, MacAddress, Network, Numeric, TimeTz,
    TypeError, Value, json,
};

/// Why a value does not fit; the caller adds table and column.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The value is of another kind.
    WrongType,
    /// The kind is right, the value is not.
    OutOfRange(Box<str>),
}

impl Fault {
    /// The error for the user.
    #[cold]
    pub(crate) fn at(
        self,
        column: ColumnName,
        data_type: DataType,
        value: &Value<'_>,
    ) -> TypeError {
        match self {
            Fault::WrongType => {
                TypeError::WrongType { column, expected: data_type, given: value.kind() }
            }
            Fault::OutOfRange(reason) => TypeError::OutOfRange { column, data_type, reason },
        }
    }
}

#[cold]
fn out_of_range(reason: impl Into<Box<str>>) -> Fault {
    Fault::OutOfRange(reason.into())
}

#[inline]
pub(crate) fn boolean(value: &Value<'_>) -> Result<bool, Fault> {
    if let Value::Boolean(value) = value { Ok(*value) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn int16(value: &Value<'_>) -> Result<i16, Fault> {
    if let Value::Int16(value) = value { Ok(*value) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn int32(value: &Value<'_>) -> Result<i32, Fault> {
    match value {
        Value::Int32(value) => Ok(*value),
        Value::Int16(value) => Ok(i32::from(*value)),
        _ => Err(Fault::WrongType),
    }
}

#[inline]
pub(crate) fn int64(value: &Value<'_>) -> Result<i64, Fault> {
    value.as_i64().ok_or(Fault::WrongType)
}

#[inline]
pub(crate) fn float32(value: &Value<'_>) -> Result<f32, Fault> {
    if let Value::Float32(value) = value { Ok(*value) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn float64(value: &Value<'_>) -> Result<f64, Fault> {
    if let Value::Float64(value) = value { Ok(*value) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn uuid<'v>(value: &'v Value<'_>) -> Result<&'v [u8; 16], Fault> {
    if let Value::Uuid(value) = value { Ok(value.as_bytes()) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn interval(value: &Value<'_>) -> Result<Interval, Fault> {
    if let Value::Interval(value) = value { Ok(*value) } else { Err(Fault::WrongType) }
}

#[inline]
pub(crate) fn time_tz(value: &Value<'_>) -> Result<TimeTz, Fault> {
    match value {
        Value::TimeTz(time) if time.is_sound() => Ok(*time),
        Value::TimeTz(_) => {
            Err(out_of_range("a time of day is up to 24:00:00, less than 16 hours from UTC"))
        }
        _ => Err(Fault::WrongType),
    }
}

/// An address; a network is one, too.
#[inline]
pub(crate) fn inet(value: &Value<'_>) -> Result<Network, Fault> {
    match value {
        Value::Inet(address) | Value::Cidr(address) if address.is_sound() => Ok(*address),
        Value::Inet(_) | Value::Cidr(_) => {
            Err(out_of_range("a network has up to 32 bits, in version 6 up to 128"))
        }
        _ => Err(Fault::WrongType),
    }
}

#[inline]
pub(crate) fn cidr(value: &Value<'_>) -> Result<Network, Fault> {
    match value {
        Value::Cidr(network) if network.is_network() => Ok(*network),
        Value::Cidr(_) => Err(out_of_range("a network has no bits set to the right of its mask")),
        _ => Err(Fault::WrongType),
    }
}

#[inline]
pub(crate) fn mac_address(value: &Value<'_>) -> Result<MacAddress, Fault> {
    if let Value::MacAddress(address) = value { Ok(*address) } else { Err(Fault::WrongType) }
}

/// The number of a thing; 64 bits on the way, since it has no sign.
#[inline]
pub(crate) fn oid(value: &Value<'_>) -> Result<u32, Fault> {
    u32::try_from(int64(value)?).map_err(|_| out_of_range("an oid is 0 to 4294967295"))
}

/// The code of a label.
#[inline]
pub(crate) fn label_code(of: EnumType, value: &Value<'_>) -> Result<u32, Fault> {
    let Value::Text(label) = value else { return Err(Fault::WrongType) };
    of.code(label).ok_or_else(|| out_of_range(format!("{label:?} is no label of {}", of.name())))
}

/// A time or interval of a type that keeps fewer digits.
pub(crate) fn check_rounded(data_type: DataType, value: &Value<'_>) -> Result<(), Fault> {
    match data_type.rounded(value.borrowed()) == *value {
        true => Ok(()),
        false => Err(out_of_range(format!("{value} has more digits or fields; round it first"))),
    }
}

#[inline]
pub(crate) fn date(value: &Value<'_>) -> Result<i32, Fault> {
    let Value::Date(days) = value else { return Err(Fault::WrongType) };
    if calendar::is_date(*days) {
        Ok(*days)
    } else {
        Err(out_of_range("a date lies in the years 4714 BC to 5874897"))
    }
}

/// Time, timestamp and timestamptz: all are microseconds in 64 bits.
#[inline]
pub(crate) fn micros(data_type: DataType, value: &Value<'_>) -> Result<i64, Fault> {
    match (data_type, value) {
        (DataType::Timestamp, Value::Timestamp(micros))
        | (DataType::TimestampTz, Value::TimestampTz(micros)) => {
            if calendar::is_timestamp(*micros) {
                Ok(*micros)
            } else {
                Err(out_of_range("a timestamp lies in the years 4714 BC to 294246"))
            }
        }
        (DataType::Time, Value::Time(micros)) => {
            if (0..=DAY_MICROS).contains(micros) {
                Ok(*micros)
            } else {
                Err(out_of_range("a time of day is up to 24:00:00"))
            }
        }
        _ => Err(Fault::WrongType),
    }
}

/// The decimal as an integer count of its last declared digit.
pub(crate) fn scaled(precision: u8, scale: u8, value: &Value<'_>) -> Result<i128, Fault> {
    let decimal = match value {
        Value::Decimal(decimal) => *decimal,
        _ => Decimal::from(int64(value)?),
    };
    let (mantissa, given) = (decimal.mantissa(), decimal.scale());
    let scaled = if given <= u32::from(scale) {
        mantissa.checked_mul(power_of_ten(u32::from(scale) - given))
    } else {
        let divisor = power_of_ten(given - u32::from(scale));
        if mantissa % divisor != 0 {
            return Err(out_of_range(format!(
                "{decimal} has more than {scale} digits after the point; round it first"
            )));
        }
        Some(mantissa / divisor)
    };
    match scaled {
        Some(scaled) if scaled.abs() < power_of_ten(u32::from(precision)) => Ok(scaled),
        _ => Err(out_of_range(format!(
            "{decimal} has more than {} digits before the point",
            precision - scale
        ))),
    }
}

/// The number as a column with so many digits keeps it, which rounds nothing away.
pub(crate) fn numeric<'v>(
    limits: Option<(u16, i16)>,
    value: &'v Value<'_>,
) -> Result<Cow<'v, Numeric>, Fault> {
    let number = value.as_numeric().ok_or(Fault::WrongType)?;
    let Some((precision, scale)) = limits else { return Ok(number) };
    let fitted = number.fitted(precision, scale);
    let fitted = fitted.map_err(|fault| out_of_range(fault.detail().unwrap_or_default()))?;
    match fitted.compare(&number) {
        Ordering::Equal => Ok(Cow::Owned(fitted)),
        _ => Err(out_of_range(format!(
            "{number} has more than {scale} digits after the point; round it first"
        ))),
    }
}

/// 10^exponent, for exponents up to 28.
pub(crate) fn power_of_ten(exponent: u32) -> i128 {
    10i128.pow(exponent)
}

/// Text for a `varchar` or `text` column.
#[inline]
pub(crate) fn text<'v>(data_type: DataType, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let Value::Text(text) = value else { return Err(Fault::WrongType) };
    match data_type {
        DataType::Varchar(limit) => within(limit, text).ok_or_else(|| {
            let characters = text.chars().count();
            out_of_range(format!("the text has {characters} characters, more than {limit}"))
        }),
        DataType::Name if text.len() > usize::from(NAME_BYTES_MAX) => {
            Err(too_long(text, NAME_BYTES_MAX.into()))
        }
        _ => Ok(text),
    }
}

/// A text of at most so many characters: blanks that are too many are left out, as SQL says.
pub(crate) fn within(limit: u32, text: &str) -> Option<&str> {
    if !has_more_characters(text, limit) {
        return Some(text);
    }
    let end = text.char_indices().nth(limit as usize).map_or(text.len(), |(at, _)| at);
    let (within, beyond) = text.split_at(end);
    beyond.bytes().all(|byte| byte == b' ').then_some(within)
}

/// Whether a text has more characters than that. One of fewer bytes has not.
pub fn has_more_characters(text: &str, limit: u32) -> bool {
    text.len() > limit as usize && text.chars().count() > limit as usize
}

/// Text for a `char` column, without its trailing blanks.
#[inline]
pub(crate) fn char_text<'v>(limit: u16, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let Value::Text(text) = value else { return Err(Fault::WrongType) };
    let trimmed = &text[..length_without_blanks(text.as_bytes())];
    if trimmed.len() > usize::from(limit) {
        Err(too_long(trimmed, limit.into()))
    } else {
        Ok(trimmed)
    }
}

/// The length without the blanks at the end. Eight at a time: `char` columns are mostly blanks.
#[inline]
pub(crate) fn length_without_blanks(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((before, b"        ")) = rest.split_last_chunk::<8>() {
        rest = before;
    }
    rest.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)
}

#[cold]
fn too_long(text: &str, limit: u32) -> Fault {
    out_of_range(format!("the text takes {} bytes of UTF-8, more than {limit}", text.len()))
}

/// Bytes or text, for a column of variable length.
#[inline]
pub(crate) fn variable<'v>(
    data_type: DataType,
    value: &'v Value<'_>,
) -> Result<Cow<'v, [u8]>, Fault> {
    match (data_type, value) {
        (DataType::Bytes, Value::Bytes(bytes)) => Ok(Cow::Borrowed(bytes)),
        (DataType::Bytes, _) => Err(Fault::WrongType),
        (DataType::Numeric(limits), _) => Ok(Cow::Owned(numeric(limits, value)?.to_bytes())),
        (DataType::Json | DataType::Jsonb, _) => Ok(match json_text(data_type, value)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }),
        (DataType::Array(element), _) => {
            array_text(*element, value).map(|text| Cow::Borrowed(text.as_bytes()))
        }
        (DataType::Composite(of), _) => {
            record_text(of, value).map(|text| Cow::Borrowed(text.as_bytes()))
        }
        _ => text(data_type, value).map(|text| Cow::Borrowed(text.as_bytes())),
    }
}

/// An array as a column keeps it.
fn array_text<'v>(element: DataType, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let Value::Text(text) = value else { return Err(Fault::WrongType) };
    array::check(element, text).map(|()| &**text).map_err(Fault::OutOfRange)
}

/// A record as a column keeps it.
fn record_text<'v>(of: CompositeType, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let Value::Text(text) = value else { return Err(Fault::WrongType) };
    of.check(text).map(|()| &**text).map_err(Fault::OutOfRange)
}

/// JSON as a column keeps it.
fn json_text<'v>(data_type: DataType, value: &'v Value<'_>) -> Result<Cow<'v, str>, Fault> {
    let Value::Text(text) = value else { return Err(Fault::WrongType) };
    match data_type {
        DataType::Jsonb => json::normalised(text).map(Cow::Owned),
        _ => json::check(text).map(|()| Cow::Borrowed(&**text)),
    }
    .map_err(Fault::OutOfRange)
}

/// The value in the exact type of a column, as it will be returned: integers widened, decimals at
/// their declared scale, `char` padded. NULL and DEFAULT are of the wrong type.
pub(crate) fn to_type(data_type: DataType, value: &Value<'_>) -> Result<Value<'static>, Fault> {
    Ok(match data_type {
        DataType::Boolean => Value::Boolean(boolean(value)?),
        DataType::Int16 => Value::Int16(int16(value)?),
        DataType::Int32 => Value::Int32(int32(value)?),
        DataType::Int64 => Value::Int64(int64(value)?),
        DataType::Float32 => Value::Float32(float32(value)?),
        DataType::Float64 => Value::Float64(float64(value)?),
        DataType::Decimal { precision, scale } => {
            let scaled = scaled(precision, scale, value)?;
            let decimal = Decimal::try_from_i128_with_scale(scaled, u32::from(scale));
            Value::Decimal(decimal.map_err(|error| out_of_range(error.to_string()))?)
        }
        DataType::Numeric(limits) => Value::Numeric(numeric(limits, value)?.into_owned()),
        DataType::Char(limit) => Value::Text(Cow::Owned(padded(char_text(limit, value)?, limit))),
        DataType::Varchar(_) | DataType::Text | DataType::Name => {
            Value::Text(Cow::Owned(text(data_type, value)?.to_owned()))
        }
        DataType::Json | DataType::Jsonb => {
            Value::Text(Cow::Owned(json_text(data_type, value)?.into_owned()))
        }
        DataType::Array(element) => {
            Value::Text(Cow::Owned(array_text(*element, value)?.to_owned()))
        }
        DataType::Composite(of) => Value::Text(Cow::Owned(record_text(of, value)?.to_owned())),
        DataType::Bytes => Value::Bytes(Cow::Owned(variable(data_type, value)?.into_owned())),
        DataType::Uuid => Value::Uuid(uuid::Uuid::from_bytes(*uuid(value)?)),
        DataType::Date => Value::Date(date(value)?),
        DataType::Time => Value::Time(micros(data_type, value)?),
        DataType::Timestamp => Value::Timestamp(micros(data_type, value)?),
        DataType::TimestampTz => Value::TimestampTz(micros(data_type, value)?),
        DataType::Interval => Value::Interval(interval(value)?),
        DataType::TimeTz => Value::TimeTz(time_tz(value)?),
        DataType::Inet => Value::Inet(inet(value)?),
        DataType::Cidr => Value::Cidr(cidr(value)?),
        DataType::MacAddress => Value::MacAddress(mac_address(value)?),
        DataType::Oid => Value::Int64(i64::from(oid(value)?)),
        DataType::Enum(of) => {
            Value::Text(Cow::Borrowed(of.label(label_code(of, value)?).unwrap_or_default()))
        }
        DataType::Rounded(clock, _) => data_type.rounded(to_type(clock.data_type(), value)?),
    })
}

/// Text filled up with blanks to `width` bytes.
pub(crate) fn padded(text: &str, width: u16) -> String {
    let width = usize::from(width);
    let mut padded = String::with_capacity(width);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', width.saturating_sub(text.len())));
    padded
}
