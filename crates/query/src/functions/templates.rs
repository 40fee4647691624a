//! `to_char`, `to_date`, `to_timestamp` and `to_number`.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Numeric, Value};

use super::system::SystemFunction;
use crate::error::{QueryError, Result};
use crate::interval::MICROS_PER_DAY;
use crate::pattern::{
    Broken, read_date, read_number, read_timestamp, write_float, write_number, write_timestamp,
};
use crate::style::current;
use crate::timestamp::civil;
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
    let timestamp = |timestamp: Broken<'_>| write_timestamp(pattern, &timestamp).map(Value::from);
    let with_zone = |micros: i64| {
        let offsets = current().zone.offsets(micros)?;
        let local = micros + i64::from(offsets.seconds) * 1_000_000;
        timestamp(Broken::timestamp(local, Some((offsets.seconds, &offsets.abbreviation)))?)
    };
    match value {
        Value::Timestamp(micros) => timestamp(Broken::timestamp(*micros, None)?),
        Value::TimestampTz(micros) => with_zone(*micros),
        Value::Date(days) => with_zone(current().zone.utc_of(i64::from(*days) * MICROS_PER_DAY)?),
        Value::Interval(interval) => timestamp(Broken::interval(*interval)),
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
    // What is too large or no number ends at a limit or at zero there.
    let micros = (seconds * 1e6).round() as i64;
    let is_there = !seconds.is_nan() && civil(micros).is_ok_and(|at| at.year() > 0);
    match is_there {
        true => Ok(Value::TimestampTz(micros)),
        false => {
            let message = format!("timestamp out of range: \"{seconds}\"");
            Err(QueryError::refused("22008", message))
        }
    }
}

fn wrong_types(function: &str) -> QueryError {
    let message = format!("there is no function {function} for values of these types");
    QueryError::UnknownFunction { message }
}
