//! Dates and times as PostgreSQL reads them: `January 8, 1999`, `1/8/99`, `J2451187`, `19990108T040506-08`,
//! `yesterday`, `1999-01-08 04:05 PM America/New_York`.
//!
//! Text is cut into fields (`cut.rs`), each of which adds to what is known (`decode.rs`, `numbers.rs`); here it becomes
//! a value.

mod cut;
mod decode;
mod numbers;
mod words;

use onrush::{DataType, TimeTz, Value};
use onrush_types::calendar::{DATE_INFINITIES, TIMESTAMP_INFINITIES};

pub(crate) use cut::{Field, Kind, fields};

use crate::clock::now_micros;
use crate::error::{QueryError, Result};
use crate::interval::MICROS_PER_DAY;
use crate::style::{Zone, current};
use crate::timestamp::{self, timestamp_at};

/// Why text is no date or time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    Format,
    Field,
    Offset,
    Zone(String),
}

pub(crate) type Decoded<T> = std::result::Result<T, Bad>;

/// Where a timestamp is.
#[derive(Clone, Debug)]
enum Place {
    /// Seconds east of UTC.
    Offset(i32),
    Zone(Zone),
}

/// What was read.
#[derive(Debug)]
enum Read {
    Infinity {
        is_negative: bool,
    },
    Now,
    /// A day since 1970, if one was told, and microseconds of it.
    Told {
        day: i64,
        time: i64,
        place: Option<Place>,
    },
}

/// Reads a date, a time, or a timestamp with or without a zone.
///
/// # Errors
/// Text that is none; what there is no such date or timestamp for.
pub(crate) fn read(data_type: DataType, written: &str) -> Result<Value<'static>> {
    let style = current();
    let is_time = matches!(data_type, DataType::Time | DataType::TimeTz);
    let read = cut::fields(written)
        .and_then(|fields| decode::decode(&fields, is_time, style.order))
        .map_err(|bad| error(bad, data_type, written))?;
    let (day, time, place) = match read {
        Read::Infinity { is_negative } => {
            let micros = TIMESTAMP_INFINITIES[usize::from(!is_negative)];
            return Ok(match data_type {
                DataType::Date => Value::Date(DATE_INFINITIES[usize::from(!is_negative)]),
                DataType::Timestamp => Value::Timestamp(micros),
                _ => Value::TimestampTz(micros),
            });
        }
        Read::Now => {
            let local = style.zone.local(now_micros())?;
            (local.div_euclid(MICROS_PER_DAY), local.rem_euclid(MICROS_PER_DAY), None)
        }
        Read::Told { day, time, place } => (day, time, place),
    };
    let out_of_range = || {
        let kind = if data_type == DataType::Date { "date" } else { "timestamp" };
        QueryError::refused("22008", format!("{kind} out of range: \"{written}\""))
    };
    if data_type == DataType::Time {
        return match time {
            ..=MICROS_PER_DAY => Ok(Value::Time(time)),
            _ => Err(error(Bad::Field, data_type, written)),
        };
    }
    if data_type == DataType::TimeTz {
        let offset_seconds = match place {
            Some(Place::Offset(east)) => east,
            place => {
                let zone = match &place {
                    Some(Place::Zone(zone)) => zone,
                    _ => &style.zone,
                };
                // Without a date that of today.
                let day = if day == 0 {
                    today().map_err(|bad| error(bad, data_type, written))?
                } else {
                    day
                };
                let local = timestamp_at(day, time);
                let local = local.ok_or_else(|| error(Bad::Field, data_type, written))?;
                let seconds = (local - zone.utc_of(local)?) / 1_000_000;
                i32::try_from(seconds).map_err(|_| error(Bad::Field, data_type, written))?
            }
        };
        let time = TimeTz { micros: time, offset_seconds };
        return match time.is_sound() {
            true => Ok(Value::TimeTz(time)),
            false => Err(error(Bad::Field, data_type, written)),
        };
    }
    if data_type == DataType::Date {
        return Ok(Value::Date(timestamp::date(day).ok_or_else(out_of_range)?));
    }
    // What is out of range by the clocks of its zone may be in range by those of UTC.
    let local = day.checked_mul(MICROS_PER_DAY).and_then(|midnight| midnight.checked_add(time));
    let local = local.ok_or_else(out_of_range)?;
    let micros = match (data_type, place) {
        (DataType::TimestampTz, None) => style.zone.utc_of(local)?,
        (DataType::TimestampTz, Some(Place::Zone(zone))) => zone.utc_of(local)?,
        (DataType::TimestampTz, Some(Place::Offset(east))) => {
            local.saturating_sub(i64::from(east) * 1_000_000)
        }
        _ => local,
    };
    let micros = timestamp::timestamp(micros).ok_or_else(out_of_range)?;
    Ok(match data_type {
        DataType::Timestamp => Value::Timestamp(micros),
        _ => Value::TimestampTz(micros),
    })
}

