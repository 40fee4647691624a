//! Spans of time as PostgreSQL has them: months, days and microseconds, which do not become each other.
//!
//! Two intervals that are written differently may be equal: a month counts as thirty days there, a day as 24 hours.
//! So a key could not give back what was written, and no interval stands in one.

use std::fmt;
use std::str::FromStr;

use crate::calendar::DAY_MICROS;

const MONTHS_PER_YEAR: i32 = 12;
/// What a month counts where intervals are compared.
const DAYS_PER_MONTH: i32 = 30;
/// A quarter of a day more than 365 days.
const YEAR_MICROS: i128 = 31_557_600_000_000;
/// Bytes of an interval in a row.
pub(crate) const INTERVAL_BYTES: usize = 16;

/// See the module. Equality is that of its parts; [`span_micros`](Interval::span_micros) compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Whole months; twelve of them are written as a year.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// What is less than a day, and may be more.
    pub micros: i64,
}

impl Interval {
    /// So many days.
    #[must_use]
    pub fn days(days: i32) -> Interval {
        Interval { days, ..Interval::default() }
    }

    /// So many months.
    #[must_use]
    pub fn months(months: i32) -> Interval {
        Interval { months, ..Interval::default() }
    }

    /// So many seconds.
    #[must_use]
    pub fn seconds(seconds: i32) -> Interval {
        Interval::of_micros(i64::from(seconds) * 1_000_000)
    }

    /// So many microseconds.
    #[must_use]
    pub const fn of_micros(micros: i64) -> Interval {
        Interval { months: 0, days: 0, micros }
    }

    /// The same span backwards; none for the longest there is.
    #[must_use]
    pub fn negated(self) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    /// Whole days of the microseconds become days; none where they are too many.
    #[must_use]
    pub fn with_days(self) -> Option<Interval> {
        let days = i32::try_from(self.micros / DAY_MICROS).ok()?;
        let days = self.days.checked_add(days)?;
        Some(Interval { days, micros: self.micros % DAY_MICROS, ..self })
    }

    /// Thirty days become a month; none where they are too many.
    #[must_use]
    pub fn with_months(self) -> Option<Interval> {
        let months = self.months.checked_add(self.days / DAYS_PER_MONTH)?;
        Some(Interval { months, days: self.days % DAYS_PER_MONTH, ..self })
    }

    /// The microseconds with the sign of the days, as far as one of the days makes up for it.
    #[must_use]
    pub fn with_time_of_days_sign(mut self) -> Interval {
        let days_sign = self.days.signum();
        if i64::from(days_sign) * self.micros.signum() < 0 {
            self.micros += i64::from(days_sign) * DAY_MICROS;
            self.days -= days_sign;
        }
        self
    }

    /// The days with the sign of the months, as far as thirty days of one of the months make up for it.
    #[must_use]
    pub fn with_days_of_months_sign(mut self) -> Interval {
        let months_sign = self.months.signum();
        if months_sign * self.days.signum() < 0 {
            self.days += months_sign * DAYS_PER_MONTH;
            self.months -= months_sign;
        }
        self
    }

    /// Months, days and what is left with the sign of the first of them that is not zero, as far as a day of the
    /// days and thirty days of a month make up for it.
    #[must_use]
    pub fn with_one_sign(mut self) -> Interval {
        let months_sign = self.months.signum();
        if self.days == 0 && i64::from(months_sign) * self.micros.signum() < 0 {
            self.days += months_sign * DAYS_PER_MONTH;
            self.months -= months_sign;
        }
        self.with_days_of_months_sign().with_time_of_days_sign()
    }

    /// Seconds, with years of 365.25 days, in millionths.
    #[must_use]
    pub fn epoch_micros(self) -> i128 {
        let years = i128::from(self.months / MONTHS_PER_YEAR) * YEAR_MICROS;
        let months = self.months % MONTHS_PER_YEAR;
        years + Interval { months, ..self }.span_micros()
    }

    /// By what intervals are compared.
    #[must_use]
    pub fn span_micros(self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(DAY_MICROS) + i128::from(self.micros)
    }

