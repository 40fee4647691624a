//! `make_interval`, `make_date`, `make_time`, `make_timestamp`, `make_timestamptz`, and `isfinite`.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Interval, Value};

use super::fields::zone_named;
use super::system::SystemFunction;
use crate::error::{QueryError, Result};
use crate::interval::{MICROS_PER_DAY, out_of_range};
use crate::style::{Zone, current};
use crate::timestamp::{
    date as date_of, day_of, is_infinite_date, is_infinite_timestamp, timestamp_at,
};
use crate::types::ColumnType;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Those that statements call by name.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |name, returns: ColumnType, call: fn(&[Value<'_>]) -> Result<Value<'static>>| {
        let strict = move |given: &[Value<'_>]| match given.iter().any(Value::is_null) {
            true => Ok(Value::Null),
            false => call(given),
        };
        SystemFunction::fallible(name, returns, strict).into_udf()
    };
    let stored = ColumnType::Stored;
    vec![
        function("make_interval", ColumnType::Stored(DataType::Interval), make_interval),
        function("make_date", stored(DataType::Date), |given| match given {
            [year, month, day] => {
                let days = day_told(year, month, day)?;
                let message = || {
                    let written = written_date(year, month, day);
                    QueryError::refused("22008", format!("date out of range: {written}"))
                };
                Ok(Value::Date(date_of(days).ok_or_else(message)?))
            }
            _ => Err(no_such("make_date")),
        }),
        function("make_time", stored(DataType::Time), |given| match given {
            [hour, minute, second] => match time(hour, minute, second)? {
                micros @ ..MICROS_PER_DAY => Ok(Value::Time(micros)),
                _ => Err(QueryError::refused("22008", "a time of day is below 24:00:00")),
            },
            _ => Err(no_such("make_time")),
        }),
        function("make_timestamp", stored(DataType::Timestamp), |given| {
            Ok(Value::Timestamp(local(given, "make_timestamp")?))
        }),
        function("make_timestamptz", stored(DataType::TimestampTz), |given| match given {
            [fields @ .., Value::Text(zone)] => {
                Ok(Value::TimestampTz(zone_told(zone)?.utc_of(local(fields, "make_timestamptz")?)?))
            }
            fields => {
                Ok(Value::TimestampTz(current().zone.utc_of(local(fields, "make_timestamptz")?)?))
            }
        }),
        function("isfinite", stored(DataType::Boolean), |given| match given {
            [value] => Ok(Value::Boolean(match value {
                Value::Date(days) => !is_infinite_date(*days),
                Value::Timestamp(micros) | Value::TimestampTz(micros) => {
                    !is_infinite_timestamp(*micros)
                }
                _ => true,
            })),
            _ => Err(no_such("isfinite")),
        }),
    ]
}

/// Years, months, weeks, days, hours, minutes and seconds, as many as are given.
fn make_interval(given: &[Value<'_>]) -> Result<Value<'static>> {
    if given.len() > 7 {
        return Err(no_such("make_interval"));
    }
    let part = |at: usize| given.get(at).map_or(Ok(0), whole);
    let seconds = given.get(6).map_or(Ok(0.0), number)?;
    let (years, months, weeks, of_weeks) = (part(0)?, part(1)?, part(2)?, part(3)?);
    let time = (part(4)? * 3600 + part(5)? * 60) * MICROS_PER_SECOND;
    let micros = (seconds * 1e6).round_ties_even();
    let small = |number: i64| i32::try_from(number).map_err(|_| out_of_range());
    if micros.is_nan() || micros.abs() >= i64::MAX as f64 {
        return Err(out_of_range());
    }
    let interval = Interval {
        months: small(years * 12 + months)?,
        days: small(weeks * 7 + of_weeks)?,
        micros: time.checked_add(micros as i64).ok_or_else(out_of_range)?,
    };
    Ok(Value::Interval(interval))
}

fn local(given: &[Value<'_>], name: &str) -> Result<i64> {
    let [year, month, day, hour, minute, second] = given else { return Err(no_such(name)) };
    let time = time(hour, minute, second)?;
    timestamp_at(day_told(year, month, day)?, time).ok_or_else(|| {
        let written = written_date(year, month, day);
        QueryError::refused("22008", format!("timestamp out of range: {written}"))
    })
}

fn written_date(year: &Value<'_>, month: &Value<'_>, day: &Value<'_>) -> String {
    let part = |value: &Value<'_>| value.as_i64().unwrap_or_default();
    format!("{}-{:02}-{:02}", part(year), part(month), part(day))
}

/// Days since 1970. Years below zero are those before Christ; there is no year 0.
fn day_told(year: &Value<'_>, month: &Value<'_>, day: &Value<'_>) -> Result<i64> {
    let of_era = whole(year)?;
    let known = day_of(if of_era < 0 { of_era + 1 } else { of_era }, whole(month)?, whole(day)?);
    let message = || format!("date field value out of range: {}", written_date(year, month, day));
    match known {
        Ok(known) if of_era != 0 => Ok(known.days()),
        _ => Err(QueryError::refused("22008", message())),
    }
}

fn time(hour: &Value<'_>, minute: &Value<'_>, second: &Value<'_>) -> Result<i64> {
    let (hour, minute, second) = (whole(hour)?, whole(minute)?, number(second)?);
    let is_end = hour == 24 && minute == 0 && second == 0.0;
    let is_there = (0..24).contains(&hour) || is_end;
    if !is_there || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&second) {
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        return Err(QueryError::refused("22008", message));
    }
    let micros = (second * 1e6).round_ties_even() as i64;
    Ok((hour * 3600 + minute * 60) * MICROS_PER_SECOND + micros)
}

/// A zone by its name, or hours to the east of UTC with their sign.
fn zone_told(name: &str) -> Result<Zone> {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        return Err(QueryError::refused("22023", message));
    }
    let Some(digits) = name.strip_prefix(['+', '-']) else { return zone_named(name) };
    let mut parts = digits.split(':').map(|part| part.parse::<i32>().ok());
    let (hours, minutes) = (parts.next().flatten(), parts.next());
    let minutes = minutes.map_or(Some(0), |minutes| minutes);
    let (Some(hours), Some(minutes), None) = (hours, minutes, parts.next()) else {
        let message = format!("time zone \"{name}\" not recognized");
        return Err(QueryError::refused("22023", message));
    };
    let (hours, minutes) = if digits.len() > 2 && !digits.contains(':') {
        (hours / 100, hours % 100)
    } else {
        (hours, minutes)
    };
    let sign = if name.starts_with('-') { -1 } else { 1 };
    let is_there = hours <= 15 && minutes < 60;
    let zone = Zone::fixed(sign * (hours * 3600 + minutes * 60)).filter(|_| is_there);
    zone.ok_or_else(|| QueryError::refused("22023", "numeric time zone is out of range"))
}

fn whole(value: &Value<'_>) -> Result<i64> {
    let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
    number.ok_or_else(|| no_such("for such numbers"))
}

fn number(value: &Value<'_>) -> Result<f64> {
    Ok(match value {
        Value::Float64(number) => *number,
        Value::Float32(number) => f64::from(*number),
        Value::Decimal(number) => number.to_string().parse().unwrap_or(f64::NAN),
        Value::Numeric(number) => number.to_f64(),
        other => whole(other)? as f64,
    })
}

fn no_such(function: &str) -> QueryError {
    let message = format!("there is no function {function} of these arguments");
    QueryError::UnknownFunction { message }
}
