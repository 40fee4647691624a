//! Times and intervals of which a column keeps fewer digits of seconds, or fewer fields, than there are.

use std::fmt;

use crate::{DataType, Interval, TimeTz, Value, calendar};

/// Most digits behind the point of a second.
pub const SECOND_DIGITS_MAX: u8 = 6;

const MINUTE_MICROS: i64 = 60_000_000;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;

/// What is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// A time of day.
    Time,
    /// A time of day with an offset.
    TimeTz,
    /// A timestamp without time zone.
    Timestamp,
    /// A timestamp with time zone.
    TimestampTz,
    /// An interval of these fields.
    Interval(IntervalFields),
}

impl Clock {
    /// The type of what is rounded, with all its digits.
    pub const fn data_type(self) -> DataType {
        match self {
            Clock::Time => DataType::Time,
            Clock::TimeTz => DataType::TimeTz,
            Clock::Timestamp => DataType::Timestamp,
            Clock::TimestampTz => DataType::TimestampTz,
            Clock::Interval(_) => DataType::Interval,
        }
    }
}

/// The fields that an interval is declared to have: `interval hour to minute`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntervalFields {
    /// No fields are declared: it has all.
    #[default]
    All,
    /// `year`
    Year,
    /// `month`
    Month,
    /// `year to month`
    YearToMonth,
    /// `day`
    Day,
    /// `hour`
    Hour,
    /// `day to hour`
    DayToHour,
    /// `minute`
    Minute,
    /// `day to minute`
    DayToMinute,
    /// `hour to minute`
    HourToMinute,
    /// `second`
    Second,
    /// `day to second`
    DayToSecond,
    /// `hour to second`
    HourToSecond,
    /// `minute to second`
    MinuteToSecond,
}

impl IntervalFields {
    /// All of them; the place in the list is what a definition keeps.
    pub const EACH: [IntervalFields; 14] = [
        IntervalFields::All,
        IntervalFields::Year,
        IntervalFields::Month,
        IntervalFields::YearToMonth,
        IntervalFields::Day,
        IntervalFields::Hour,
        IntervalFields::DayToHour,
        IntervalFields::Minute,
        IntervalFields::DayToMinute,
        IntervalFields::HourToMinute,
        IntervalFields::Second,
        IntervalFields::DayToSecond,
        IntervalFields::HourToSecond,
        IntervalFields::MinuteToSecond,
    ];

    /// As SQL writes them.
    pub const fn name(self) -> &'static str {
        match self {
            IntervalFields::All => "",
            IntervalFields::Year => "year",
            IntervalFields::Month => "month",
            IntervalFields::YearToMonth => "year to month",
            IntervalFields::Day => "day",
            IntervalFields::Hour => "hour",
            IntervalFields::DayToHour => "day to hour",
            IntervalFields::Minute => "minute",
            IntervalFields::DayToMinute => "day to minute",
            IntervalFields::HourToMinute => "hour to minute",
            IntervalFields::Second => "second",
            IntervalFields::DayToSecond => "day to second",
            IntervalFields::HourToSecond => "hour to second",
            IntervalFields::MinuteToSecond => "minute to second",
        }
    }

    /// Whether seconds are among them, of which digits can be declared.
    pub const fn has_seconds(self) -> bool {
        matches!(
            self,
            IntervalFields::All
                | IntervalFields::Second
                | IntervalFields::DayToSecond
                | IntervalFields::HourToSecond
                | IntervalFields::MinuteToSecond
        )
    }

    /// The interval without what is smaller than the last of the fields, and with as many digits of seconds.
    #[must_use]
    pub fn cut(self, interval: Interval, digits: Option<u8>) -> Interval {
        let Interval { months, days, micros } = interval;
        let whole = |width: i64| micros / width * width;
        let (months, days, micros) = match self {
            IntervalFields::Year => (months / 12 * 12, 0, 0),
            IntervalFields::Month | IntervalFields::YearToMonth => (months, 0, 0),
            IntervalFields::Day => (months, days, 0),
            IntervalFields::Hour | IntervalFields::DayToHour => (months, days, whole(HOUR_MICROS)),
            IntervalFields::Minute | IntervalFields::DayToMinute | IntervalFields::HourToMinute => {
                (months, days, whole(MINUTE_MICROS))
            }
            _ => (months, days, micros),
        };
        Interval { months, days, micros: rounded_micros(micros, digits) }
    }
}