    /// As it stands in a row: microseconds, days, months.
    pub(crate) fn to_bytes(self) -> [u8; INTERVAL_BYTES] {
        let mut bytes = [0; INTERVAL_BYTES];
        bytes[..8].copy_from_slice(&self.micros.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.days.to_le_bytes());
        bytes[12..].copy_from_slice(&self.months.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; INTERVAL_BYTES]) -> Interval {
        let whole = u128::from_le_bytes(bytes);
        Interval {
            micros: (whole as u64).cast_signed(),
            days: ((whole >> 64) as u32).cast_signed(),
            months: ((whole >> 96) as u32).cast_signed(),
        }
    }
}

impl fmt::Display for Interval {
    /// As PostgreSQL does: `1 year 2 mons -3 days +04:05:06.7`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.months / MONTHS_PER_YEAR, "year"),
            (self.months % MONTHS_PER_YEAR, "mon"),
            (self.days, "day"),
        ];
        let (mut is_first, mut was_negative) = (true, false);
        for (number, name) in parts {
            if number == 0 {
                continue;
            }
            let space = if is_first { "" } else { " " };
            let plus = if was_negative && number > 0 { "+" } else { "" };
            let plural = if number == 1 { "" } else { "s" };
            write!(formatter, "{space}{plus}{number} {name}{plural}")?;
            (is_first, was_negative) = (false, number < 0);
        }
        if self.micros == 0 && !is_first {
            return Ok(());
        }
        let space = if is_first { "" } else { " " };
        let sign = match (self.micros < 0, was_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let micros = self.micros.unsigned_abs();
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(formatter, "{space}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        if micros > 0 {
            let digits = format!("{micros:06}");
            write!(formatter, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

/// Text that is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoInterval;

impl FromStr for Interval {
    type Err = NoInterval;

    /// Reads what is written by `Display`, and no other way that there is to write an interval.
    fn from_str(text: &str) -> Result<Interval, NoInterval> {
        read(text).ok_or(NoInterval)
    }
}

fn read(text: &str) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            interval.micros = time(word)?;
            return words.next().is_none().then_some(interval);
        }
        let number: i32 = word.parse().ok()?;
        match words.next()? {
            "year" | "years" => {
                let months = number.checked_mul(MONTHS_PER_YEAR)?;
                interval.months = interval.months.checked_add(months)?;
            }
            "mon" | "mons" => interval.months = interval.months.checked_add(number)?,
            "day" | "days" => interval.days = interval.days.checked_add(number)?,
            _ => return None,
        }
    }
    Some(interval)
}

/// `-04:05:06.7` in microseconds.
fn time(word: &str) -> Option<i64> {
    let (is_negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (clock, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut parts = clock.split(':');
    let mut part = || {
        let part = parts.next()?;
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<i128>().ok() } else { None }
    };
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    let is_fraction = fraction.len() <= 6 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || minutes > 59 || seconds > 59 || !is_fraction {
        return None;
    }
    let fraction: i128 = format!("{fraction:0<6}").parse().ok()?;
    let micros = hours.checked_mul(3600)?.checked_add(minutes * 60 + seconds)?;
    let micros = micros.checked_mul(1_000_000)?.checked_add(fraction)?;
    i64::try_from(if is_negative { -micros } else { micros }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_spans_may_be_written_differently() {
        let (month, days) = (Interval::months(1), Interval::days(30));
        assert_ne!(month, days);
        assert_eq!(month.span_micros(), days.span_micros());
        assert_eq!(days.with_months(), Some(month));
    }

    #[test]
    fn other_text_is_no_interval() {
        for text in ["", "1", "day", "1 week", "1 day 2", "1:2", "00:60:00", "1 day 00:00:00 x"] {
            assert_eq!(text.parse::<Interval>(), Err(NoInterval), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_interval_comes_back_from_its_text_and_its_bytes(
            months: i32, days: i32, micros: i64,
        ) {
            let interval = Interval { months, days, micros };
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
            prop_assert_eq!(Interval::from_bytes(interval.to_bytes()), interval);
        }
    }
}
