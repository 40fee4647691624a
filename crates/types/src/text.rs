//! Values as text: CSV cells, command-line arguments, test scripts.
//!
//! Dates and times are ISO 8601 (`2024-05-01`, `10:00:00.25`, `2024-05-01T10:00:00`, and for
//! `timestamptz` an offset or `Z`; without one it is UTC; a blank instead of the `T` is read, too).
//! Years have more than four digits where they need them, and those before Christ ` BC` behind all
//! (`0044-03-15 BC`); `infinity` and `-infinity` are dates and timestamps, too.
//! Bytes are `\x` and hexadecimal digits. Nothing is rounded: digits below a microsecond, or an
//! offset for a type that keeps none, are errors. What [`Value`]'s `Display` writes is read back
//! as the same value.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use jiff::civil;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::array;
use crate::calendar::{self, DAY_MICROS, Day};
use crate::convert::{self, Fault};
use crate::time_tz::offset_of;
use crate::{DataType, MacAddress, Network, NumericFault, Schema, TimeTz, TypeError, Value, json};

/// Reads `text` as a value of `data_type`. Text types borrow; blanks around other types are
/// ignored. The caller decides what stands for NULL.
///
/// # Errors
/// [`TypeError::BadText`], saying what is expected.
pub fn parse(data_type: DataType, text: &str) -> Result<Value<'_>, TypeError> {
    let value = match data_type {
        DataType::Char(_) | DataType::Text | DataType::Name | DataType::Enum(_) => {
            Ok(Value::Text(Cow::Borrowed(text)))
        }
        DataType::Varchar(limit) => {
            Ok(Value::Text(Cow::Borrowed(convert::within(limit, text).unwrap_or(text))))
        }
        DataType::Array(element) => {
            array::check(*element, text).map(|()| Value::Text(Cow::Borrowed(text)))
        }
        DataType::Composite(of) => of.check(text).map(|()| Value::Text(Cow::Borrowed(text))),
        DataType::Json => json::check(text).map(|()| Value::Text(Cow::Borrowed(text))),
        _ => parse_plain(data_type, text.trim()),
    };
    let checked = value.and_then(|value| match check(data_type, &value) {
        Ok(()) => Ok(value),
        Err(Fault::OutOfRange(reason)) => Err(reason),
        Err(Fault::WrongType) => Err("it is of another type".into()),
    });
    checked.map_err(|reason| bad_text(data_type, text, reason))
}

impl Schema {
    /// Reads `text` as a value of a column.
    ///
    /// # Errors
    /// As [`parse`], naming table and column.
    pub fn parse<'t>(&self, column: usize, text: &'t str) -> Result<Value<'t>, TypeError> {
        parse(self.data_type(column), text).map_err(|cause| TypeError::InColumn {
            column: self.column_name(column),
            cause: Box::new(cause),
        })
    }
}

#[cold]
fn bad_text(data_type: DataType, text: &str, reason: Box<str>) -> TypeError {
    TypeError::BadText { text: text.chars().take(64).collect(), data_type, reason }
}

/// Lengths, precision and ranges, by the same rules as for encoding.
fn check(data_type: DataType, value: &Value<'_>) -> Result<(), Fault> {
    match data_type {
        DataType::Decimal { precision, scale } => {
            convert::scaled(precision, scale, value).map(|_| ())
        }
        DataType::Numeric(limits) => convert::numeric(limits, value).map(|_| ()),
        DataType::Char(limit) => convert::char_text(limit, value).map(|_| ()),
        DataType::Varchar(_) | DataType::Name => convert::text(data_type, value).map(|_| ()),
        DataType::Date => convert::date(value).map(|_| ()),
        DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            convert::micros(data_type, value).map(|_| ())
        }
        DataType::TimeTz => convert::time_tz(value).map(|_| ()),
        DataType::Inet => convert::inet(value).map(|_| ()),
        DataType::Cidr => convert::cidr(value).map(|_| ()),
        DataType::Enum(of) => convert::label_code(of, value).map(|_| ()),
        DataType::Rounded(clock, _) => {
            check(clock.data_type(), value)?;
            convert::check_rounded(data_type, value)
        }
        _ => Ok(()),
    }
}

