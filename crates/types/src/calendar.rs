//! Days of the Gregorian calendar, of whatever year: the library knows those up to the year 9999.
//!
//! After 400 years the calendar is the same again, weekdays included. A day here is one of the library's in the years
//! 2000 to 2399, and how many times 400 years it is away from there.

use std::fmt;

use jiff::civil::{Date, date};

/// 4714-11-24 BC, the first day that PostgreSQL counts, in days since 1970-01-01.
pub const DATE_DAYS_MIN: i32 = -2_440_588;
/// 5874897-12-31, its last one.
pub const DATE_DAYS_MAX: i32 = 2_145_042_905;
/// `-infinity` and `infinity` as days.
pub const DATE_INFINITIES: [i32; 2] = [i32::MIN, i32::MAX];
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;
/// 4714-11-24 00:00:00 BC, in microseconds since 1970-01-01.
pub const TIMESTAMP_MICROS_MIN: i64 = DATE_DAYS_MIN as i64 * DAY_MICROS;
/// 294246-12-31 23:59:59.999999. Of the year behind it 64 bits have only the first days.
pub const TIMESTAMP_MICROS_MAX: i64 = 106_751_982 * DAY_MICROS - 1;
/// `-infinity` and `infinity` as microseconds.
pub const TIMESTAMP_INFINITIES: [i64; 2] = [i64::MIN, i64::MAX];

/// Days after which the calendar is the same again.
const CYCLE_DAYS: i64 = 146_097;
const CYCLE_YEARS: i64 = 400;
/// 2000-01-01, in days since 1970-01-01.
const FIRST_DAYS: i64 = 10_957;
const FIRST_YEAR: i64 = 2000;

/// Whether there is such a date; the infinities are.
#[must_use]
pub const fn is_date(days: i32) -> bool {
    (DATE_DAYS_MIN <= days && days <= DATE_DAYS_MAX) || is_infinite_date(days)
}

/// Whether a date is one of the infinities.
#[must_use]
pub const fn is_infinite_date(days: i32) -> bool {
    days == DATE_INFINITIES[0] || days == DATE_INFINITIES[1]
}

/// Whether there is such a timestamp; the infinities are.
#[must_use]
pub const fn is_timestamp(micros: i64) -> bool {
    (TIMESTAMP_MICROS_MIN <= micros && micros <= TIMESTAMP_MICROS_MAX)
        || is_infinite_timestamp(micros)
}

/// Whether a timestamp is one of the infinities.
#[must_use]
pub const fn is_infinite_timestamp(micros: i64) -> bool {
    micros == TIMESTAMP_INFINITIES[0] || micros == TIMESTAMP_INFINITIES[1]
}

/// The name of an infinity, by its sign.
#[must_use]
pub const fn infinity_name(is_negative: bool) -> &'static str {
    if is_negative { "-infinity" } else { "infinity" }
}

/// The timestamp at the beginning of a date, an infinity for one; none where there is no such timestamp.
#[must_use]
pub fn timestamp_of_date(days: i32) -> Option<i64> {
    match days {
        i32::MIN => Some(i64::MIN),
        i32::MAX => Some(i64::MAX),
        days => i64::from(days).checked_mul(DAY_MICROS).filter(|micros| is_timestamp(*micros)),
    }
}

/// The date that a timestamp is of, an infinity for one.
#[must_use]
pub fn date_of_timestamp(micros: i64) -> i32 {
    match micros {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        micros => i32::try_from(micros.div_euclid(DAY_MICROS)).unwrap_or(i32::MAX),
    }
}

/// One day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    within: Date,
    cycles: i64,
}

impl Day {
    /// The day so many days after 1970-01-01.
    #[must_use]
    pub fn at(days: i64) -> Day {
        let since = days - FIRST_DAYS;
        let day = since.rem_euclid(CYCLE_DAYS);
        let span = jiff::Span::new().days(day);
        // All days of a cycle are the library's.
        let within = date(2000, 1, 1).checked_add(span).unwrap_or(Date::MAX);
        Day { within, cycles: since.div_euclid(CYCLE_DAYS) }
    }