/// Halves go away from zero, as PostgreSQL rounds them.
fn rounded_micros(micros: i64, digits: Option<u8>) -> i64 {
    let left_out = SECOND_DIGITS_MAX.saturating_sub(digits.unwrap_or(SECOND_DIGITS_MAX));
    let unit = 10i64.pow(u32::from(left_out));
    let half = micros.signum() * (unit / 2);
    micros.saturating_add(half) / unit * unit
}

impl DataType {
    /// The type with all digits and fields of what is rounded; any other type itself.
    #[inline]
    #[must_use]
    pub const fn unrounded(self) -> DataType {
        match self {
            DataType::Rounded(clock, _) => clock.data_type(),
            other => other,
        }
    }

    /// The value as a column of a type that rounds has it; any other as it is.
    #[must_use]
    pub fn rounded(self, value: Value<'_>) -> Value<'_> {
        let DataType::Rounded(clock, digits) = self else { return value };
        // PostgreSQL counts from 2000, and halves go away from there.
        const EPOCH_MICROS: i64 = 946_684_800_000_000;
        let since_epoch = |micros: i64| match calendar::is_infinite_timestamp(micros) {
            true => micros,
            false => rounded_micros(micros - EPOCH_MICROS, digits) + EPOCH_MICROS,
        };
        match (value, clock) {
            (Value::Time(micros), _) => Value::Time(rounded_micros(micros, digits)),
            (Value::TimeTz(time), _) => {
                Value::TimeTz(TimeTz { micros: rounded_micros(time.micros, digits), ..time })
            }
            (Value::Timestamp(micros), _) => Value::Timestamp(since_epoch(micros)),
            (Value::TimestampTz(micros), _) => Value::TimestampTz(since_epoch(micros)),
            (Value::Interval(interval), Clock::Interval(fields)) => {
                Value::Interval(fields.cut(interval, digits))
            }
            (value, _) => value,
        }
    }
}

/// `timestamp(3)`, `interval day to second(0)`.
pub(crate) fn write(
    clock: Clock,
    digits: Option<u8>,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(formatter, "{}", clock.data_type())?;
    if let Clock::Interval(fields) = clock
        && fields != IntervalFields::All
    {
        write!(formatter, " {}", fields.name())?;
    }
    digits.map_or(Ok(()), |digits| write!(formatter, "({digits})"))
}

/// Reads what is written by [`write()`], and PostgreSQL's own names: `timestamp(3) with time zone`. None where it is no
/// such type; digits that are too many are left for [`DataType::fault`].
pub(crate) fn read(lower: &str) -> Option<DataType> {
    let (name, digits, behind) = match lower.split_once('(') {
        None => (lower, None, ""),
        Some((name, rest)) => {
            let (digits, behind) = rest.split_once(')')?;
            (name.trim_end(), Some(digits.trim().parse().ok()?), behind.trim())
        }
    };
    let clock = match (name, behind) {
        ("time", "" | "without time zone") | ("time without time zone", "") => Clock::Time,
        ("timetz", "") | ("time", "with time zone") | ("time with time zone", "") => Clock::TimeTz,
        ("timestamp", "" | "without time zone") | ("timestamp without time zone", "") => {
            Clock::Timestamp
        }
        ("timestamptz", "")
        | ("timestamp", "with time zone")
        | ("timestamp with time zone", "") => Clock::TimestampTz,
        (_, "") => {
            let fields = name.strip_prefix("interval")?.trim_start();
            let is_it = |each: &IntervalFields| each.name() == fields;
            Clock::Interval(IntervalFields::EACH.into_iter().find(is_it)?)
        }
        _ => return None,
    };
    let is_plain = !matches!(clock, Clock::Interval(fields) if fields != IntervalFields::All);
    match digits {
        None if is_plain => Some(clock.data_type()),
        _ => Some(DataType::Rounded(clock, digits)),
    }
}

const ALL_DIGITS: u8 = 255;

/// Appends what is rounded, as a definition keeps it.
pub(crate) fn push(clock: Clock, digits: Option<u8>, out: &mut Vec<u8>) {
    let (number, fields) = match clock {
        Clock::Time => (1, None),
        Clock::Timestamp => (2, None),
        Clock::TimestampTz => (3, None),
        Clock::Interval(fields) => (4, Some(fields)),
        Clock::TimeTz => (5, None),
    };
    out.extend_from_slice(&[number, digits.unwrap_or(ALL_DIGITS)]);
    let place = |fields| IntervalFields::EACH.iter().position(|each| *each == fields);
    out.extend(fields.and_then(place).and_then(|place| u8::try_from(place).ok()));
}

/// The type of what is rounded and of how many digits it has; the fields of an interval come behind.
pub(crate) fn read_type(
    number: u8,
    digits: u8,
    fields: impl FnOnce() -> Result<u8, &'static str>,
) -> Result<DataType, &'static str> {
    let clock = match number {
        1 => Clock::Time,
        2 => Clock::Timestamp,
        3 => Clock::TimestampTz,
        4 => {
            let fields = IntervalFields::EACH.get(usize::from(fields()?));
            Clock::Interval(*fields.ok_or("the fields of an interval are not known")?)
        }
        5 => Clock::TimeTz,
        _ => return Err("what is rounded is not known"),
    };
    Ok(DataType::Rounded(clock, (digits != ALL_DIGITS).then_some(digits)))
}

