//! Intervals as PostgreSQL has them: months, days and microseconds, which do not become each other. No
//! column holds one; queries compute with them.

use std::fmt;

use datafusion::arrow::datatypes::IntervalMonthDayNano;

use crate::error::{QueryError, Result};
use crate::interval_text::{self, Range};

const MONTHS_PER_YEAR: i32 = 12;
/// What a month counts where intervals are compared.
const DAYS_PER_MONTH: i128 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;
/// What fits into nanoseconds, which Arrow counts.
const MICROS_MAX: f64 = 9_223_372_036_854_775.0;
/// A quarter of a day more than 365 days.
const YEAR_MICROS: i128 = 31_557_600_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Whole months; twelve of them are written as a year.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// What is less than a day, and may be more.
    pub micros: i64,
}

impl Interval {
    pub(crate) const fn of_micros(micros: i64) -> Interval {
        Interval { months: 0, days: 0, micros }
    }

    /// The time between two moments: days and what is left.
    pub(crate) fn between(from_micros: i64, to_micros: i64) -> Result<Interval> {
        let between = to_micros.checked_sub(from_micros).ok_or_else(out_of_range)?;
        Interval::of_micros(between).with_days()
    }

    /// Whole days of the microseconds become days.
    pub(crate) fn with_days(self) -> Result<Interval> {
        let days = i32::try_from(self.micros / MICROS_PER_DAY).map_err(|_| out_of_range())?;
        let days = self.days.checked_add(days).ok_or_else(out_of_range)?;
        Ok(Interval { days, micros: self.micros % MICROS_PER_DAY, ..self })
    }

    /// Thirty days become a month.
    pub(crate) fn with_months(self) -> Result<Interval> {
        let of_month = DAYS_PER_MONTH as i32;
        let months = self.months.checked_add(self.days / of_month).ok_or_else(out_of_range)?;
        Ok(Interval { months, days: self.days % of_month, ..self })
    }

    /// Months, days and what is left with the sign of the first of them that is not zero, as far as a day of the
    /// days and thirty days of a month make up for it.
    pub(crate) fn with_one_sign(mut self) -> Result<Interval> {
        let sign = |number: i64| i32::try_from(number.signum()).unwrap_or_default();
        let of_month = DAYS_PER_MONTH as i32;
        let days_sign = match self.days {
            0 => sign(self.micros),
            days => days.signum(),
        };
        let months_sign = self.months.signum();
        if months_sign * days_sign < 0 {
            self.days += months_sign * of_month;
            self.months -= months_sign;
        }
        let days_sign = self.days.signum();
        if days_sign * sign(self.micros) < 0 {
            self.micros += i64::from(days_sign) * MICROS_PER_DAY;
            self.days -= days_sign;
        }
        Ok(self)
    }

    /// Seconds, with years of 365.25 days, in millionths.
    pub(crate) fn epoch_micros(self) -> i128 {
        let years = i128::from(self.months / MONTHS_PER_YEAR) * YEAR_MICROS;
        let months = self.months % MONTHS_PER_YEAR;
        years + Interval { months, ..self }.span_micros()
    }

    /// By what intervals are compared.
    pub(crate) fn span_micros(self) -> i128 {
        let days = i128::from(self.months) * DAYS_PER_MONTH + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// The interval `factor` times; parts of months become days, parts of days microseconds.
    pub(crate) fn times(self, factor: f64) -> Result<Interval> {
        self.scaled(|part| part * factor)
    }

    /// A part of the interval, as [`times`](Self::times).
    pub(crate) fn divided(self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(QueryError::DivisionByZero);
        }
        self.scaled(|part| part / divisor)
    }

