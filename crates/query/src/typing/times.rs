//! Types of times and intervals, with fewer digits of seconds than there are or fewer fields.

use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, IntervalFields as SqlFields, TimezoneInfo,
};
use onrush::{Clock, DataType, IntervalFields, SECOND_DIGITS_MAX};

/// The type of times or intervals that is written; none for any other.
#[must_use]
pub fn time_type(written: &SqlType) -> Option<DataType> {
    let (clock, digits) = match written {
        SqlType::Timestamp(digits, zone) => (
            match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => Clock::Timestamp,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Clock::TimestampTz,
            },
            digits,
        ),
        SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Clock::Time, digits)
        }
        SqlType::Time(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            (Clock::TimeTz, digits)
        }
        SqlType::Interval { fields, precision } => {
            (Clock::Interval(fields.as_ref().map(fields_of_type).unwrap_or_default()), precision)
        }
        _ => return None,
    };
    let digits = digits.map(digits_of);
    let has_fields = matches!(clock, Clock::Interval(fields) if fields != IntervalFields::All);
    Some(match digits {
        None if !has_fields => clock.data_type(),
        digits => DataType::Rounded(clock, digits),
    })
}

/// As PostgreSQL takes digits that are more than there are.
pub(crate) fn digits_of(digits: u64) -> u8 {
    u8::try_from(digits).map_or(SECOND_DIGITS_MAX, |digits| digits.min(SECOND_DIGITS_MAX))
}

pub(crate) fn fields_of_type(fields: &SqlFields) -> IntervalFields {
    match fields {
        SqlFields::Year => IntervalFields::Year,
        SqlFields::Month => IntervalFields::Month,
        SqlFields::Day => IntervalFields::Day,
        SqlFields::Hour => IntervalFields::Hour,
        SqlFields::Minute => IntervalFields::Minute,
        SqlFields::Second => IntervalFields::Second,
        SqlFields::YearToMonth => IntervalFields::YearToMonth,
        SqlFields::DayToHour => IntervalFields::DayToHour,
        SqlFields::DayToMinute => IntervalFields::DayToMinute,
        SqlFields::DayToSecond => IntervalFields::DayToSecond,
        SqlFields::HourToMinute => IntervalFields::HourToMinute,
        SqlFields::HourToSecond => IntervalFields::HourToSecond,
        SqlFields::MinuteToSecond => IntervalFields::MinuteToSecond,
    }
}
