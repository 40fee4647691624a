//! Fields of timestamps and days: `extract` and `date_trunc`. Timestamps with time zone are taken to be of UTC.

use jiff::civil::Weekday;
use rust_decimal::Decimal;

use super::evaluate::{EvaluationError, mismatch};
use super::timestamp::TOO_FAR;
use crate::calendar::{self, DAY_MICROS, Day, TIMESTAMP_MICROS_MIN};
use crate::{Numeric, Value};

/// A part of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The year.
    Year,
    /// The quarter of the year, from 1.
    Quarter,
    /// The month, from 1.
    Month,
    /// The week of the ISO year, from 1; weeks begin on Monday.
    Week,
    /// The day of the month, from 1.
    Day,
    /// The hour.
    Hour,
    /// The minute.
    Minute,
    /// The second, with what is behind the point.
    Second,
    /// The second in milliseconds.
    Milliseconds,
    /// The second in microseconds.
    Microseconds,
    /// The day of the week, from 0 for Sunday.
    DayOfWeek,
    /// The day of the week, from 1 for Monday.
    IsoDayOfWeek,
    /// The day of the year, from 1.
    DayOfYear,
    /// The year that the ISO week is of.
    IsoYear,
    /// Seconds since 1970-01-01 00:00:00.
    Epoch,
}

impl Field {
    /// All, in the order of the numbers that stand for them in the catalogue, from 1 on.
    pub(super) const ALL: [Field; 15] = [
        Field::Year,
        Field::Quarter,
        Field::Month,
        Field::Week,
        Field::Day,
        Field::Hour,
        Field::Minute,
        Field::Second,
        Field::Milliseconds,
        Field::Microseconds,
        Field::DayOfWeek,
        Field::IsoDayOfWeek,
        Field::DayOfYear,
        Field::IsoYear,
        Field::Epoch,
    ];

    /// Its name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Field::Year => "year",
            Field::Quarter => "quarter",
            Field::Month => "month",
            Field::Week => "week",
            Field::Day => "day",
            Field::Hour => "hour",
            Field::Minute => "minute",
            Field::Second => "second",
            Field::Milliseconds => "milliseconds",
            Field::Microseconds => "microseconds",
            Field::DayOfWeek => "dow",
            Field::IsoDayOfWeek => "isodow",
            Field::DayOfYear => "doy",
            Field::IsoYear => "isoyear",
            Field::Epoch => "epoch",
        }
    }

    /// The field that SQL calls by this name, in whatever case.
    #[must_use]
    pub fn named(name: &str) -> Option<Field> {
        let is_named = |field: &Field| field.name().eq_ignore_ascii_case(name);
        Field::ALL.into_iter().find(is_named)
    }

    /// Whether it is of the time of day.
    pub(super) fn is_of_time(self) -> bool {
        use Field::{Hour, Microseconds, Milliseconds, Minute, Second};
        matches!(self, Hour | Minute | Second | Milliseconds | Microseconds)
    }

    /// Whether a timestamp can be cut off behind it.
    pub(super) fn is_unit(self) -> bool {
        use Field::{DayOfWeek, DayOfYear, Epoch, IsoDayOfWeek, IsoYear};
        !matches!(self, DayOfWeek | IsoDayOfWeek | DayOfYear | IsoYear | Epoch)
    }
}

/// `extract(field FROM value)`.
pub(super) fn extracted(
    field: Field,
    value: &Value<'_>,
) -> Result<Value<'static>, EvaluationError> {
    let (days, time, is_infinite) = match value {
        Value::Date(days) => (i64::from(*days), 0, calendar::is_infinite_date(*days)),
        _ => {
            let micros = micros_of(value)?;
            let (days, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
            (days, time, calendar::is_infinite_timestamp(micros))
        }
    };
    if is_infinite {
        return Ok(match field {
            Field::Year | Field::IsoYear | Field::Epoch => Value::Numeric(match days < 0 {
                true => Numeric::NegativeInfinity,
                false => Numeric::Infinity,
            }),
            _ => Value::Null,
        });
    }
    let of_second = time % 60_000_000;
    let number = match field {
        Field::Hour => Decimal::from(time / 3_600_000_000),
        Field::Minute => Decimal::from(time / 60_000_000 % 60),
        Field::Second => Decimal::new(of_second, 6),
        Field::Milliseconds => Decimal::new(of_second, 3),
        Field::Microseconds => Decimal::from(of_second),
        Field::Epoch if matches!(value, Value::Date(_)) => Decimal::from(days * 86_400),
        Field::Epoch => Decimal::new(micros_of(value)?, 6),
        _ => {
            let day = Day::at(days);
            let date = day.within();
            Decimal::from(match field {
                // There is no year 0.
                Field::Year if day.year() <= 0 => day.year() - 1,
                Field::Year => day.year(),
                Field::Quarter => i64::from((date.month() + 2) / 3),
                Field::Month => i64::from(date.month()),
                Field::Week => i64::from(date.iso_week_date().week()),
                Field::Day => i64::from(date.day()),
                Field::DayOfWeek => i64::from(date.weekday().to_sunday_zero_offset()),
                Field::IsoDayOfWeek => i64::from(date.weekday().to_monday_one_offset()),
                Field::DayOfYear => i64::from(date.day_of_year()),
                _ if day.iso_year() <= 0 => day.iso_year() - 1,
                _ => day.iso_year(),
            })
        }
    };
    Ok(Value::Decimal(number))
}

/// `date_trunc('field', value)` of a timestamp.
pub(super) fn truncated(
    field: Field,
    value: &Value<'_>,
) -> Result<Value<'static>, EvaluationError> {
    let micros = micros_of(value)?;
    if calendar::is_infinite_timestamp(micros) {
        return Ok(value.clone().into_owned());
    }
    let unit_micros = match field {
        Field::Microseconds => Some(1),
        Field::Milliseconds => Some(1_000),
        Field::Second => Some(1_000_000),
        Field::Minute => Some(60_000_000),
        Field::Hour => Some(3_600_000_000),
        Field::Day => Some(DAY_MICROS),
        _ => None,
    };
    let cut = match unit_micros {
        Some(unit) => micros - micros.rem_euclid(unit),
        None => {
            let day = Day::at(micros.div_euclid(DAY_MICROS));
            let first = |month: i8| Day::new(day.year(), month, 1).map(Day::days).ok_or(TOO_FAR);
            let days = match field {
                Field::Week => {
                    day.days() - i64::from(day.within().weekday().since(Weekday::Monday))
                }
                Field::Month => first(day.month())?,
                Field::Quarter => first((day.month() - 1) / 3 * 3 + 1)?,
                Field::Year => first(1)?,
                _ => return Err(mismatch()),
            };
            days * DAY_MICROS
        }
    };
    if cut < TIMESTAMP_MICROS_MIN {
        return Err(TOO_FAR);
    }
    match value {
        Value::Timestamp(_) => Ok(Value::Timestamp(cut)),
        Value::TimestampTz(_) => Ok(Value::TimestampTz(cut)),
        _ => Err(mismatch()),
    }
}

/// Microseconds since 1970-01-01 00:00:00, a day's at its beginning; those of an infinity for one.
pub(super) fn micros_of(value: &Value<'_>) -> Result<i64, EvaluationError> {
    match value {
        Value::Date(day) => calendar::timestamp_of_date(*day).ok_or(TOO_FAR),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Ok(*micros),
        _ => Err(mismatch()),
    }
}
