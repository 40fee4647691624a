//! Intervals as PostgreSQL reads them: `1 year 2 mons -3 days 04:05:06.7`, `P1Y2M`, `90 minutes ago`, `1-2 3 4:05`.

use onrush::{Interval, IntervalFields};

use crate::datetime::{Field, Kind, fields};
use crate::error::{QueryError, Result};
use crate::style::{IntervalStyle, current};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    /// Of PostgreSQL's words, of which the first ten letters count.
    fn of(word: &str) -> Option<Unit> {
        Some(match word.get(..10).unwrap_or(word) {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
            _ => return None,
        })
    }

    /// Each may be told once; a fraction of a second tells of what is smaller, too.
    fn bits(self, has_fraction: bool) -> u32 {
        match self {
            Unit::Second if has_fraction => 0b111,
            unit => 1 << unit as u32,
        }
    }
}

/// The bits of what `04:05:06` tells.
const TIME_BITS: u32 = 0b1_1111;

/// Why text is no interval.
enum Bad {
    Format,
    Field,
}

type Read<T> = std::result::Result<T, Bad>;

/// What the last number counts if nothing says so.
fn last_unit(fields: IntervalFields) -> Unit {
    match fields {
        IntervalFields::Year => Unit::Year,
        IntervalFields::Month | IntervalFields::YearToMonth => Unit::Month,
        IntervalFields::Day => Unit::Day,
        IntervalFields::Hour | IntervalFields::DayToHour => Unit::Hour,
        IntervalFields::Minute | IntervalFields::DayToMinute | IntervalFields::HourToMinute => {
            Unit::Minute
        }
        _ => Unit::Second,
    }
}

/// Reads an interval of these fields.
///
/// # Errors
/// Text that is none.
pub(crate) fn read(written: &str, range: IntervalFields) -> Result<Interval> {
    let read = match of_fields(written, range) {
        Err(Bad::Format) => iso(written),
        read => read,
    };
    let interval = read.map_err(|bad| match bad {
        Bad::Format => {
            let message = format!("invalid input syntax for type interval: \"{written}\"");
            QueryError::refused("22007", message)
        }
        Bad::Field => {
            let message = format!("interval field value out of range: \"{written}\"");
            QueryError::refused("22015", message)
        }
    })?;
    Ok(range.cut(interval, None))
}

/// What is added up.
#[derive(Default)]
struct Sum(Interval);

impl Sum {
    fn micros(&mut self, value: i64, fraction: f64, scale: i64) -> Read<()> {
        let whole = value.checked_mul(scale).ok_or(Bad::Field)?;
        self.0.micros = self.0.micros.checked_add(whole).ok_or(Bad::Field)?;
        self.fraction(fraction, scale)
    }

    fn fraction(&mut self, fraction: f64, scale: i64) -> Read<()> {
        let part = fraction * scale as f64;
        let mut micros = part as i64;
        let rest = part - micros as f64;
        if rest.abs() > 0.5 {
            micros += if rest > 0.0 { 1 } else { -1 };
        }
        self.0.micros = self.0.micros.checked_add(micros).ok_or(Bad::Field)?;
        Ok(())
    }

    fn days(&mut self, value: i64, fraction: f64, scale: i32) -> Read<()> {
        let whole = i32::try_from(value).ok().and_then(|value| value.checked_mul(scale));
        let part = fraction * f64::from(scale);
        self.add_days(whole.ok_or(Bad::Field)?)?;
        self.add_days(part as i32)?;
        self.fraction(part.fract(), MICROS_PER_DAY)
    }

    fn add_days(&mut self, days: i32) -> Read<()> {
        self.0.days = self.0.days.checked_add(days).ok_or(Bad::Field)?;
        Ok(())
    }

    fn months(&mut self, value: i64, fraction: f64) -> Read<()> {
        self.add_months(i32::try_from(value).map_err(|_| Bad::Field)?)?;
        self.days(0, fraction, 30)
    }

    fn add_months(&mut self, months: i32) -> Read<()> {
        self.0.months = self.0.months.checked_add(months).ok_or(Bad::Field)?;
        Ok(())
    }

