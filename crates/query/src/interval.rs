//! What queries do with intervals: they are read, multiplied and divided, and stand in Arrow's arrays.

use datafusion::arrow::datatypes::IntervalMonthDayNano;
use onrush::{Interval, IntervalFields};

use crate::error::{QueryError, Result};
use crate::interval_text;
use crate::timestamp::is_infinite_timestamp;

/// What a month counts where a part of it becomes days.
const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
/// What fits into nanoseconds, which Arrow counts.
const MICROS_MAX: f64 = 9_223_372_036_854_775.0;
const MICROS_PER_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// The time between two moments: days and what is left.
pub(crate) fn between(from_micros: i64, to_micros: i64) -> Result<Interval> {
    if is_infinite_timestamp(from_micros) || is_infinite_timestamp(to_micros) {
        return Err(QueryError::refused("22008", "cannot subtract infinite timestamps"));
    }
    let between = to_micros.checked_sub(from_micros).map(Interval::of_micros);
    between.and_then(Interval::with_days).ok_or_else(out_of_range)
}

/// The interval `factor` times; parts of months become days, parts of days microseconds.
pub(crate) fn times(interval: Interval, factor: f64) -> Result<Interval> {
    scaled(interval, |part| part * factor)
}

/// A part of the interval, as [`times`].
pub(crate) fn divided(interval: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(QueryError::DivisionByZero);
    }
    scaled(interval, |part| part / divisor)
}

fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Result<Interval> {
    // Rounded to millionths, so that a tenth of ten months is one and nothing.
    let rounded = |part: f64| (part * 1e6).round_ties_even() / 1e6;
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let days_of_months = rounded(months.fract() * DAYS_PER_MONTH);
    let part_of_day = days.fract() + days_of_months.fract();
    let seconds = rounded(part_of_day * SECONDS_PER_DAY);
    let whole_days = (seconds / SECONDS_PER_DAY).trunc();
    let seconds = seconds - whole_days * SECONDS_PER_DAY;
    let micros = scale(interval.micros as f64) + seconds * MICROS_PER_SECOND as f64;
    let days = days.trunc() + days_of_months.trunc() + whole_days;
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
        micros: micros.round_ties_even() as i64,
    })
}

/// Reads `1 year 2 mons -3 days 04:05:06.7`, `P1Y2M`, `90 minutes ago`, `1-2 3 4:05`.
///
/// # Errors
/// Text that is none.
pub fn parse_interval(written: &str) -> Result<Interval> {
    interval_text::read(written, IntervalFields::All)
}

pub(crate) fn out_of_range() -> QueryError {
    QueryError::refused("22008", "interval out of range")
}

pub(crate) fn of_arrow(value: IntervalMonthDayNano) -> Interval {
    Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1000 }
}

/// # Errors
/// One of more than 292 years of microseconds.
pub(crate) fn to_arrow(interval: Interval) -> Result<IntervalMonthDayNano> {
    let nanos = interval.micros.checked_mul(1000).ok_or_else(out_of_range)?;
    Ok(IntervalMonthDayNano::new(interval.months, interval.days, nanos))
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
            let read = parse_interval(written).expect(written);
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
            assert!(parse_interval(written).is_err(), "{written}");
        }
    }

    #[test]
    fn parts_of_days_are_exact_to_the_microsecond() {
        let of = |written: &str| parse_interval(written).expect(written);
        assert_eq!(divided(of("1 day"), 3.0).expect("a third"), of("08:00:00"));
        assert_eq!(divided(of("2 days"), 3.0).expect("a third"), of("16:00:00"));
        let seventh = divided(of("90 days"), 7.0).expect("a seventh");
        assert_eq!(seventh.to_string(), "12 days 20:34:17.142857");
        assert!(matches!(divided(of("1 day"), 0.0), Err(QueryError::DivisionByZero)));
        assert!(times(of("1 day"), f64::INFINITY).is_err());
        assert!(times(of("2147483646 days"), 2.0).is_err());
    }

    proptest! {
        #[test]
        fn an_interval_comes_back_from_its_text(
            months in -100_000i32..100_000,
            days in -100_000i32..100_000,
            micros in -1_000_000_000_000i64..1_000_000_000_000,
        ) {
            let interval = Interval { months, days, micros };
            prop_assert_eq!(parse_interval(&interval.to_string()).expect("read"), interval);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = parse_interval(&text);
        }
    }
}
