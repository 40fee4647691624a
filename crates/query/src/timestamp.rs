//! Timestamps as calendars tell them.

use jiff::civil::{Date, DateTime, date};
use jiff::{SignedDuration, ToSpan};

use onrush::Interval;

use crate::error::{QueryError, Result};
use crate::interval::{MICROS_PER_DAY, times};

/// Julian days before 1970.
const JULIAN_DAYS: i64 = 2_440_588;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Date and time of a count of microseconds.
pub(crate) fn civil(micros: i64) -> Result<DateTime> {
    civil_of(micros).map_err(|_| out_of_range())
}

/// The count of microseconds of a date and time.
pub(crate) fn micros(timestamp: DateTime) -> i64 {
    let since = timestamp.duration_since(EPOCH);
    since.as_secs() * 1_000_000 + i64::from(since.subsec_micros())
}

/// The count of days of a date.
pub(crate) fn days(date: Date) -> i32 {
    let days = micros(date.to_datetime(jiff::civil::Time::midnight())).div_euclid(MICROS_PER_DAY);
    i32::try_from(days).unwrap_or(i32::MAX)
}

/// A date, if there is such a day.
pub(crate) fn day_of(year: i16, month: i8, day: i8) -> Result<Date> {
    Date::new(year, month, day).map_err(|_| out_of_range())
}

/// The day with a number in its year.
pub(crate) fn day_of_year(year: i16, day: i16) -> Result<Date> {
    let first = day_of(year, 1, 1)?;
    let is_there = (1..=first.days_in_year()).contains(&day);
    let date = first.checked_add((i32::from(day) - 1).days());
    date.ok().filter(|_| is_there).ok_or_else(out_of_range)
}

/// The number of a day since the one that Julian days begin with.
pub(crate) fn julian_day(of: Date) -> i64 {
    i64::from(days(of)) + JULIAN_DAYS
}

/// The number of days since 1970 of one with this number.
pub(crate) fn julian_days(number: i64) -> i64 {
    number - JULIAN_DAYS
}

/// A timestamp with the months and days of an interval; of a month that is shorter the last day.
pub(crate) fn plus_calendar(micros: i64, interval: Interval) -> Result<i64> {
    let span = jiff::Span::new().try_months(interval.months);
    let span = span.and_then(|span| span.try_days(interval.days));
    let moved = span.and_then(|span| civil_of(micros)?.checked_add(span));
    moved.map(self::micros).map_err(|_| timestamp_out_of_range())
}

fn civil_of(micros: i64) -> std::result::Result<DateTime, jiff::Error> {
    EPOCH.checked_add(SignedDuration::from_micros(micros))
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
    if later < earlier {
        return times(age(earlier, later)?, -1.0);
    }
    let (to, from) = (civil(later)?, civil(earlier)?);
    let mut days = i32::from(to.day()) - i32::from(from.day());
    let mut months = (i32::from(to.year()) - i32::from(from.year())) * 12 + i32::from(to.month())
        - i32::from(from.month());
    let mut micros = later.rem_euclid(MICROS_PER_DAY) - earlier.rem_euclid(MICROS_PER_DAY);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += i32::from(date(from.year(), from.month(), 1).days_in_month());
        months -= 1;
    }
    Ok(Interval { months, days, micros })
}