    fn years(&mut self, value: i64, fraction: f64, scale: i32) -> Read<()> {
        let years = i32::try_from(value).ok().and_then(|value| value.checked_mul(scale));
        let months = years.and_then(|years| years.checked_mul(12)).ok_or(Bad::Field)?;
        self.add_months(months)?;
        self.add_months((fraction * f64::from(scale) * 12.0).round_ties_even() as i32)
    }

    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Read<()> {
        match unit {
            Unit::Microsecond => self.micros(value, fraction, 1),
            Unit::Millisecond => self.micros(value, fraction, 1000),
            Unit::Second => self.micros(value, fraction, MICROS_PER_SECOND),
            Unit::Minute => self.micros(value, fraction, MICROS_PER_MINUTE),
            Unit::Hour => self.micros(value, fraction, MICROS_PER_HOUR),
            Unit::Day => self.days(value, fraction, 1),
            Unit::Week => self.days(value, fraction, 7),
            Unit::Month => self.months(value, fraction),
            Unit::Year => self.years(value, fraction, 1),
            Unit::Decade => self.years(value, fraction, 10),
            Unit::Century => self.years(value, fraction, 100),
            Unit::Millennium => self.years(value, fraction, 1000),
        }
    }

    /// `04:05:06.7`; of two numbers the second of which has a fraction, minutes and seconds.
    fn time(&mut self, text: &str, range: IntervalFields, is_negative: bool) -> Read<()> {
        let mut parts = text.split(':');
        let (first, second) = (parts.next().ok_or(Bad::Format)?, parts.next().ok_or(Bad::Format)?);
        let third = parts.next();
        if parts.next().is_some() {
            return Err(Bad::Format);
        }
        let is_of_minutes = range == IntervalFields::MinuteToSecond || second.contains('.');
        let (hours, minutes, seconds) = match third {
            Some(seconds) => (first, second, seconds),
            None if is_of_minutes => ("0", first, second),
            None => (first, second, "0"),
        };
        let (hours, _) = number(hours)?;
        let (minutes, _) = number(minutes)?;
        let (seconds, fraction) = number(seconds)?;
        if !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) || hours < 0 {
            return Err(Bad::Field);
        }
        let mut time = Sum::default();
        time.micros(hours, 0.0, MICROS_PER_HOUR)?;
        time.micros(minutes, 0.0, MICROS_PER_MINUTE)?;
        time.micros(seconds, fraction, MICROS_PER_SECOND)?;
        let micros = if is_negative { -time.0.micros } else { time.0.micros };
        self.0.micros = self.0.micros.checked_add(micros).ok_or(Bad::Field)?;
        Ok(())
    }
}

/// A number in front of the point, and what is behind it, both with its sign.
fn number(text: &str) -> Read<(i64, f64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_negative = whole.starts_with('-');
    let digits = whole.trim_start_matches(['+', '-']);
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(digits) || !are_digits(fraction) || digits.is_empty() && fraction.is_empty() {
        return Err(Bad::Format);
    }
    let value = match digits {
        "" => 0,
        _ => whole.parse().map_err(|_| Bad::Field)?,
    };
    let part = match fraction {
        "" => 0.0,
        digits => format!("0.{digits}").parse().map_err(|_| Bad::Format)?,
    };
    Ok((value, if is_negative { -part } else { part }))
}

/// From the last field to the first, since units stand behind their numbers.
fn of_fields(written: &str, range: IntervalFields) -> Read<Interval> {
    let fields = fields(written).map_err(|_| Bad::Format)?;
    let (mut sum, mut told, mut unit, mut is_past) = (Sum::default(), 0u32, None, false);
    // The standard has one sign for all.
    let is_signed = |field: &Field| field.text.starts_with(['+', '-']);
    let all_are_negative = current().intervals == IntervalStyle::Sql
        && fields.first().is_some_and(|first| first.text.starts_with('-'))
        && !fields.iter().skip(1).any(is_signed);
    for Field { kind, text } in fields.iter().rev() {
        let bits = match kind {
            Kind::Time => {
                sum.time(text, range, all_are_negative)?;
                unit = Some(Unit::Day);
                TIME_BITS
            }
            Kind::Offset if text[1..].contains(':') => {
                sum.time(&text[1..], range, text.starts_with('-'))?;
                unit = Some(Unit::Day);
                TIME_BITS
            }
            Kind::Number | Kind::Date | Kind::Offset => {
                let own = unit.unwrap_or(last_unit(range));
                let dash = text.get(1..).and_then(|behind| behind.find('-'));
                let (own, value, fraction) = match dash {
                    Some(dash) => (Unit::Month, years_months(text.split_at(dash + 1))?, 0.0),
                    None => {
                        let (value, fraction) = number(text)?;
                        (own, value, fraction)
                    }
                };
                match all_are_negative && !text.starts_with('-') {
                    true => sum.add(own, -value, -fraction)?,
                    false => sum.add(own, value, fraction)?,
                }
                // A number in front of hours is days.
                unit = Some(if own == Unit::Hour { Unit::Day } else { own });
                own.bits(fraction != 0.0)
            }
            Kind::Word if text == "ago" => {
                is_past = true;
                0
            }
            Kind::Word if matches!(text.as_str(), "at" | "on") => 0,
            Kind::Word => {
                unit = Some(Unit::of(text).ok_or(Bad::Format)?);
                0
            }
        };
        if bits & told != 0 {
            return Err(Bad::Format);
        }
        told |= bits;
    }
    if told == 0 {
        return Err(Bad::Format);
    }
    let interval = sum.0;
    match is_past {
        true => interval.negated().ok_or(Bad::Field),
        false => Ok(interval),
    }
}

