//! The parts of dates, times and intervals by PostgreSQL's names for them.

use onrush::{Interval, Numeric, TimeTz};

use crate::error::{QueryError, Result};
use crate::functions::quotient;
use crate::interval::MICROS_PER_DAY;
use crate::style::Zone;
use crate::timestamp::{
    Day, day_at, day_of, is_infinite_date, is_infinite_timestamp, julian_day, shown_year,
    timestamp_at, timestamp_out_of_range,
};

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

    /// Whether it grows with the time, so that of an infinity it is one. The others are NULL of one.
    pub(crate) fn is_monotonic(self) -> bool {
        matches!(
            self,
            Unit::Year
                | Unit::Decade
                | Unit::Century
                | Unit::Millennium
                | Unit::Julian
                | Unit::IsoYear
                | Unit::Epoch
        )
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
#[derive(Clone, Copy)]
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

    /// The part; `name` and `type_name` are for the error that there is none.
    pub(crate) fn part(&self, unit: Unit, name: &str, type_name: &str) -> Result<Part> {
        let is_infinite = match *self {
            Broken::Date(days) => is_infinite_date(days).then_some(days < 0),
            Broken::Timestamp { local, zoned } => {
                let micros = zoned.map_or(local, |(micros, _)| micros);
                is_infinite_timestamp(micros).then_some(micros < 0)
            }
            _ => None,
        };
        let is_there = match *self {
            Broken::Date(_) => !unit.is_of_time() && !unit.is_of_zone(),
            // Of an infinite timestamp PostgreSQL does not ask whether it has a zone.
            _ => true,
        };
        match (is_infinite, *self) {
            (Some(_), _) if !is_there => Err(not_supported(name, type_name)),
            (Some(is_negative), _) if unit.is_monotonic() => Ok(Part::Infinity { is_negative }),
            (Some(_), _) => Ok(Part::Null),
            (None, Broken::Timestamp { local, .. }) if unit == Unit::Julian => {
                Ok(Part::Julian(julian_day(day_at(local)), local.rem_euclid(MICROS_PER_DAY)))
            }
            (None, _) => self.finite_part(unit, name, type_name).map(Part::Millionths),
        }
    }

    fn finite_part(&self, unit: Unit, name: &str, type_name: &str) -> Result<i128> {
        let unsupported = || not_supported(name, type_name);
        match *self {
            Broken::Date(_) if unit.is_of_time() || unit.is_of_zone() => Err(unsupported()),
            Broken::Date(days) if unit == Unit::Epoch => {
                Ok(i128::from(days) * i128::from(MICROS_PER_DAY))
            }
            Broken::Date(days) => Ok(of_day(Day::at(days.into()), unit)),
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
                _ => Ok(of_timestamp(local, unit)),
            },
        }
    }
}

/// A part of a value.
pub(crate) enum Part {
    /// A number, in millionths.
    Millionths(i128),
    /// Julian days, and microseconds of the day.
    Julian(i64, i64),
    Infinity {
        is_negative: bool,
    },
    Null,
}

impl Part {
    /// As `extract` has it, with so many digits behind the point.
    pub(crate) fn numeric(self, scale: i8) -> Result<Option<Numeric>> {
        let dropped = 10i128.pow(6 - u32::from(scale.unsigned_abs()).min(6));
        Ok(Some(match self {
            Part::Millionths(millionths) => Numeric::new(millionths / dropped, scale.into())?,
            Part::Julian(days, micros) => {
                let (of, by) = (Numeric::new(micros, 0)?, Numeric::new(MICROS_PER_DAY, 0)?);
                Numeric::new(days, 0)?.plus(&quotient(&of, &by)?)?
            }
            Part::Infinity { is_negative: true } => Numeric::NegativeInfinity,
            Part::Infinity { is_negative: false } => Numeric::Infinity,
            Part::Null => return Ok(None),
        }))
    }

    /// Of a part that no infinity has: a whole number of millionths.
    pub(crate) fn millionths(self) -> Option<i128> {
        match self {
            Part::Millionths(millionths) => Some(millionths),
            _ => None,
        }
    }

    /// As `date_part` has it.
    pub(crate) fn float(self) -> Option<f64> {
        Some(match self {
            Part::Millionths(millionths) => millionths as f64 / 1e6,
            Part::Julian(days, micros) => days as f64 + micros as f64 / MICROS_PER_DAY as f64,
            Part::Infinity { is_negative: true } => f64::NEG_INFINITY,
            Part::Infinity { is_negative: false } => f64::INFINITY,
            Part::Null => return None,
        })
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

fn of_timestamp(local: i64, unit: Unit) -> i128 {
    match unit {
        Unit::Epoch => local.into(),
        unit if unit.is_of_time() => of_time(local.rem_euclid(MICROS_PER_DAY), unit),
        _ => of_day(day_at(local), unit),
    }
}

fn of_day(day: Day, unit: Unit) -> i128 {
    let (year, month, date) = (day.year(), i64::from(day.month()), day.within());
    let whole = match unit {
        Unit::Day => date.day().into(),
        Unit::Week => date.iso_week_date().week().into(),
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Year => shown_year(year),
        Unit::Decade => year.div_euclid(10),
        Unit::Century => of_years(year, 100),
        Unit::Millennium => of_years(year, 1000),
        Unit::Julian => julian_day(day),
        Unit::IsoYear => shown_year(day.iso_year()),
        Unit::Weekday => date.weekday().to_sunday_zero_offset().into(),
        Unit::IsoWeekday => date.weekday().to_monday_one_offset().into(),
        _ => date.day_of_year().into(),
    };
    i128::from(whole) * MICROS
}

/// The number of so many years together; there is none between that of 1 BC and that of the year 1.
fn of_years(year: i64, width: i64) -> i64 {
    if year > 0 { (year + width - 1) / width } else { -((width - year) / width) }
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
    if is_infinite_timestamp(micros) {
        return Ok(micros);
    }
    let local = zone.local(micros)?;
    let down_to = |width: i64| Ok(micros - local.rem_euclid(width));
    let day = day_at(local);
    let (year, month) = (day.year(), i64::from(day.month()));
    let first_of = |year: i64, month: i64| day_of(year, month, 1).map(Day::days);
    // Years before Christ are counted from the first of one, others from the last of one.
    let first_of_years = |width: i64| match year > 0 {
        true => (year + width - 1) / width * width - width + 1,
        false => 1 - (width - year) / width * width,
    };
    let days = match unit {
        Unit::Microsecond => return Ok(micros),
        Unit::Millisecond => return down_to(1000),
        Unit::Second => return down_to(1_000_000),
        Unit::Minute => return down_to(60_000_000),
        Unit::Hour => return down_to(MICROS_PER_HOUR),
        Unit::Day => day.days(),
        Unit::Week => day.days() - i64::from(day.within().weekday().to_monday_zero_offset()),
        Unit::Month => first_of(year, month)?,
        Unit::Quarter => first_of(year, (month - 1) / 3 * 3 + 1)?,
        Unit::Year => first_of(year, 1)?,
        Unit::Decade => first_of(year.div_euclid(10) * 10, 1)?,
        Unit::Century => first_of(first_of_years(100), 1)?,
        Unit::Millennium => first_of(first_of_years(1000), 1)?,
        _ => return Err(not_supported(name, type_name)),
    };
    zone.utc_of(timestamp_at(days, 0).ok_or_else(timestamp_out_of_range)?)
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
