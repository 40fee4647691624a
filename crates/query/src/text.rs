//! Values as PostgreSQL writes and reads them in text.

use std::fmt::{Result, Write};

use onrush::{DataType, Value};
use onrush_types::text;

use crate::error::QueryError;

/// Text as a value of a type. Bytes need no `\\x` where there is no backslash in them.
pub(crate) fn read_text(
    data_type: DataType,
    written: &str,
) -> std::result::Result<Value<'_>, QueryError> {
    match data_type {
        DataType::Bytes if !written.contains('\\') => Ok(Value::from(written.as_bytes())),
        other => Ok(text::parse(other, written)?),
    }
}

/// Appends the value's text. NULL has none; the caller writes it as such.
///
/// # Errors
/// Those of `out`.
pub fn write_text(value: &Value<'_>, out: &mut impl Write) -> Result {
    match value {
        Value::Boolean(value) => out.write_str(if *value { "t" } else { "f" }),
        Value::Text(text) => out.write_str(text),
        Value::Float32(value) if value.is_finite() => {
            float(f64::from(*value), &format!("{value:e}"), &value.to_string(), out)
        }
        Value::Float64(value) if value.is_finite() => {
            float(*value, &format!("{value:e}"), &value.to_string(), out)
        }
        Value::Timestamp(_) => out.write_str(&value.to_string().replace('T', " ")),
        Value::TimestampTz(_) => {
            let text = value.to_string().replace('T', " ");
            write!(out, "{}+00", text.trim_end_matches('Z'))
        }
        other => write!(out, "{other}"),
    }
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
