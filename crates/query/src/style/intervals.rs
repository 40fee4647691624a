//! Intervals as `intervalstyle` has them.

use std::fmt::{Result, Write};

use onrush::Interval;

use super::{IntervalStyle, Style};

/// An interval broken down into what is written of it.
#[derive(Clone, Copy)]
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Parts {
    fn of(interval: Interval) -> Parts {
        let seconds = interval.micros / 1_000_000;
        Parts {
            years: (interval.months / 12).into(),
            months: (interval.months % 12).into(),
            days: interval.days.into(),
            hours: seconds / 3600,
            minutes: seconds / 60 % 60,
            seconds: seconds % 60,
            micros: interval.micros % 1_000_000,
        }
    }

    fn all(&self) -> [i64; 7] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.seconds, self.micros]
    }

    fn negated(&self) -> Parts {
        let [years, months, days, hours, minutes, seconds, micros] = self.all().map(|part| -part);
        Parts { years, months, days, hours, minutes, seconds, micros }
    }

    fn has_time(&self) -> bool {
        [self.hours, self.minutes, self.seconds, self.micros].iter().any(|part| *part != 0)
    }

    fn time_is_negative(&self) -> bool {
        [self.hours, self.minutes, self.seconds, self.micros].iter().any(|part| *part < 0)
    }

    /// Seconds without their sign.
    fn write_seconds(&self, width: usize, out: &mut impl Write) -> Result {
        write!(out, "{:0width$}", self.seconds.abs())?;
        if self.micros == 0 {
            return Ok(());
        }
        let digits = format!("{:06}", self.micros.abs());
        write!(out, ".{}", digits.trim_end_matches('0'))
    }
}

/// The interval in a session's style.
pub(crate) fn write_interval(interval: Interval, style: &Style, out: &mut impl Write) -> Result {
    let parts = Parts::of(interval);
    match style.intervals {
        IntervalStyle::Postgres => write!(out, "{interval}"),
        IntervalStyle::Verbose => verbose(parts, out),
        IntervalStyle::Sql => sql(parts, out),
        IntervalStyle::Iso8601 => iso(parts, out),
    }
}

/// The standard has years with months, or days with a time, and one sign; what is neither gets a sign for each.
fn sql(mut parts: Parts, out: &mut impl Write) -> Result {
    let is_negative = parts.all().iter().any(|part| *part < 0);
    let is_positive = parts.all().iter().any(|part| *part > 0);
    let has_months = parts.years != 0 || parts.months != 0;
    let has_days = parts.days != 0 || parts.has_time();
    if !is_negative && !is_positive {
        return out.write_char('0');
    }
    if is_negative && is_positive || has_months && has_days {
        let sign = |is_negative: bool| if is_negative { '-' } else { '+' };
        write!(
            out,
            "{}{}-{} {}{} {}{}:{:02}:",
            sign(parts.years < 0 || parts.months < 0),
            parts.years.abs(),
            parts.months.abs(),
            sign(parts.days < 0),
            parts.days.abs(),
            sign(parts.time_is_negative()),
            parts.hours.abs(),
            parts.minutes.abs(),
        )?;
        return parts.write_seconds(2, out);
    }
    if is_negative {
        out.write_char('-')?;
        parts = parts.negated();
    }
    if has_months {
        return write!(out, "{}-{}", parts.years, parts.months);
    }
    if parts.days != 0 {
        write!(out, "{} ", parts.days)?;
    }
    write!(out, "{}:{:02}:", parts.hours, parts.minutes)?;
    parts.write_seconds(2, out)
}

fn iso(parts: Parts, out: &mut impl Write) -> Result {
    if parts.all().iter().all(|part| *part == 0) {
        return out.write_str("PT0S");
    }
    let write = |number: i64, unit: char, out: &mut dyn Write| match number {
        0 => Ok(()),
        number => write!(out, "{number}{unit}"),
    };
    out.write_char('P')?;
    write(parts.years, 'Y', out)?;
    write(parts.months, 'M', out)?;
    write(parts.days, 'D', out)?;
    if !parts.has_time() {
        return Ok(());
    }
    out.write_char('T')?;
    write(parts.hours, 'H', out)?;
    write(parts.minutes, 'M', out)?;
    if parts.seconds != 0 || parts.micros != 0 {
        if parts.seconds < 0 || parts.micros < 0 {
            out.write_char('-')?;
        }
        parts.write_seconds(0, out)?;
        out.write_char('S')?;
    }
    Ok(())
}

/// The first part tells whether it is `ago`; the others have a sign where they go the other way.
fn verbose(parts: Parts, out: &mut impl Write) -> Result {
    let units = [
        (parts.years, "year"),
        (parts.months, "mon"),
        (parts.days, "day"),
        (parts.hours, "hour"),
        (parts.minutes, "min"),
    ];
    let mut is_past = None;
    out.write_char('@')?;
    for (number, unit) in units {
        if number == 0 {
            continue;
        }
        let number = if *is_past.get_or_insert(number < 0) { -number } else { number };
        write!(out, " {number} {unit}{}", if number == 1 { "" } else { "s" })?;
    }
    if parts.seconds != 0 || parts.micros != 0 {
        let is_negative = parts.seconds < 0 || parts.micros < 0;
        let sign = if *is_past.get_or_insert(is_negative) == is_negative { "" } else { "-" };
        write!(out, " {sign}")?;
        parts.write_seconds(0, out)?;
        let is_one = parts.seconds.abs() == 1 && parts.micros == 0;
        write!(out, " sec{}", if is_one { "" } else { "s" })?;
    }
    match is_past {
        None => out.write_str(" 0"),
        Some(true) => out.write_str(" ago"),
        Some(false) => Ok(()),
    }
}
