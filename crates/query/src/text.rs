//! Values as PostgreSQL writes and reads them in text.

use std::borrow::Cow;
use std::fmt::{Result, Write};

use onrush::{Clock, DataType, Network, Value};
use onrush_types::data_type::NAME_BYTES_MAX;
use onrush_types::text;

use crate::array::{read_array, write_array};
use crate::enumeration;
use crate::error::QueryError;
use crate::functions::{bytes_of, limited, read_composite, shown_escaped, styled_record};
use crate::interval::parse_interval;
use crate::interval_text;
use crate::numeric::of_text;
use crate::style::{
    Style, by_default, current, with_digits, write_date, write_interval, write_time,
    write_timestamp, write_timestamp_tz,
};
use crate::types::ColumnType;

/// Text as a value of a type. Bytes need no `\\x` where there is no backslash in them.
///
/// # Errors
/// Text that is none.
pub fn read_text(data_type: DataType, written: &str) -> std::result::Result<Value<'_>, QueryError> {
    match data_type {
        DataType::Bytes if !written.contains('\\') => Ok(Value::from(written.as_bytes())),
        DataType::Bytes => Ok(Value::from(bytes_of(written)?)),
        DataType::Date
        | DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampTz => crate::datetime::read(data_type, written),
        DataType::Name => Ok(Value::from(name_of(written))),
        DataType::Enum(of) => Ok(Value::from(enumeration::read(of, written)?)),
        DataType::Array(element) => Ok(Value::from(read_elements(*element, written)?)),
        DataType::Composite(of) => Ok(Value::from(read_composite(of, written)?)),
        DataType::Oid => oid(written),
        DataType::Interval => Ok(Value::Interval(parse_interval(written)?)),
        DataType::Rounded(Clock::Interval(fields), digits) => {
            let interval = interval_text::read(written, fields)?;
            Ok(Value::Interval(fields.cut(interval, digits)))
        }
        DataType::Rounded(clock, _) => {
            Ok(data_type.rounded(read_text(clock.data_type(), written)?))
        }
        DataType::Numeric(limits) => Ok(Value::Numeric(limited(of_text(written)?, limits)?)),
        DataType::Inet => {
            let message = || format!("invalid input syntax for type inet: \"{written}\"");
            let read = Network::read_inet(written).map(Value::Inet);
            read.ok_or_else(|| QueryError::refused("22P02", message()))
        }
        DataType::Cidr => network(written),
        other => Ok(text::parse(other, written)?),
    }
}

fn network(written: &str) -> std::result::Result<Value<'static>, QueryError> {
    match Network::read_cidr(written) {
        Some(network) if network.is_network() => Ok(Value::Cidr(network)),
        Some(_) => {
            let error = QueryError::refused("22P02", format!("invalid cidr value: \"{written}\""));
            Err(error.detail("Value has bits set to right of mask."))
        }
        None => {
            let message = format!("invalid input syntax for type cidr: \"{written}\"");
            Err(QueryError::refused("22P02", message))
        }
    }
}

/// An array as it is written in the default style.
fn read_elements(element: DataType, written: &str) -> std::result::Result<String, QueryError> {
    let elements = read_array(written)?;
    let read = |text: &Option<Cow<'_, str>>| match text {
        Some(text) => Ok(Some(written_plainly(&read_text(element, text)?))),
        None => Ok(None),
    };
    let read: Vec<Option<String>> =
        elements.iter().map(read).collect::<std::result::Result<_, QueryError>>()?;
    Ok(write_array(read.iter().map(Option::as_deref)))
}

/// A text as a name, which ends where it is too long.
#[must_use]
pub fn name_of(written: &str) -> &str {
    &written[..written.floor_char_boundary(usize::from(NAME_BYTES_MAX))]
}

/// A number without a sign; one with a minus is taken for that of the same 32 bits.
fn oid(written: &str) -> std::result::Result<Value<'static>, QueryError> {
    let number: std::result::Result<i128, _> = written.trim().parse();
    match number {
        Ok(number @ 0..=0xFFFF_FFFF) => Ok(Value::Int64(number as i64)),
        Ok(number @ -0x8000_0000..0) => Ok(Value::Int64((number + (1 << 32)) as i64)),
        Ok(_) => {
            let message = format!("value \"{written}\" is out of range for type oid");
            Err(QueryError::refused("22003", message))
        }
        Err(_) => {
            let message = format!("invalid input syntax for type oid: \"{written}\"");
            Err(QueryError::refused("22P02", message))
        }
    }
}

/// Appends the value's text in the style of the session. NULL has none; the caller writes it as such.
///
/// # Errors
/// Those of `out`.
pub fn write_text(value: &Value<'_>, out: &mut impl Write) -> Result {
    match value {
        Value::Float32(number) if number.is_finite() => {
            styled_float(value, f64::from(*number), FLOAT_DIGITS, out)
        }
        Value::Float64(number) if number.is_finite() => {
            styled_float(value, *number, DOUBLE_DIGITS, out)
        }
        Value::Bytes(bytes) if current().escapes_bytes => out.write_str(&shown_escaped(bytes)),
        Value::Date(days) => write_date(*days, &current(), out),
        Value::Time(micros) => write_time(*micros, out),
        Value::Timestamp(micros) => write_timestamp(*micros, &current(), out),
        Value::TimestampTz(micros) => write_timestamp_tz(*micros, &current(), out),
        Value::Interval(interval) => write_interval(*interval, &current(), out),
        other => write_plain(other, out),
    }
}

