//! Days and timestamps: steps of an interval, and casts, which take timestamps without time zone for those of
//! UTC.

use super::evaluate::{EvaluationError, mismatch};
use super::field;
use super::tree::Kind;
use crate::calendar::{self, DAY_MICROS, Day};
use crate::{Interval, Value};

pub(super) const TOO_FAR: EvaluationError =
    EvaluationError::TimestampOutOfRange("timestamp out of range");

/// A timestamp that much later: first the months, then the days, then the rest, as PostgreSQL does.
pub(super) fn shifted(
    timestamp: &Value<'_>,
    by: Interval,
) -> Result<Value<'static>, EvaluationError> {
    let (Value::Timestamp(micros) | Value::TimestampTz(micros)) = timestamp else {
        return Err(mismatch());
    };
    if calendar::is_infinite_timestamp(*micros) {
        return Ok(timestamp.clone().into_owned());
    }
    let (mut day, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    if by.months != 0 {
        day = Day::at(day).plus_months(by.months.into()).ok_or(TOO_FAR)?.days();
    }
    day += i64::from(by.days);
    let micros = day
        .checked_mul(DAY_MICROS)
        .and_then(|micros| micros.checked_add(time))
        .and_then(|micros| micros.checked_add(by.micros))
        .filter(|micros| {
            calendar::is_timestamp(*micros) && !calendar::is_infinite_timestamp(*micros)
        })
        .ok_or(TOO_FAR)?;
    Ok(match timestamp {
        Value::Timestamp(_) => Value::Timestamp(micros),
        _ => Value::TimestampTz(micros),
    })
}

/// Between days and timestamps.
pub(super) fn cast(value: &Value<'_>, to: Kind) -> Result<Value<'static>, EvaluationError> {
    let micros = field::micros_of(value)?;
    Ok(match to {
        Kind::Timestamp => Value::Timestamp(micros),
        Kind::TimestampTz => Value::TimestampTz(micros),
        Kind::Time if calendar::is_infinite_timestamp(micros) => Value::Null,
        Kind::Time => Value::Time(micros.rem_euclid(DAY_MICROS)),
        Kind::Date => match value {
            Value::Date(day) => Value::Date(*day),
            _ => Value::Date(calendar::date_of_timestamp(micros)),
        },
        _ => return Err(mismatch()),
    })
}