fn parse_plain(data_type: DataType, text: &str) -> Result<Value<'static>, Box<str>> {
    match data_type {
        DataType::Boolean => boolean(text).map(Value::Boolean),
        DataType::Int16 => number(text, "-32768 to 32767").map(Value::Int16),
        DataType::Int32 => number(text, "-2147483648 to 2147483647").map(Value::Int32),
        DataType::Int64 => {
            number(text, "-9223372036854775808 to 9223372036854775807").map(Value::Int64)
        }
        DataType::Float32 => float(text).map(Value::Float32),
        DataType::Float64 => float(text).map(Value::Float64),
        DataType::Decimal { .. } => Decimal::from_str_exact(text)
            .or_else(|_| Decimal::from_scientific(text))
            .map(Value::Decimal)
            .map_err(|error| format!("expected a decimal number ({error})").into()),
        DataType::Numeric(_) => {
            text.parse().map(Value::Numeric).map_err(|fault: NumericFault| fault.message().into())
        }
        DataType::Bytes => hexadecimal(text).map(|bytes| Value::Bytes(Cow::Owned(bytes))),
        DataType::Uuid => match uuid(text) {
            Some(uuid) => Ok(Value::Uuid(uuid)),
            None => Err("expected 32 hexadecimal digits".into()),
        },
        DataType::Date => date(text),
        DataType::Time => time(text),
        DataType::Timestamp | DataType::TimestampTz => timestamp(data_type, text),
        DataType::TimeTz => time_tz(text),
        DataType::Inet => Network::read_inet(text).map(Value::Inet).ok_or_else(|| {
            "expected an address such as 10.1.2.3, 10.1.2.3/24 or 2001:db8::1".into()
        }),
        DataType::Cidr => Network::read_cidr(text)
            .map(Value::Cidr)
            .ok_or_else(|| "expected a network such as 10.1.2.0/24 or 2001:db8::/32".into()),
        DataType::MacAddress => MacAddress::read(text)
            .map(Value::MacAddress)
            .ok_or_else(|| "expected six bytes such as 08:00:2b:01:02:03".into()),
        DataType::Rounded(clock, _) => parse_plain(clock.data_type(), text),
        DataType::Interval => text
            .parse()
            .map(Value::Interval)
            .map_err(|_| "expected an interval such as 1 year 2 mons 3 days 04:05:06.7".into()),
        DataType::Jsonb => json::normalised(text).map(|text| Value::Text(Cow::Owned(text))),
        DataType::Oid => number::<u32>(text, "0 to 4294967295").map(i64::from).map(Value::Int64),
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Enum(_)
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Json => Ok(Value::Text(Cow::Owned(text.to_owned()))),
    }
}

fn boolean(text: &str) -> Result<bool, Box<str>> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}

fn number<T: FromStr>(text: &str, range: &str) -> Result<T, Box<str>> {
    text.parse().map_err(|_| format!("expected a whole number, {range}").into())
}

/// Rust reads a number that is too large as infinity; only text that says so may become that.
fn float<T: FromStr + Into<f64> + Copy>(text: &str) -> Result<T, Box<str>> {
    let value: T =
        text.parse().map_err(|_| Box::<str>::from("expected a number, NaN or Infinity"))?;
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    if value.into().is_infinite() && digits {
        return Err("the number is too large".into());
    }
    let significand = text.split(['e', 'E']).next().unwrap_or_default();
    if value.into() == 0.0 && significand.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        return Err("the number is too small".into());
    }
    Ok(value)
}

/// As PostgreSQL: 32 hexadecimal digits of any case, with a hyphen behind any four of them, and braces around all.
fn uuid(text: &str) -> Option<Uuid> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let (mut uuid, mut digits) = (0u128, 0u32);
    let mut is_behind_hyphen = false;
    for character in inner.chars() {
        if character == '-' {
            if is_behind_hyphen || digits == 0 || digits % 4 != 0 {
                return None;
            }
            is_behind_hyphen = true;
            continue;
        }
        let digit = character.to_digit(16)?;
        if digits == 32 {
            return None;
        }
        uuid = uuid << 4 | u128::from(digit);
        (digits, is_behind_hyphen) = (digits + 1, false);
    }
    (digits == 32 && !is_behind_hyphen).then(|| Uuid::from_u128(uuid))
}

fn hexadecimal(text: &str) -> Result<Vec<u8>, Box<str>> {
    const EXPECTED: &str = r"expected \x and an even number of hexadecimal digits";
    let digits = text.strip_prefix(r"\x").or_else(|| text.strip_prefix("0x")).ok_or(EXPECTED)?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(EXPECTED.into());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs
        .iter()
        .map(|&[high, low]| {
            let value = digit(high)? * 16 + digit(low)?;
            u8::try_from(value).ok()
        })
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| EXPECTED.into())
}

