//! Dates, times and timestamps as `datestyle` has them.

use std::fmt::{Result, Write};

use jiff::civil::Weekday;
use onrush_types::calendar::infinity_name;

use super::{DateOrder, DateStyle, Style, write_offset};
use crate::interval::MICROS_PER_DAY;
use crate::timestamp::{Day, day_at, is_infinite_date, is_infinite_timestamp};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date, as days since 1970.
pub(crate) fn write_date(days: i32, style: &Style, out: &mut impl Write) -> Result {
    if is_infinite_date(days) {
        return out.write_str(infinity_name(days < 0));
    }
    let day = Day::at(days.into());
    write_day(day, style, out)?;
    out.write_str(era(day))
}

fn write_day(of: Day, style: &Style, out: &mut impl Write) -> Result {
    let (year, month, day) = (year_of_era(of), of.month(), of.day());
    match (style.dates, style.order) {
        (DateStyle::Iso, _) => write!(out, "{year:04}-{month:02}-{day:02}"),
        (DateStyle::German, _) => write!(out, "{day:02}.{month:02}.{year:04}"),
        (DateStyle::Sql, DateOrder::Dmy) => write!(out, "{day:02}/{month:02}/{year:04}"),
        (DateStyle::Sql, _) => write!(out, "{month:02}/{day:02}/{year:04}"),
        (DateStyle::Postgres, DateOrder::Dmy) => write!(out, "{day:02}-{month:02}-{year:04}"),
        (DateStyle::Postgres, _) => write!(out, "{month:02}-{day:02}-{year:04}"),
    }
}

fn year_of_era(day: Day) -> i64 {
    if day.year() > 0 { day.year() } else { 1 - day.year() }
}

/// What stands behind all of a day before Christ.
fn era(day: Day) -> &'static str {
    if day.year() > 0 { "" } else { " BC" }
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
    if is_infinite_timestamp(micros) {
        return out.write_str(infinity_name(micros < 0));
    }
    write_day_and_time(micros, style, out)?;
    out.write_str(era(day_at(micros)))
}

fn write_day_and_time(micros: i64, style: &Style, out: &mut impl Write) -> Result {
    let of = day_at(micros);
    let time = micros.rem_euclid(MICROS_PER_DAY);
    if style.dates != DateStyle::Postgres {
        write_day(of, style, out)?;
        out.write_char(' ')?;
        return write_time(time, out);
    }
    let (day, month, weekday) = (of.day(), month_of(of), weekday_of(of));
    match style.order {
        DateOrder::Dmy => write!(out, "{weekday} {day:02} {month} ")?,
        _ => write!(out, "{weekday} {month} {day:02} ")?,
    }
    write_time(time, out)?;
    write!(out, " {:04}", year_of_era(of))
}

/// A moment, by the clocks of the session's zone.
pub(crate) fn write_timestamp_tz(micros: i64, style: &Style, out: &mut impl Write) -> Result {
    if is_infinite_timestamp(micros) {
        return out.write_str(infinity_name(micros < 0));
    }
    let offsets = style.zone.offsets(micros).map_err(|_| std::fmt::Error)?;
    let local = micros + i64::from(offsets.seconds) * 1_000_000;
    write_day_and_time(local, style, out)?;
    match style.dates {
        DateStyle::Iso => write_offset(offsets.seconds, false, out)?,
        _ => write!(out, " {}", offsets.abbreviation)?,
    }
    out.write_str(era(day_at(local)))
}

fn month_of(day: Day) -> &'static str {
    usize::try_from(day.month() - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or_default()
}

fn weekday_of(day: Day) -> &'static str {
    match day.within().weekday() {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    }
}