/// Today by the clocks of the session, in days since 1970.
fn today() -> Decoded<i64> {
    let local = current().zone.local(now_micros()).map_err(|_| Bad::Field)?;
    Ok(local.div_euclid(MICROS_PER_DAY))
}

fn name_of(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Date => "date",
        DataType::Time => "time",
        DataType::TimeTz => "time with time zone",
        DataType::Timestamp => "timestamp",
        _ => "timestamp with time zone",
    }
}

fn error(bad: Bad, data_type: DataType, written: &str) -> QueryError {
    match bad {
        Bad::Format => {
            let message =
                format!("invalid input syntax for type {}: \"{written}\"", name_of(data_type));
            QueryError::refused("22007", message)
        }
        Bad::Field => {
            let message = format!("date/time field value out of range: \"{written}\"");
            QueryError::refused("22008", message)
        }
        Bad::Offset => {
            let message = format!("time zone displacement out of range: \"{written}\"");
            QueryError::refused("22009", message)
        }
        Bad::Zone(zone) => {
            QueryError::refused("22023", format!("time zone \"{zone}\" not recognized"))
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_types::calendar::{TIMESTAMP_MICROS_MAX, TIMESTAMP_MICROS_MIN};
    use proptest::prelude::*;

    use super::*;
    use crate::text::written_plainly;

    #[test]
    fn dates_are_read_in_many_forms() {
        for written in [
            "January 8, 1999",
            "1999-01-08",
            "1/8/1999",
            "19990108",
            "990108",
            "1999.008",
            "J2451187",
            "99-Jan-08 00:00",
            "08-Jan-99",
            "Jan-08-1999",
            "1999 08 Jan",
            "Fri Jan 8 1999",
            "y1999m01d08",
            "1999-01-08T23:59:59Z",
        ] {
            let read = read(DataType::Date, written);
            if written == "99-Jan-08 00:00" {
                assert!(read.is_err(), "{written}");
                continue;
            }
            assert_eq!(written_plainly(&read.expect(written)), "1999-01-08", "{written}");
        }
    }

    #[test]
    fn timestamps_have_zones_in_many_forms() {
        for (written, meant) in [
            ("1999-01-08 04:05:06-08", "1999-01-08 12:05:06+00"),
            ("1999-01-08 04:05:06 PST", "1999-01-08 12:05:06+00"),
            ("1999-01-08 04:05 PM America/New_York", "1999-01-08 21:05:00+00"),
            ("19990108T040506-0800", "1999-01-08 12:05:06+00"),
            ("Jan 8 04:05:06.5 1999 UTC", "1999-01-08 04:05:06.5+00"),
            ("2011-03-27 02:00:00 MSK", "2011-03-26 22:00:00+00"),
            ("epoch", "1970-01-01 00:00:00+00"),
            ("1999-01-08 allballs", "1999-01-08 00:00:00+00"),
        ] {
            let read = read(DataType::TimestampTz, written).expect(written);
            assert_eq!(written_plainly(&read), meant, "{written}");
        }
    }

    #[test]
    fn what_is_none_has_the_error_of_postgresql() {
        let state = |data_type, written| match read(data_type, written) {
            Err(QueryError::Refused(refusal)) => refusal.state,
            other => panic!("{written}: {other:?}"),
        };
        assert_eq!(state(DataType::Date, "1999-13-01"), "22008");
        assert_eq!(state(DataType::Date, "Feb 30 1999"), "22008");
        assert_eq!(state(DataType::Date, "soon"), "22007");
        assert_eq!(state(DataType::Timestamp, "1999-01-08 25:00"), "22008");
        assert_eq!(state(DataType::TimestampTz, "1999-01-08 04:05 Nosuch/Zone"), "22023");
        assert_eq!(state(DataType::TimestampTz, "1999-01-08 04:05+99"), "22009");
        assert_eq!(state(DataType::Time, "infinity"), "22007");
        assert_eq!(state(DataType::Date, "+infinity"), "22007");
        assert_eq!(state(DataType::Date, "January 8, 4715 BC"), "22008");
        assert_eq!(state(DataType::Date, "5874898-01-01"), "22008");
        assert_eq!(state(DataType::Timestamp, "294277-01-01"), "22008");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            for data_type in [DataType::Date, DataType::Time, DataType::TimestampTz] {
                let _ = read(data_type, &text);
            }
        }

        #[test]
        fn a_timestamp_comes_back_from_its_text(micros in TIMESTAMP_MICROS_MIN..=TIMESTAMP_MICROS_MAX) {
            let value = Value::TimestampTz(micros);
            let again = read(DataType::TimestampTz, &written_plainly(&value)).expect("read");
            prop_assert_eq!(again, value);
        }
    }
}
