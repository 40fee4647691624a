//! Values to bytes, as PostgreSQL writes them.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};
use onrush::Value;
use postgres_types::{ToSql, Type};

use super::decode::{EPOCH_DAYS, EPOCH_MICROS};
use crate::error::{Result, SqlError, state};

/// Appends the value's text. NULL has none; the caller writes it as such.
pub(crate) fn text(value: &Value<'_>, out: &mut BytesMut) {
    // Writing to memory does not fail.
    let _ = match value {
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
    };
}

/// As PostgreSQL: digits in a row unless there would be many zeros, then with an exponent.
fn float(value: f64, exponent: &str, plain: &str, out: &mut BytesMut) -> std::fmt::Result {
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

/// Appends the value in the binary form of its own type. NULL has none.
pub(crate) fn binary(value: &Value<'_>, out: &mut BytesMut) -> Result<()> {
    match value {
        Value::Null | Value::Default => {}
        Value::Boolean(value) => out.put_u8(u8::from(*value)),
        Value::Int16(value) => out.put_i16(*value),
        Value::Int32(value) => out.put_i32(*value),
        Value::Int64(value) => out.put_i64(*value),
        Value::Float32(value) => out.put_f32(*value),
        Value::Float64(value) => out.put_f64(*value),
        Value::Decimal(value) => {
            let internal = |error| SqlError::new(state::INTERNAL, format!("numeric: {error}"));
            value.to_sql(&Type::NUMERIC, out).map_err(internal)?;
        }
        Value::Text(text) => out.put_slice(text.as_bytes()),
        Value::Bytes(bytes) => out.put_slice(bytes),
        Value::Uuid(value) => out.put_slice(value.as_bytes()),
        Value::Date(days) => out.put_i32(days - EPOCH_DAYS),
        Value::Time(micros) => out.put_i64(*micros),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => out.put_i64(micros - EPOCH_MICROS),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value<'_>) -> String {
        let mut out = BytesMut::new();
        text(&value, &mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    #[test]
    fn text_is_as_postgresql_writes_it() {
        assert_eq!(written(Value::Boolean(true)), "t");
        assert_eq!(written(Value::Float64(1.0)), "1");
        assert_eq!(written(Value::Float64(1e21)), "1e+21");
        assert_eq!(written(Value::Float64(-2.5e-7)), "-2.5e-07");
        assert_eq!(written(Value::Float32(0.1)), "0.1");
        assert_eq!(written(Value::Timestamp(1_500_000)), "1970-01-01 00:00:01.5");
        assert_eq!(written(Value::TimestampTz(0)), "1970-01-01 00:00:00+00");
        assert_eq!(written(Value::from(&[0u8, 255][..])), "\\x00ff");
    }
}