fn date(text: &str) -> Result<Value<'static>, Box<str>> {
    if let Some(is_negative) = infinity(text) {
        return Ok(Value::Date(calendar::DATE_INFINITIES[usize::from(!is_negative)]));
    }
    let (text, years) = in_years_of_library(text);
    let pieces = pieces(&text, "expected a date such as 2024-05-31")?;
    if pieces.time().is_some() || pieces.offset().is_some() {
        return Err("a date has no time of day".into());
    }
    let days = i32::try_from(days_of(pieces.date(), years)?).ok();
    let days = days.filter(|days| !calendar::is_infinite_date(*days));
    Ok(Value::Date(days.ok_or("a date lies in the years 4714 BC to 5874897")?))
}

/// Whether text names an infinity, and whether the negative one.
fn infinity(text: &str) -> Option<bool> {
    [false, true]
        .into_iter()
        .find(|is_negative| text.eq_ignore_ascii_case(calendar::infinity_name(*is_negative)))
}

/// A date and what is behind it, where the year is one that the library has, and by how many years it was more.
fn in_years_of_library(text: &str) -> (Cow<'_, str>, i64) {
    let before_christ = text.strip_suffix(" BC");
    let rest = before_christ.unwrap_or(text);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let year = match rest[..digits].parse::<i64>() {
        Ok(year) if (4..=7).contains(&digits) && rest[digits..].starts_with('-') && year > 0 => {
            year
        }
        _ => return (Cow::Borrowed(text), 0),
    };
    let year = if before_christ.is_some() { 1 - year } else { year };
    if (1..=9999).contains(&year) {
        return (Cow::Borrowed(rest), 0);
    }
    // After 400 years the calendar is the same again.
    let known = year.rem_euclid(400) + 2000;
    (Cow::Owned(format!("{known}{}", &rest[digits..])), year - known)
}

fn time(text: &str) -> Result<Value<'static>, Box<str>> {
    if text == "24:00:00" {
        return Ok(Value::Time(DAY_MICROS));
    }
    let (text, later) = without_second_60(text);
    let time: civil::Time =
        text.parse().map_err(|error| format!("expected a time such as 23:59:59.5 ({error})"))?;
    if text.bytes().any(|byte| matches!(byte, b'+' | b'-' | b'Z' | b'z' | b'[')) {
        return Err("this type keeps no date and no time zone".into());
    }
    match micros_of(time)? + later {
        micros @ ..=DAY_MICROS => Ok(Value::Time(micros)),
        _ => Err("a time of day is up to 24:00:00".into()),
    }
}

/// A time of day, and behind it the offset of its clock.
fn time_tz(text: &str) -> Result<Value<'static>, Box<str>> {
    let expected = || "expected a time with an offset such as 23:59:59.5+02";
    let (clock, offset) = text.split_at(text.rfind(['+', '-']).ok_or_else(expected)?);
    let offset_seconds = offset_of(offset).ok_or_else(expected)?;
    match time(clock)? {
        Value::Time(micros) => Ok(Value::TimeTz(TimeTz { micros, offset_seconds })),
        _ => Err(expected().into()),
    }
}

/// Second 60 is the first of the next minute: the text with second 59, and the microseconds from there. Of a leap
/// second the library would make the one before it.
fn without_second_60(text: &str) -> (Cow<'_, str>, i64) {
    let second = text.match_indices(':').nth(1).map(|(colon, _)| colon + 1);
    match second.and_then(|at| Some((at, text[at..].strip_prefix("60")?))) {
        Some((at, rest)) if !rest.starts_with(|next: char| next.is_ascii_digit()) => {
            (Cow::Owned(format!("{}59{rest}", &text[..at])), 1_000_000)
        }
        _ => (Cow::Borrowed(text), 0),
    }
}

fn timestamp(data_type: DataType, text: &str) -> Result<Value<'static>, Box<str>> {
    if let Some(is_negative) = infinity(text) {
        let micros = calendar::TIMESTAMP_INFINITIES[usize::from(!is_negative)];
        return Ok(match data_type {
            DataType::Timestamp => Value::Timestamp(micros),
            _ => Value::TimestampTz(micros),
        });
    }
    let too_far = || "a timestamp lies in the years 4714 BC to 294246";
    let (text, years) = in_years_of_library(text);
    let (text, later) = without_second_60(&text);
    let pieces = pieces(&text, "expected a timestamp such as 2024-05-31T23:59:59.5")?;
    let time = pieces.time().map_or(Ok(0), micros_of)? + later;
    let local = days_of(pieces.date(), years)?.checked_mul(DAY_MICROS);
    let local = local.and_then(|midnight| midnight.checked_add(time));
    let local = local.filter(|local| !calendar::is_infinite_timestamp(*local));
    let local = local.ok_or_else(too_far)?;
    if data_type == DataType::Timestamp {
        return match pieces.offset() {
            None => Ok(Value::Timestamp(local)),
            Some(_) => Err("this type keeps no time zone; use timestamptz".into()),
        };
    }
    let offset_seconds = match pieces.offset() {
        Some(PiecesOffset::Numeric(offset)) => i64::from(offset.offset().seconds()),
        _ => 0,
    };
    let micros = local.checked_sub(offset_seconds * 1_000_000);
    let micros = micros.filter(|micros| !calendar::is_infinite_timestamp(*micros));
    Ok(Value::TimestampTz(micros.ok_or_else(too_far)?))
}

