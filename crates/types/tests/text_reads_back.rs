//! Promise: the text of a value reads back as the same value, and nothing is lost in silence.

mod common;

use common::{any_type, value_of};
use onrush_types::{DataType, TypeError, Value, text};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_value_reads_back(
        (data_type, value) in any_type().prop_flat_map(|kind| (Just(kind), value_of(kind)))
    ) {
        let written = value.to_string();
        let read = text::parse(data_type, &written);
        prop_assert!(read.is_ok(), "{written}: {read:?}");
        let same = read.is_ok_and(|read| data_type.compare(&read, &value).is_eq());
        prop_assert!(same, "{written}");
    }

    #[test]
    fn no_text_panics(data_type in any_type(), input in "[-+0-9:TZ.ex\\\\ ]{0,30}|.{0,20}") {
        let _ = text::parse(data_type, &input);
    }
}

fn parse(data_type: DataType, input: &str) -> Result<Value<'_>, TypeError> {
    text::parse(data_type, input)
}

#[test]
fn dates_and_times_are_iso_8601() {
    let micros = 1_714_557_600_250_000;
    for (data_type, input, value) in [
        (DataType::Date, "1970-01-02", Value::Date(1)),
        (DataType::Date, "0001-01-01", Value::Date(-719_162)),
        (DataType::Date, "4714-11-24 BC", Value::Date(-2_440_588)),
        (DataType::Date, "5874897-12-31", Value::Date(2_145_042_905)),
        (DataType::Date, "infinity", Value::Date(i32::MAX)),
        (DataType::Timestamp, "-Infinity", Value::Timestamp(i64::MIN)),
        (
            DataType::TimestampTz,
            "0001-12-31T23:59:59Z BC",
            Value::TimestampTz(-62_135_596_801_000_000),
        ),
        (DataType::Time, "10:00:00.25", Value::Time(36_000_250_000)),
        (DataType::Timestamp, "2024-05-01T10:00:00.25", Value::Timestamp(micros)),
        (DataType::Timestamp, "2024-05-01 10:00:00.25", Value::Timestamp(micros)),
        (DataType::TimestampTz, "2024-05-01T10:00:00.25Z", Value::TimestampTz(micros)),
        (DataType::TimestampTz, "2024-05-01T12:00:00.25+02:00", Value::TimestampTz(micros)),
        (DataType::TimestampTz, "2024-05-01 10:00:00.25", Value::TimestampTz(micros)),
    ] {
        assert_eq!(parse(data_type, input), Ok(value), "{input}");
    }
    assert_eq!(Value::TimestampTz(micros).to_string(), "2024-05-01T10:00:00.25Z");
}

#[test]
fn text_that_would_lose_something_is_refused() {
    let money = DataType::Decimal { precision: 5, scale: 2 };
    for (data_type, input) in [
        (DataType::Int16, "32768"),
        (DataType::Int32, "1.0"),
        (DataType::Float32, "1e39"),
        (money, "1.005"),
        (money, "1000"),
        (DataType::Varchar(2), "ééé"),
        (DataType::Char(2), "abc"),
        (DataType::Bytes, r"\x0"),
        (DataType::Bytes, r"\x+1"),
        (DataType::Date, "2024-02-30"),
        (DataType::Date, "2024-02-28T10:00:00"),
        (DataType::Date, "4714-11-23 BC"),
        (DataType::Date, "5874898-01-01"),
        (DataType::Time, "24:00:01"),
        (DataType::Time, "10:00:00.1234567"),
        (DataType::Timestamp, "2024-05-01T10:00:00Z"),
        (DataType::Timestamp, "294247-01-01T00:00:00"),
        (DataType::TimestampTz, "4714-11-24T00:00:00+01:00 BC"),
    ] {
        let error = parse(data_type, input).expect_err(input).to_string();
        assert!(error.contains(&data_type.to_string()), "{error}");
    }
}

#[test]
fn blanks_at_the_end_of_char_do_not_count() {
    assert!(parse(DataType::Char(2), "ab   ").is_ok());
}

#[test]
fn blanks_that_are_too_many_for_a_varchar_are_left_out() {
    assert_eq!(parse(DataType::Varchar(2), "ab  "), Ok(Value::from("ab")));
    assert_eq!(parse(DataType::Varchar(2), "é   "), Ok(Value::from("é ")));
    assert!(parse(DataType::Varchar(2), "ab c").is_err());
    assert!(parse(DataType::Varchar(2).array().unwrap(), "{\"ab \"}").is_err());
}