/// Appends the text of a value of a type, where arrays are text already, that of the default style.
///
/// # Errors
/// Those of `out`, and text that is none of the type.
pub fn write_text_of(
    value: &Value<'_>,
    column_type: ColumnType,
    out: &mut impl Write,
) -> std::result::Result<(), QueryError> {
    let failed = |_| QueryError::Internal { message: "text cannot be written".to_owned() };
    match (value, column_type) {
        (Value::Text(text), ColumnType::Array(element)) if is_styled(element) => {
            out.write_str(&styled_array(text, element)?).map_err(failed)
        }
        (Value::Text(text), ColumnType::Stored(own @ DataType::Composite(of)))
            if is_styled(own) =>
        {
            out.write_str(&styled_record(of, text)?).map_err(failed)
        }
        _ => write_text(value, out).map_err(failed),
    }
}

/// Whether the style says how values of this type are written.
pub(crate) fn is_styled(element: DataType) -> bool {
    let is_of_type = |own: DataType| {
        matches!(
            own.unrounded(),
            DataType::Float32
                | DataType::Float64
                | DataType::Bytes
                | DataType::Date
                | DataType::Timestamp
                | DataType::TimestampTz
                | DataType::Interval
        )
    };
    let is_styled = match element {
        DataType::Composite(of) => of.has(&is_of_type),
        other => is_of_type(other),
    };
    is_styled && *current() != Style::default()
}

/// An array in the style of the session.
fn styled_array(array: &str, element: DataType) -> std::result::Result<String, QueryError> {
    let mut elements = read_array(array)?;
    for text in elements.iter_mut().flatten() {
        let value = by_default(|| read_text(element, text).map(Value::into_owned))?;
        let mut styled = String::new();
        write_text_of(&value, element.into(), &mut styled)?;
        *text = styled.into();
    }
    Ok(write_array(elements.iter().map(Option::as_deref)))
}

/// Digits of `real` and `double precision` that always survive.
const FLOAT_DIGITS: i8 = 6;
const DOUBLE_DIGITS: i8 = 15;

/// Above zero `extra_float_digits` asks for what is read back as the same number.
fn styled_float(value: &Value<'_>, number: f64, own: i8, out: &mut impl Write) -> Result {
    match current().float_digits {
        1.. => write_plain(value, out),
        extra => {
            out.write_str(&with_digits(number, usize::try_from(own + extra).unwrap_or(0).max(1)))
        }
    }
}

/// Appends the value's text in the default style, but for dates and bytes.
fn write_plain(value: &Value<'_>, out: &mut impl Write) -> Result {
    match value {
        Value::Boolean(value) => out.write_str(if *value { "t" } else { "f" }),
        Value::Text(text) => out.write_str(text),
        Value::Float32(value) if value.is_finite() => {
            float(f64::from(*value), &format!("{value:e}"), &value.to_string(), out)
        }
        Value::Float64(value) if value.is_finite() => {
            float(*value, &format!("{value:e}"), &value.to_string(), out)
        }
        other => write!(out, "{other}"),
    }
}

/// The value's text in the default style, which is read again.
#[must_use]
pub fn written_plainly(value: &Value<'_>) -> String {
    by_default(|| written(value))
}

/// The value's text.
pub(crate) fn written(value: &Value<'_>) -> String {
    let mut text = String::new();
    // Memory takes what there is.
    let _ = write_text(value, &mut text);
    text
}

/// As PostgreSQL: digits in a row unless there would be many zeros, then with an exponent.
fn float(value: f64, exponent: &str, plain: &str, out: &mut impl Write) -> Result {
    let size = value.abs();
    if size == 0.0 || (1e-4..1e15).contains(&size) {
        return out.write_str(plain);
    }
    match exponent.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => write!(out, "{digits}e+{power:0>2}"),
        Some((digits, power)) => write!(out, "{digits}e-{:0>2}", &power[1..]),
        None => out.write_str(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_postgresql_writes_it() {
        assert_eq!(written(&Value::Boolean(true)), "t");
        assert_eq!(written(&Value::Float64(1.0)), "1");
        assert_eq!(written(&Value::Float64(1e21)), "1e+21");
        assert_eq!(written(&Value::Float64(-2.5e-7)), "-2.5e-07");
        assert_eq!(written(&Value::Float32(0.1)), "0.1");
        assert_eq!(written(&Value::Timestamp(1_500_000)), "1970-01-01 00:00:01.5");
        assert_eq!(written(&Value::TimestampTz(0)), "1970-01-01 00:00:00+00");
        assert_eq!(written(&Value::from(&[0u8, 255][..])), "\\x00ff");
    }
}