/// The reason why a type cannot round so, if so.
pub(crate) const fn fault(clock: Clock, digits: Option<u8>) -> Option<&'static str> {
    match (clock, digits) {
        (_, Some(digits)) if digits > SECOND_DIGITS_MAX => {
            Some("seconds have up to 6 digits behind the point")
        }
        (Clock::Interval(fields), Some(_)) if !fields.has_seconds() => {
            Some("only seconds have digits behind the point")
        }
        (Clock::Interval(IntervalFields::All), None)
        | (Clock::Time | Clock::TimeTz | Clock::Timestamp | Clock::TimestampTz, None) => {
            Some("it rounds nothing")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_the_year_2000() {
        let second = DataType::Rounded(Clock::Timestamp, Some(0));
        let at = |micros: i64| second.rounded(Value::Timestamp(946_684_800_000_000 + micros));
        assert_eq!(at(500_000), at(1_000_000));
        assert_eq!(at(-500_000), at(-1_000_000));
        assert_eq!(at(499_999), at(0));
    }

    #[test]
    fn an_infinity_is_not_rounded() {
        let second = DataType::Rounded(Clock::Timestamp, Some(0));
        for micros in calendar::TIMESTAMP_INFINITIES {
            assert_eq!(second.rounded(Value::Timestamp(micros)), Value::Timestamp(micros));
        }
    }

    #[test]
    fn a_time_may_be_rounded_to_the_end_of_its_day() {
        let second = DataType::Rounded(Clock::Time, Some(0));
        assert_eq!(second.rounded(Value::Time(86_399_999_999)), Value::Time(86_400_000_000));
    }

    #[test]
    fn names_of_postgresql_are_read() {
        let read = |text: &str| text.parse::<DataType>().expect(text);
        let to = |clock, digits| DataType::Rounded(clock, Some(digits));
        assert_eq!(read("timestamp (3) without time zone"), to(Clock::Timestamp, 3));
        assert_eq!(read("TIMESTAMP(0) WITH TIME ZONE"), to(Clock::TimestampTz, 0));
        assert_eq!(read("time(6)"), to(Clock::Time, 6));
        assert_eq!(
            read("interval day to second (2)"),
            to(Clock::Interval(IntervalFields::DayToSecond), 2)
        );
        assert_eq!(
            read("interval year"),
            DataType::Rounded(Clock::Interval(IntervalFields::Year), None)
        );
        for text in ["time(7)", "interval year(2)", "interval week", "timestamp(-1)"] {
            assert!(text.parse::<DataType>().is_err(), "{text}");
        }
    }
}