    /// The day of a year, which is 0 for 1 BC, a month and a day of it; none if there is none.
    #[must_use]
    pub fn new(year: i64, month: i8, day: i8) -> Option<Day> {
        let since = year.checked_sub(FIRST_YEAR)?;
        let of_cycle = i16::try_from(since.rem_euclid(CYCLE_YEARS) + FIRST_YEAR).ok()?;
        let within = Date::new(of_cycle, month, day).ok()?;
        Some(Day { within, cycles: since.div_euclid(CYCLE_YEARS) })
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub fn days(self) -> i64 {
        let (year, month) = (i64::from(self.within.year()), i64::from(self.within.month()));
        // Years begin with March, so that the day that some have more is their last one.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let of_year = (153 * month + 2) / 5 + i64::from(self.within.day()) - 1;
        let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
        days - DAYS_BEFORE_1970 + self.cycles * CYCLE_DAYS
    }

    /// The same day in the years 2000 to 2399, of the same weekday and week.
    #[must_use]
    pub fn within(self) -> Date {
        self.within
    }

    /// The year; 0 is 1 BC.
    #[must_use]
    pub fn year(self) -> i64 {
        i64::from(self.within.year()) + self.cycles * CYCLE_YEARS
    }

    /// The month, from 1.
    #[must_use]
    pub fn month(self) -> i8 {
        self.within.month()
    }

    /// The day of the month, from 1.
    #[must_use]
    pub fn day(self) -> i8 {
        self.within.day()
    }

    /// The year that its week is of.
    #[must_use]
    pub fn iso_year(self) -> i64 {
        i64::from(self.within.iso_week_date().year()) + self.cycles * CYCLE_YEARS
    }

    /// So many months later; of a month that is shorter its last day.
    #[must_use]
    pub fn plus_months(self, months: i64) -> Option<Day> {
        let months = (self.year() * 12 + i64::from(self.month()) - 1).checked_add(months)?;
        let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
        let first = Day::new(months.div_euclid(12), month, 1)?;
        Day::new(first.year(), month, self.day().min(first.within.days_in_month()))
    }
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

/// `2024-05-31`. That it is before Christ stands behind the time of day, where there is one.
impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let year = self.year();
        let shown = if year > 0 { year } else { 1 - year };
        write!(formatter, "{shown:04}-{:02}-{:02}", self.month(), self.day())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_are_those_of_postgresql() {
        let days = |year, month, day| Day::new(year, month, day).map(Day::days);
        assert_eq!(days(-4713, 11, 24), Some(i64::from(DATE_DAYS_MIN)));
        assert_eq!(days(5_874_897, 12, 31), Some(i64::from(DATE_DAYS_MAX)));
        assert_eq!(days(294_247, 1, 1), Some((TIMESTAMP_MICROS_MAX + 1) / DAY_MICROS));
        assert_eq!(days(1970, 1, 1), Some(0));
    }

    proptest! {
        #[test]
        fn a_day_is_found_by_its_number_and_by_its_date(days in DATE_DAYS_MIN..=DATE_DAYS_MAX) {
            let day = Day::at(days.into());
            prop_assert_eq!(day.days(), i64::from(days));
            prop_assert_eq!(Day::new(day.year(), day.month(), day.day()), Some(day));
        }

        #[test]
        fn a_day_is_the_library_s_where_that_has_one(days in -719_162i64..2_932_896) {
            let own = date(1970, 1, 1).checked_add(jiff::Span::new().days(days)).expect("a date");
            let day = Day::at(days);
            prop_assert_eq!(day.to_string(), own.to_string());
            prop_assert_eq!(day.within().weekday(), own.weekday());
            prop_assert_eq!(day.iso_year(), i64::from(own.iso_week_date().year()));
            prop_assert_eq!(day.within().iso_week_date().week(), own.iso_week_date().week());
        }
    }
}
