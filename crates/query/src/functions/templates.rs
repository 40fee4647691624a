//! `to_char`, `to_date`, `to_timestamp` and `to_number`.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Numeric, Value};
use onrush_types::calendar::TIMESTAMP_INFINITIES;

use super::system::SystemFunction;
use crate::error::{QueryError, Result};
use crate::pattern::{
    Broken, read_date, read_number, read_timestamp, write_float, write_number, write_timestamp,
};
use crate::style::current;
use crate::text::written;
use crate::timestamp::{is_infinite_date, is_infinite_timestamp, of_date, timestamp};
use crate::types::ColumnType;

/// What `to_number` makes while a statement is read.
const NUMBER: DataType = DataType::Decimal { precision: 28, scale: 10 };

/// Those that statements call by name.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |name, returns: DataType, call: fn(&[Value<'_>]) -> Result<Value<'static>>| {
        let strict = move |given: &[Value<'_>]| match given.iter().any(Value::is_null) {
            true => Ok(Value::Null),
            false => call(given),
        };
        SystemFunction::fallible(name, ColumnType::Stored(returns), strict).immutable().into_udf()
    };
    vec![
        function("to_char", DataType::Text, to_char),
        function("to_date", DataType::Date, |given| match given {
            [Value::Text(written), Value::Text(pattern)] => {
                Ok(Value::Date(read_date(pattern, written)?))
            }
            _ => Err(wrong_types("to_date")),
        }),
        function("to_timestamp", DataType::TimestampTz, to_timestamp),
        number_reader(NUMBER),
    ]
}

/// `to_number`, when all types are known.
pub(crate) fn to_number() -> Arc<ScalarUDF> {
    number_reader(DataType::Numeric(None))
}

fn number_reader(returns: DataType) -> Arc<ScalarUDF> {
    let read = |given: &[Value<'_>]| match given {
        [Value::Text(written), Value::Text(pattern)] => {
            Ok(Value::Numeric(read_number(pattern, written)?))
        }
        [_, Value::Null] | [Value::Null, _] => Ok(Value::Null),
        _ => Err(wrong_types("to_number")),
    };
    SystemFunction::fallible("to_number", returns.into(), read).immutable().into_udf()
}

fn to_char(given: &[Value<'_>]) -> Result<Value<'static>> {
    let [value, Value::Text(pattern)] = given else { return Err(wrong_types("to_char")) };
    let number = |number: &Numeric| write_number(pattern, number).map(Value::from);
    let written_by = |parts: Broken<'_>| write_timestamp(pattern, &parts).map(Value::from);
    let with_zone = |micros: i64| {
        let offsets = current().zone.offsets(micros)?;
        let local = micros + i64::from(offsets.seconds) * 1_000_000;
        written_by(Broken::timestamp(local, Some((offsets.seconds, &offsets.abbreviation))))
    };
    match value {
        Value::Timestamp(micros) | Value::TimestampTz(micros) if is_infinite_timestamp(*micros) => {
            Ok(Value::Null)
        }
        Value::Date(days) if is_infinite_date(*days) => Ok(Value::Null),
        Value::Timestamp(micros) => written_by(Broken::timestamp(*micros, None)),
        Value::TimestampTz(micros) => with_zone(*micros),
        Value::Date(days) => with_zone(current().zone.utc_of(of_date(*days)?)?),
        Value::Interval(interval) => written_by(Broken::interval(*interval)),
        Value::Float32(value) => write_float(pattern, f64::from(*value), 6).map(Value::from),
        Value::Float64(value) => write_float(pattern, *value, 15).map(Value::from),
        value if let Some(value) = value.as_numeric() => number(&value),
        _ => Err(wrong_types("to_char")),
    }
}

/// Of text by a pattern, or of seconds since 1970.
fn to_timestamp(given: &[Value<'_>]) -> Result<Value<'static>> {
    let seconds = match given {
        [Value::Text(written), Value::Text(pattern)] => {
            let local = read_timestamp(pattern, written)?;
            return Ok(Value::TimestampTz(current().zone.utc_of(local)?));
        }
        [Value::Int16(seconds)] => f64::from(*seconds),
        [Value::Int32(seconds)] => f64::from(*seconds),
        [Value::Int64(seconds)] => *seconds as f64,
        [Value::Float32(seconds)] => f64::from(*seconds),
        [Value::Float64(seconds)] => *seconds,
        [number] if let Some(seconds) = number.as_numeric() => seconds.to_f64(),
        _ => return Err(wrong_types("to_timestamp")),
    };
    if seconds.is_nan() {
        return Err(QueryError::refused("22008", "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        let is_negative = seconds < 0.0;
        return Ok(Value::TimestampTz(TIMESTAMP_INFINITIES[usize::from(!is_negative)]));
    }
    // What is too large ends at a limit there.
    let micros = timestamp((seconds * 1e6).round() as i64);
    let message = || format!("timestamp out of range: \"{}\"", written(&Value::Float64(seconds)));
    micros.map(Value::TimestampTz).ok_or_else(|| QueryError::refused("22008", message()))
}

fn wrong_types(function: &str) -> QueryError {
    let message = format!("there is no function {function} for values of these types");
    QueryError::UnknownFunction { message }
}
