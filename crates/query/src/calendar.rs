//! The parts of dates, times and intervals by PostgreSQL's names for them.

use onrush::{Interval, TimeTz};

use crate::error::{QueryError, Result};
use crate::interval::MICROS_PER_DAY;
use crate::style::Zone;
use crate::timestamp::{civil, day_of, days, julian_day};

const MICROS: i128 = 1_000_000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// A part that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    IsoYear,
    Weekday,
    IsoWeekday,
    DayOfYear,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl Unit {
    /// # Errors
    /// A name that is none, of a value of this type.
    pub(crate) fn of(name: &str, type_name: &str) -> Result<Unit> {
        let lower = name.to_lowercase();
        // Longer words are known by their first letters.
        let word: String = lower.chars().take(10).collect();
        Ok(match word.as_str() {
            "us" | "usec" | "usecs" | "useconds" | "usecond" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "mseconds" | "msecond" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "qtr" | "quarter" => Unit::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
            "j" | "jd" | "julian" => Unit::Julian,
            "isoyear" => Unit::IsoYear,
            "dow" => Unit::Weekday,
            "isodow" => Unit::IsoWeekday,
            "doy" => Unit::DayOfYear,
            "epoch" => Unit::Epoch,
            "timezone" => Unit::Zone,
            "timezone_h" => Unit::ZoneHour,
            "timezone_m" => Unit::ZoneMinute,
            _ => {
                let message = format!("unit \"{lower}\" not recognized for type {type_name}");
                return Err(QueryError::refused("22023", message));
            }
        })
    }

    /// Digits behind the point that its number has.
    pub(crate) fn scale(self, is_of_date: bool) -> i8 {
        match self {
            Unit::Second => 6,
            Unit::Epoch if !is_of_date => 6,
            Unit::Millisecond => 3,
            _ => 0,
        }
    }

    fn is_of_zone(self) -> bool {
        matches!(self, Unit::Zone | Unit::ZoneHour | Unit::ZoneMinute)
    }

    fn is_of_time(self) -> bool {
        matches!(
            self,
            Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour
        )
    }
}

/// What a value has that parts are taken of.
pub(crate) enum Broken {
    Date(i32),
    Time(i64),
    TimeTz(TimeTz),
    Interval(Interval),
    /// By clocks, and the moment with its offset if there is a zone.
    Timestamp {
        local: i64,
        zoned: Option<(i64, i32)>,
    },
}

impl Broken {
    pub(crate) fn date(days: i32) -> Result<Broken> {
        Ok(Broken::Date(days))
    }

    pub(crate) fn time(micros: i64) -> Broken {
        Broken::Time(micros)
    }

    pub(crate) fn interval(interval: Interval) -> Broken {
        Broken::Interval(interval)
    }

    pub(crate) fn local(micros: i64) -> Result<Broken> {
        Ok(Broken::Timestamp { local: micros, zoned: None })
    }

    pub(crate) fn zoned(micros: i64, zone: &Zone) -> Result<Broken> {
        let seconds = zone.offsets(micros)?.seconds;
        let local = micros + i64::from(seconds) * 1_000_000;
        Ok(Broken::Timestamp { local, zoned: Some((micros, seconds)) })
    }

    /// The part, in millionths; `name` and `type_name` are for the error that there is none.
    pub(crate) fn part(&self, unit: Unit, name: &str, type_name: &str) -> Result<i128> {
        let unsupported = || not_supported(name, type_name);
        match *self {
            Broken::Date(_) if unit.is_of_time() || unit.is_of_zone() => Err(unsupported()),
            Broken::Date(days) => of_timestamp(i64::from(days) * MICROS_PER_DAY, unit),
            Broken::Time(micros) => match unit {
                Unit::Epoch => Ok(micros.into()),
                unit if unit.is_of_time() => Ok(of_time(micros, unit)),
                _ => Err(unsupported()),
            },
            Broken::TimeTz(time) => match unit {
                Unit::Epoch => Ok(time.utc_micros().into()),
                unit if unit.is_of_zone() => Ok(of_zone(time.offset_seconds, unit)),
                unit if unit.is_of_time() => Ok(of_time(time.micros, unit)),
                _ => Err(unsupported()),
            },
            Broken::Interval(interval) => of_interval(interval, unit).ok_or_else(unsupported),
            Broken::Timestamp { local, zoned } => match (unit, zoned) {
                (Unit::Epoch, Some((micros, _))) => Ok(micros.into()),
                (unit, Some((_, seconds))) if unit.is_of_zone() => Ok(of_zone(seconds, unit)),
                (unit, None) if unit.is_of_zone() => Err(unsupported()),
                (Unit::Julian, _) if local.rem_euclid(MICROS_PER_DAY) != 0 => {
                    let message = "the part julian of a timestamp with a time is not supported";
                    Err(QueryError::refused("0A000", message))
                }
                _ => of_timestamp(local, unit),
            },
        }
    }
}

/// A part of an offset.
fn of_zone(seconds: i32, unit: Unit) -> i128 {
    let whole = match unit {
        Unit::ZoneHour => seconds / 3600,
        Unit::ZoneMinute => seconds / 60 % 60,
        _ => seconds,
    };
    i128::from(whole) * MICROS
}

