//! Timestamps as calendars tell them.

use onrush::Interval;
pub(crate) use onrush_types::calendar::{
    Day, date_of_timestamp, is_infinite_date, is_infinite_timestamp, timestamp_of_date,
};
use onrush_types::calendar::{is_date, is_timestamp};

use crate::error::{QueryError, Result};
use crate::interval::{MICROS_PER_DAY, times};

/// Julian days before 1970.
const JULIAN_DAYS: i64 = 2_440_588;

/// The day of a count of microseconds.
pub(crate) fn day_at(micros: i64) -> Day {
    Day::at(micros.div_euclid(MICROS_PER_DAY))
}

/// A day of a year, which is 0 for 1 BC, if there is such a day.
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> Result<Day> {
    let made = match (i8::try_from(month), i8::try_from(day)) {
        (Ok(month), Ok(day)) => Day::new(year, month, day),
        _ => None,
    };
    made.ok_or_else(out_of_range)
}

/// The day with a number in its year.
pub(crate) fn day_of_year(year: i64, day: i64) -> Result<Day> {
    let first = day_of(year, 1, 1)?;
    let is_there = (1..=i64::from(first.within().days_in_year())).contains(&day);
    if is_there { Ok(Day::at(first.days() + day - 1)) } else { Err(out_of_range()) }
}

/// The number of a day since the one that Julian days begin with.
pub(crate) fn julian_day(of: Day) -> i64 {
    of.days() + JULIAN_DAYS
}

/// The number of days since 1970 of one with this number.
pub(crate) fn julian_days(number: i64) -> i64 {
    number - JULIAN_DAYS
}

/// The number that is shown of a year: there is none between 1 BC and 1.
pub(crate) fn shown_year(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// A day as a date, if it is finite and there is such a date.
pub(crate) fn date(days: i64) -> Option<i32> {
    let days = i32::try_from(days).ok()?;
    (is_date(days) && !is_infinite_date(days)).then_some(days)
}

/// The timestamp so many microseconds after 1970, if it is finite and there is such a timestamp.
pub(crate) fn timestamp(micros: i64) -> Option<i64> {
    (is_timestamp(micros) && !is_infinite_timestamp(micros)).then_some(micros)
}

/// The beginning of a day, and so many microseconds of it.
pub(crate) fn timestamp_at(days: i64, micros: i64) -> Option<i64> {
    timestamp(days.checked_mul(MICROS_PER_DAY)?.checked_add(micros)?)
}

/// A timestamp with the months and days of an interval; of a month that is shorter the last day.
pub(crate) fn plus_calendar(micros: i64, interval: Interval) -> Result<i64> {
    let time = micros.rem_euclid(MICROS_PER_DAY);
    let mut days = micros.div_euclid(MICROS_PER_DAY);
    if interval.months != 0 {
        let moved = Day::at(days).plus_months(interval.months.into());
        days = moved.ok_or_else(timestamp_out_of_range)?.days();
        timestamp_at(days, time).ok_or_else(timestamp_out_of_range)?;
    }
    timestamp_at(days + i64::from(interval.days), time).ok_or_else(timestamp_out_of_range)
}

/// A timestamp that much later by a calendar without time zones.
pub(crate) fn plus(micros: i64, interval: Interval) -> Result<i64> {
    if is_infinite_timestamp(micros) {
        return Ok(micros);
    }
    let moved = plus_calendar(micros, interval)?.checked_add(interval.micros);
    moved.and_then(timestamp).ok_or_else(timestamp_out_of_range)
}

/// A date so many days later.
pub(crate) fn date_plus(days: i32, by: i64) -> Result<i32> {
    if is_infinite_date(days) {
        return Ok(days);
    }
    date(i64::from(days) + by).ok_or_else(|| QueryError::refused("22008", "date out of range"))
}

/// The days from one date to another.
pub(crate) fn days_between(earlier: i32, later: i32) -> Result<i32> {
    if is_infinite_date(earlier) || is_infinite_date(later) {
        return Err(QueryError::refused("22008", "cannot subtract infinite dates"));
    }
    // Finite dates are not that far from each other.
    later.checked_sub(earlier).ok_or_else(out_of_range)
}

/// The beginning of a date.
pub(crate) fn of_date(days: i32) -> Result<i64> {
    timestamp_of_date(days)
        .ok_or_else(|| QueryError::refused("22008", "date out of range for timestamp"))
}

pub(crate) fn timestamp_out_of_range() -> QueryError {
    QueryError::refused("22008", "timestamp out of range")
}

pub(crate) fn out_of_range() -> QueryError {
    QueryError::refused("22008", "date/time field value out of range")
}

/// Years, months, days and time from `earlier` to `later`, each counted by itself; what is missing of
/// a month is taken from the one in which the earlier moment lies.
pub(crate) fn age(later: i64, earlier: i64) -> Result<Interval> {
    if is_infinite_timestamp(later) || is_infinite_timestamp(earlier) {
        let message = "the age of an infinite timestamp is not supported".to_owned();
        return Err(QueryError::NotSupported { message });
    }
    if later < earlier {
        return times(age(earlier, later)?, -1.0);
    }
    let (to, from) = (day_at(later), day_at(earlier));
    let mut days = i32::from(to.day()) - i32::from(from.day());
    let years = i32::try_from(to.year() - from.year()).map_err(|_| timestamp_out_of_range())?;
    let mut months = years * 12 + i32::from(to.month()) - i32::from(from.month());
    let mut micros = later.rem_euclid(MICROS_PER_DAY) - earlier.rem_euclid(MICROS_PER_DAY);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += i32::from(from.within().days_in_month());
        months -= 1;
    }
    Ok(Interval { months, days, micros })
}
