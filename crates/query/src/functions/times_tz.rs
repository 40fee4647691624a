//! What is computed with times of day that have an offset.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Interval, TimeTz, Value};

use super::typed::{Call, TypedFunction};
use crate::error::{QueryError, Result};
use crate::interval::MICROS_PER_DAY;
use crate::style::coerce_timestamp;
use crate::timestamp::{is_infinite_timestamp, of_date, timestamp, timestamp_out_of_range};

fn function(name: &'static str, returns: DataType, call: Call) -> Arc<ScalarUDF> {
    let made = match returns {
        DataType::Time => TypedFunction::new(name, |_| DataType::Time.into(), call),
        DataType::TimestampTz => TypedFunction::new(name, |_| DataType::TimestampTz.into(), call),
        _ => TypedFunction::new(name, |_| DataType::TimeTz.into(), call),
    };
    made.strict().into_udf()
}

/// A time or a timestamp as a time of day, with or without an offset.
pub(crate) fn time_as(wanted: DataType) -> Arc<ScalarUDF> {
    match wanted {
        DataType::Time => {
            function("time_without_offset", wanted, |given| cast(given.values, DataType::Time))
        }
        _ => function("time_with_offset", wanted, |given| cast(given.values, DataType::TimeTz)),
    }
}

fn cast(given: &[Value<'_>], to: DataType) -> Result<Value<'static>> {
    let [value] = given else { return Err(no_such()) };
    coerce_timestamp(value, to)?.ok_or_else(no_such)
}

/// A time with an offset, and an interval later or earlier, of which only what is less than a day counts.
pub(crate) fn time_tz_moved(is_back: bool) -> Arc<ScalarUDF> {
    match is_back {
        true => function("time_tz_minus", DataType::TimeTz, |given| moved(given.values, -1)),
        false => function("time_tz_plus", DataType::TimeTz, |given| moved(given.values, 1)),
    }
}

fn moved(given: &[Value<'_>], sign: i64) -> Result<Value<'static>> {
    let [Value::TimeTz(time), Value::Interval(Interval { micros, .. })] = given else {
        return Err(no_such());
    };
    let micros = (time.micros + sign * (micros % MICROS_PER_DAY)).rem_euclid(MICROS_PER_DAY);
    Ok(Value::TimeTz(TimeTz { micros, ..*time }))
}

/// A day at a time with an offset.
pub(crate) fn date_at_time() -> Arc<ScalarUDF> {
    function("date_at_time_tz", DataType::TimestampTz, |given| match given.values {
        [Value::Date(days), Value::TimeTz(time)] => {
            let begin = of_date(*days)?;
            if is_infinite_timestamp(begin) {
                return Ok(Value::TimestampTz(begin));
            }
            let made = timestamp(begin + time.utc_micros());
            made.map(Value::TimestampTz).ok_or_else(timestamp_out_of_range)
        }
        _ => Err(no_such()),
    })
}

fn no_such() -> QueryError {
    QueryError::Internal {
        message: "a time with an offset is computed of something else".to_owned(),
    }
}