fn pieces<'t>(text: &'t str, expected: &str) -> Result<Pieces<'t>, Box<str>> {
    let pieces = Pieces::parse(text).map_err(|error| format!("{expected} ({error})"))?;
    if pieces.time_zone_annotation().is_some() {
        return Err("time zone names are not read; give the offset".into());
    }
    Ok(pieces)
}

/// Days since 1970-01-01 of a date so many years later.
fn days_of(date: civil::Date, years: i64) -> Result<i64, Box<str>> {
    let year = i64::from(date.year()) + years;
    let day = Day::new(year, date.month(), date.day()).ok_or("there is no such day")?;
    Ok(day.days())
}

fn micros_of(time: civil::Time) -> Result<i64, Box<str>> {
    if time.nanosecond() != 0 {
        return Err("microseconds are the smallest unit; round it first".into());
    }
    let seconds =
        (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60 + i64::from(time.second());
    let fraction = i64::from(time.millisecond()) * 1000 + i64::from(time.microsecond());
    Ok(seconds * 1_000_000 + fraction)
}

/// The text that [`parse`] reads back; `NULL` and `DEFAULT` for those.
impl Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null | Value::Default => formatter.write_str(self.kind()),
            Value::Boolean(value) => value.fmt(formatter),
            Value::Int16(value) => value.fmt(formatter),
            Value::Int32(value) => value.fmt(formatter),
            Value::Int64(value) => value.fmt(formatter),
            Value::Float32(value) if value.is_finite() => write!(formatter, "{value:?}"),
            Value::Float64(value) if value.is_finite() => write!(formatter, "{value:?}"),
            Value::Float32(value) => write_not_finite(f64::from(*value), formatter),
            Value::Float64(value) => write_not_finite(*value, formatter),
            Value::Decimal(value) => value.fmt(formatter),
            Value::Numeric(value) => value.fmt(formatter),
            Value::Text(text) => text.fmt(formatter),
            Value::Bytes(bytes) => {
                formatter.write_str(r"\x")?;
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
            Value::Uuid(value) => value.fmt(formatter),
            Value::Date(days) if calendar::is_infinite_date(*days) => {
                formatter.write_str(calendar::infinity_name(*days < 0))
            }
            Value::Date(days) => {
                let day = Day::at((*days).into());
                write!(formatter, "{day}{}", era(day))
            }
            Value::Time(micros) => write_time(*micros, formatter),
            Value::Timestamp(micros) => write_timestamp(*micros, "", formatter),
            Value::TimestampTz(micros) => write_timestamp(*micros, "Z", formatter),
            Value::Interval(value) => value.fmt(formatter),
            Value::TimeTz(value) => value.fmt(formatter),
            Value::Inet(value) => write!(formatter, "{value}"),
            Value::Cidr(value) => write!(formatter, "{value:#}"),
            Value::MacAddress(value) => value.fmt(formatter),
        }
    }
}

fn write_not_finite(value: f64, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(match value {
        _ if value.is_nan() => "NaN",
        _ if value > 0.0 => "Infinity",
        _ => "-Infinity",
    })
}

fn write_timestamp(micros: i64, zone: &str, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    if calendar::is_infinite_timestamp(micros) {
        return formatter.write_str(calendar::infinity_name(micros < 0));
    }
    let day = Day::at(micros.div_euclid(DAY_MICROS));
    write!(formatter, "{day}T")?;
    write_time(micros.rem_euclid(DAY_MICROS), formatter)?;
    write!(formatter, "{zone}{}", era(day))
}

/// What stands behind a day before Christ.
fn era(day: Day) -> &'static str {
    if day.year() > 0 { "" } else { " BC" }
}

pub(crate) fn write_time(micros: i64, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(formatter, "{hour:02}:{minute:02}:{second:02}")?;
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(formatter, ".{}", digits.trim_end_matches('0'))
}