/// `1-2`, in months.
fn years_months((years, months): (&str, &str)) -> Read<i64> {
    let (years, _) = number(years)?;
    let is_negative = years < 0;
    let months: i64 = months[1..].parse().map_err(|_| Bad::Format)?;
    if !(0..12).contains(&months) {
        return Err(Bad::Field);
    }
    let months = if is_negative { -months } else { months };
    years.checked_mul(12).and_then(|all| all.checked_add(months)).ok_or(Bad::Field)
}

/// ISO 8601: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn iso(written: &str) -> Read<Interval> {
    let mut rest = written.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Bad::Format)?;
    let (mut sum, mut is_date, mut has_field) = (Sum::default(), true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (is_date, has_field, rest) = (false, false, time);
            continue;
        }
        let (digits, behind) = iso_number(rest)?;
        let (value, fraction) = number(digits)?;
        let width = digits.trim_start_matches('-').split('.').next().map_or(0, str::len);
        let unit = behind.chars().next();
        rest = behind.get(1..).unwrap_or("");
        match (is_date, unit) {
            (true, Some('Y')) => sum.years(value, fraction, 1)?,
            (true, Some('M')) => sum.months(value, fraction)?,
            (true, Some('W')) => sum.days(value, fraction, 7)?,
            (true, Some('D')) => sum.days(value, fraction, 1)?,
            (true, None | Some('T')) if width == 8 && !has_field => {
                sum.years(value / 10_000, 0.0, 1)?;
                sum.months(value / 100 % 100, 0.0)?;
                sum.days(value % 100, fraction, 1)?;
                (is_date, has_field) = (false, false);
                continue;
            }
            (true, None | Some('T' | '-')) if !has_field => {
                sum.years(value, fraction, 1)?;
                let mut next = unit;
                for part in [Unit::Month, Unit::Day] {
                    if next != Some('-') {
                        break;
                    }
                    let (digits, behind) = iso_number(rest)?;
                    let (value, fraction) = number(digits)?;
                    sum.add(part, value, fraction)?;
                    next = behind.chars().next();
                    rest = behind.get(1..).unwrap_or("");
                }
                if !matches!(next, None | Some('T')) {
                    return Err(Bad::Format);
                }
                (is_date, has_field) = (false, false);
                continue;
            }
            (false, Some('H')) => sum.add(Unit::Hour, value, fraction)?,
            (false, Some('M')) => sum.add(Unit::Minute, value, fraction)?,
            (false, Some('S')) => sum.add(Unit::Second, value, fraction)?,
            (false, None) if width == 6 && !has_field => {
                sum.add(Unit::Hour, value / 10_000, 0.0)?;
                sum.add(Unit::Minute, value / 100 % 100, 0.0)?;
                sum.add(Unit::Second, value % 100, fraction)?;
            }
            (false, None | Some(':')) if !has_field => {
                sum.add(Unit::Hour, value, fraction)?;
                let mut next = unit;
                for part in [Unit::Minute, Unit::Second] {
                    if next != Some(':') {
                        break;
                    }
                    let (digits, behind) = iso_number(rest)?;
                    let (value, fraction) = number(digits)?;
                    sum.add(part, value, fraction)?;
                    next = behind.chars().next();
                    rest = behind.get(1..).unwrap_or("");
                }
                if next.is_some() {
                    return Err(Bad::Format);
                }
            }
            _ => return Err(Bad::Format),
        }
        has_field = true;
    }
    Ok(sum.0)
}

/// A number at the beginning, and what is behind it; one with an exponent is none here.
fn iso_number(text: &str) -> Read<(&str, &str)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let end = unsigned.find(|next: char| !next.is_ascii_digit() && next != '.');
    let end = sign + end.unwrap_or(unsigned.len());
    if end == sign || text[end..].starts_with(['e', 'E']) {
        return Err(Bad::Format);
    }
    Ok(text.split_at(end))
}
