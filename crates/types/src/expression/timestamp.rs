//! Days and timestamps: steps of an interval, and casts, which take timestamps without time zone for those of
//! UTC.

use jiff::Span;

use super::evaluate::{EvaluationError, mismatch};
use super::field;
use super::tree::Kind;
use crate::convert::{DAY_MICROS, TIMESTAMP_MICROS_MAX, TIMESTAMP_MICROS_MIN};
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
    let (mut day, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    if by.months != 0 {
        let months = Span::new().try_months(by.months).map_err(|_| TOO_FAR)?;
        let date = field::date_of(*micros)?.checked_add(months).map_err(|_| TOO_FAR)?;
        day = field::days_of(date)?;
    }
    day += i64::from(by.days);
    let micros = day
        .checked_mul(DAY_MICROS)
        .and_then(|micros| micros.checked_add(time))
        .and_then(|micros| micros.checked_add(by.micros))
        .filter(|micros| (TIMESTAMP_MICROS_MIN..=TIMESTAMP_MICROS_MAX).contains(micros))
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
        Kind::Time => Value::Time(micros.rem_euclid(DAY_MICROS)),
        Kind::Date => {
            Value::Date(i32::try_from(micros.div_euclid(DAY_MICROS)).map_err(|_| TOO_FAR)?)
        }
        _ => return Err(mismatch()),
    })
}