    /// The same to the other side.
    pub(crate) fn negated(self) -> Result<Interval> {
        let negated = || {
            Some(Interval {
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        negated().ok_or_else(out_of_range)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        // Rounded to millionths, so that a tenth of ten months is one and nothing.
        let rounded = |part: f64| (part * 1e6).round() / 1e6;
        let (months, days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let days_of_months = rounded(months.fract() * DAYS_PER_MONTH as f64);
        let part_of_day = days.fract() + days_of_months.fract();
        let seconds = rounded(part_of_day * SECONDS_PER_DAY);
        let micros = scale(self.micros as f64) + seconds * MICROS_PER_SECOND as f64;
        let days = days.trunc() + days_of_months.trunc();
        let is_in_range = |part: f64, most: f64| part.abs() <= most;
        if !is_in_range(months, f64::from(i32::MAX))
            || !is_in_range(days, f64::from(i32::MAX))
            || !is_in_range(micros, MICROS_MAX)
        {
            return Err(out_of_range());
        }
        Ok(Interval {
            months: months.trunc() as i32,
            days: days as i32,
            micros: micros.round() as i64,
        })
    }

    /// `1 year 2 mons -3 days 04:05:06.7`, `P1Y2M`, `90 minutes ago`, `1-2 3 4:05`.
    ///
    /// # Errors
    /// Text that is none.
    pub fn parse(written: &str) -> Result<Interval> {
        interval_text::read(written, Range::All)
    }
}

pub(crate) fn out_of_range() -> QueryError {
    QueryError::refused("22008", "interval out of range")
}

impl From<IntervalMonthDayNano> for Interval {
    fn from(value: IntervalMonthDayNano) -> Interval {
        Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1000 }
    }
}

impl TryFrom<Interval> for IntervalMonthDayNano {
    type Error = QueryError;

    fn try_from(interval: Interval) -> Result<IntervalMonthDayNano> {
        let nanos = interval.micros.checked_mul(1000).ok_or_else(out_of_range)?;
        Ok(IntervalMonthDayNano::new(interval.months, interval.days, nanos))
    }
}

impl fmt::Display for Interval {
    /// As PostgreSQL does.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_in_other_ways_is_the_same() {
        for (written, meant) in [
            ("1 year 2 months 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
            ("90 minutes", "01:30:00"),
            ("1.5 months", "1 mon 15 days"),
            ("2 weeks ago", "-14 days"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("1-2 3 4:05", "1 year 2 mons 3 days 04:05:00"),
            ("-1 day 02:03", "-1 days +02:03:00"),
            ("0", "00:00:00"),
            ("3d4h", "3 days 04:00:00"),
        ] {
            let read = Interval::parse(written).expect(written);
            assert_eq!(read.to_string(), meant, "{written}");
        }
        for written in [
            "",
            "one day",
            "1 fortnight",
            "1:99",
            "p",
            "1 day x",
            "99999999999 years",
            "1-13",
            "-1--5",
            "-1--2147483648",
        ] {
            assert!(Interval::parse(written).is_err(), "{written}");
        }
    }

    #[test]
    fn parts_of_days_are_exact_to_the_microsecond() {
        let of = |written: &str| Interval::parse(written).expect(written);
        assert_eq!(of("1 day").divided(3.0).expect("a third"), of("08:00:00"));
        assert_eq!(of("2 days").divided(3.0).expect("a third"), of("16:00:00"));
        let seventh = of("90 days").divided(7.0).expect("a seventh");
        assert_eq!(seventh.to_string(), "12 days 20:34:17.142857");
        assert!(matches!(of("1 day").divided(0.0), Err(QueryError::DivisionByZero)));
        assert!(of("1 day").times(f64::INFINITY).is_err());
        assert!(of("2147483646 days").times(2.0).is_err());
    }

    proptest! {
        #[test]
        fn an_interval_comes_back_from_its_text(
            months in -100_000i32..100_000,
            days in -100_000i32..100_000,
            micros in -1_000_000_000_000i64..1_000_000_000_000,
        ) {
            let interval = Interval { months, days, micros };
            prop_assert_eq!(Interval::parse(&interval.to_string()).expect("read"), interval);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = Interval::parse(&text);
        }
    }
}
