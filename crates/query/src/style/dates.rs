//! Dates, times and timestamps as `datestyle` has them.

use std::fmt::{Result, Write};

use jiff::civil::{DateTime, Weekday};

use super::{DateOrder, DateStyle, Style, write_offset};
use crate::interval::MICROS_PER_DAY;
use crate::timestamp::civil;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A day, as days since 1970.
pub(crate) fn write_date(days: i32, style: &Style, out: &mut impl Write) -> Result {
    let date = civil(i64::from(days) * MICROS_PER_DAY).map_err(|_| std::fmt::Error)?;
    let (year, month, day) = (date.year(), date.month(), date.day());
    match (style.dates, style.order) {
        (DateStyle::Iso, _) => write!(out, "{year:04}-{month:02}-{day:02}"),
        (DateStyle::German, _) => write!(out, "{day:02}.{month:02}.{year:04}"),
        (DateStyle::Sql, DateOrder::Dmy) => write!(out, "{day:02}/{month:02}/{year:04}"),
        (DateStyle::Sql, _) => write!(out, "{month:02}/{day:02}/{year:04}"),
        (DateStyle::Postgres, DateOrder::Dmy) => write!(out, "{day:02}-{month:02}-{year:04}"),
        (DateStyle::Postgres, _) => write!(out, "{month:02}-{day:02}-{year:04}"),
    }
}

/// A time of day, which no style has otherwise.
pub(crate) fn write_time(micros: i64, out: &mut impl Write) -> Result {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

/// A timestamp without a zone.
pub(crate) fn write_timestamp(micros: i64, style: &Style, out: &mut impl Write) -> Result {
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).map_err(|_| std::fmt::Error)?;
    let time = micros.rem_euclid(MICROS_PER_DAY);
    if style.dates != DateStyle::Postgres {
        write_date(days, style, out)?;
        out.write_char(' ')?;
        return write_time(time, out);
    }
    let date = civil(micros).map_err(|_| std::fmt::Error)?;
    let (day, month) = (date.day(), month_of(date));
    match style.order {
        DateOrder::Dmy => write!(out, "{} {day:02} {month} ", weekday_of(date))?,
        _ => write!(out, "{} {month} {day:02} ", weekday_of(date))?,
    }
    write_time(time, out)?;
    write!(out, " {:04}", date.year())
}

/// A moment, by the clocks of the session's zone.
pub(crate) fn write_timestamp_tz(micros: i64, style: &Style, out: &mut impl Write) -> Result {
    let offsets = style.zone.offsets(micros).map_err(|_| std::fmt::Error)?;
    let local = micros + i64::from(offsets.seconds) * 1_000_000;
    write_timestamp(local, style, out)?;
    match style.dates {
        DateStyle::Iso => write_offset(offsets.seconds, false, out),
        _ => write!(out, " {}", offsets.abbreviation),
    }
}

fn month_of(date: DateTime) -> &'static str {
    usize::try_from(date.month() - 1)
        .ok()
        .and_then(|at| MONTHS.get(at))
        .copied()
        .unwrap_or_default()
}

fn weekday_of(date: DateTime) -> &'static str {
    match date.weekday() {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    }
}