fn not_supported(name: &str, type_name: &str) -> QueryError {
    let message = format!("unit \"{}\" not supported for type {type_name}", name.to_lowercase());
    QueryError::refused("0A000", message)
}

/// A part of what is less than a day.
fn of_time(micros: i64, unit: Unit) -> i128 {
    match unit {
        Unit::Microsecond => i128::from(micros % 60_000_000) * MICROS,
        Unit::Millisecond => i128::from(micros % 60_000_000) * 1000,
        Unit::Second => i128::from(micros % 60_000_000),
        Unit::Minute => i128::from(micros / 60_000_000 % 60) * MICROS,
        _ => i128::from(micros / MICROS_PER_HOUR) * MICROS,
    }
}

fn of_timestamp(local: i64, unit: Unit) -> Result<i128> {
    if unit.is_of_time() {
        return Ok(of_time(local.rem_euclid(MICROS_PER_DAY), unit));
    }
    if unit == Unit::Epoch {
        return Ok(local.into());
    }
    let date = civil(local)?.date();
    let (year, month) = (i64::from(date.year()), i64::from(date.month()));
    let whole = match unit {
        Unit::Day => date.day().into(),
        Unit::Week => date.iso_week_date().week().into(),
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Year => year,
        Unit::Decade => year / 10,
        Unit::Century => (year + 99) / 100,
        Unit::Millennium => (year + 999) / 1000,
        Unit::Julian => julian_day(date),
        Unit::IsoYear => date.iso_week_date().year().into(),
        Unit::Weekday => date.weekday().to_sunday_zero_offset().into(),
        Unit::IsoWeekday => date.weekday().to_monday_one_offset().into(),
        _ => date.day_of_year().into(),
    };
    Ok(i128::from(whole) * MICROS)
}

fn of_interval(interval: Interval, unit: Unit) -> Option<i128> {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let whole = match unit {
        unit if unit.is_of_time() => return Some(of_time(interval.micros, unit)),
        Unit::Epoch => return Some(interval.epoch_micros()),
        Unit::Day => interval.days,
        Unit::Month => months,
        Unit::Quarter => months / 3 + 1,
        Unit::Year => years,
        Unit::Decade => years / 10,
        Unit::Century => years / 100,
        Unit::Millennium => years / 1000,
        _ => return None,
    };
    Some(i128::from(whole) * MICROS)
}

/// A timestamp down to a unit, by the clocks of a zone. Within a day the offset stays as it is.
pub(crate) fn truncated(
    micros: i64,
    unit: Unit,
    name: &str,
    zone: &Zone,
    type_name: &str,
) -> Result<i64> {
    let local = zone.local(micros)?;
    let down_to = |width: i64| Ok(micros - local.rem_euclid(width));
    let date = civil(local)?.date();
    let (year, month) = (date.year(), date.month());
    let first_of = |year: i16, month: i8| day_of(year, month, 1);
    let date = match unit {
        Unit::Microsecond => return Ok(micros),
        Unit::Millisecond => return down_to(1000),
        Unit::Second => return down_to(1_000_000),
        Unit::Minute => return down_to(60_000_000),
        Unit::Hour => return down_to(MICROS_PER_HOUR),
        Unit::Day => date,
        Unit::Week => {
            let back = i64::from(date.weekday().to_monday_zero_offset()) * MICROS_PER_DAY;
            civil(local - back)?.date()
        }
        Unit::Month => first_of(year, month)?,
        Unit::Quarter => first_of(year, (month - 1) / 3 * 3 + 1)?,
        Unit::Year => first_of(year, 1)?,
        Unit::Decade => first_of(year / 10 * 10, 1)?,
        Unit::Century => first_of((year + 99) / 100 * 100 - 99, 1)?,
        Unit::Millennium => first_of((year + 999) / 1000 * 1000 - 999, 1)?,
        _ => return Err(not_supported(name, type_name)),
    };
    zone.utc_of(i64::from(days(date)) * MICROS_PER_DAY)
}

/// An interval down to a unit.
pub(crate) fn truncated_interval(interval: Interval, unit: Unit, name: &str) -> Result<Interval> {
    let Interval { months, days, micros } = interval;
    let of_months = |width: i32| Interval { months: months / width * width, days: 0, micros: 0 };
    let of_micros = |width: i64| Interval { months, days, micros: micros / width * width };
    Ok(match unit {
        Unit::Microsecond => interval,
        Unit::Millisecond => of_micros(1000),
        Unit::Second => of_micros(1_000_000),
        Unit::Minute => of_micros(60_000_000),
        Unit::Hour => of_micros(MICROS_PER_HOUR),
        Unit::Day => Interval { months, days, micros: 0 },
        Unit::Month => of_months(1),
        Unit::Quarter => of_months(3),
        Unit::Year => of_months(12),
        Unit::Decade => of_months(120),
        Unit::Century => of_months(1200),
        Unit::Millennium => of_months(12_000),
        Unit::Week => {
            return Err(not_supported(name, "interval"));
        }
        _ => return Err(not_supported(name, "interval")),
    })
}
