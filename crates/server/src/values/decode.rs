//! Bytes of a parameter to a value.
//!
//! Invariant: no input, however malformed, is more than an error of its statement.

use std::borrow::Cow;

use onrush::{DataType, Decimal, Interval, MacAddress, TimeTz, Uuid, Value};
use onrush_query::style::ClientEncoding;
use onrush_types::calendar::{is_date, is_infinite_date, is_infinite_timestamp, is_timestamp};
use postgres_types::{FromSql, Kind, Type};

use super::{array, coerce, network, numeric, record};
use crate::error::{Result, SqlError, state};

/// 2000-01-01, where PostgreSQL begins to count, in days since 1970-01-01.
pub(super) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(super) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// What stands in front of the text of a jsonb in binary form.
pub(super) const JSONB_VERSION: u8 = 1;

/// One parameter as it came: its bytes, their format, and the type that the client declared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) is_binary: bool,
    /// 0 where the client leaves the type to the server.
    pub(crate) oid: u32,
    pub(crate) encoding: ClientEncoding,
}

/// The parameter as a value for a column of type `target`. Text and bytes are borrowed.
pub(crate) fn decode(wire: Wire<'_>, target: DataType) -> Result<Value<'_>> {
    if !wire.is_binary {
        return read_text(wire, target);
    }
    let oid = if wire.oid == 0 { super::oid_of(target) } else { wire.oid };
    if let DataType::Composite(of) = target
        && Type::from_oid(oid).is_none_or(|known| known == Type::RECORD)
    {
        return record::decode(wire.bytes, of, wire.encoding).map(Value::from);
    }
    // Labels are written alike in both formats.
    if (matches!(target, DataType::Enum(_)) || target.is_text()) && Type::from_oid(oid).is_none() {
        return read_text(wire, target);
    }
    coerce(binary(wire.bytes, oid, wire.encoding)?, target)
}

fn read_text(wire: Wire<'_>, target: DataType) -> Result<Value<'_>> {
    match wire.encoding.decode(wire.bytes)? {
        Cow::Borrowed(text) => super::read(target, text),
        Cow::Owned(text) => Ok(super::read(target, &text)?.into_owned()),
    }
}

/// A value in the binary form of a type.
pub(super) fn binary(bytes: &[u8], oid: u32, encoding: ClientEncoding) -> Result<Value<'_>> {
    let Some(declared) = Type::from_oid(oid) else { return Err(unknown_type(oid)) };
    Ok(match declared {
        Type::BOOL => Value::Boolean(bytes != [0]),
        Type::INT2 => Value::Int16(i16::from_be_bytes(exactly(bytes)?)),
        Type::INT4 => Value::Int32(i32::from_be_bytes(exactly(bytes)?)),
        Type::INT8 => Value::Int64(i64::from_be_bytes(exactly(bytes)?)),
        Type::OID => Value::Int64(i64::from(u32::from_be_bytes(exactly(bytes)?))),
        Type::FLOAT4 => Value::Float32(f32::from_be_bytes(exactly(bytes)?)),
        Type::FLOAT8 => Value::Float64(f64::from_be_bytes(exactly(bytes)?)),
        Type::NUMERIC => match decimal(bytes) {
            Some(number) => Value::Decimal(number),
            None => Value::Numeric(numeric::read_binary(bytes)?),
        },
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::UNKNOWN | Type::NAME | Type::JSON => {
            Value::Text(encoding.decode(bytes)?)
        }
        Type::JSONB => match bytes.split_first() {
            Some((&JSONB_VERSION, text)) => Value::Text(encoding.decode(text)?),
            _ => {
                let message = "a jsonb parameter is of a version that is not known";
                return Err(SqlError::new(state::INVALID_BINARY, message));
            }
        },
        Type::CHAR => Value::from(one_byte(exactly(bytes)?)),
        Type::BYTEA => Value::Bytes(Cow::Borrowed(bytes)),
        Type::UUID => Value::Uuid(Uuid::from_bytes(exactly(bytes)?)),
        Type::DATE => {
            let days = i32::from_be_bytes(exactly(bytes)?);
            if is_infinite_date(days) {
                return Ok(Value::Date(days));
            }
            let days = days.checked_add(EPOCH_DAYS).filter(|days| !is_infinite_date(*days));
            Value::Date(days.filter(|days| is_date(*days)).ok_or_else(no_such_timestamp)?)
        }
        Type::TIME => Value::Time(i64::from_be_bytes(exactly(bytes)?)),
        Type::TIMESTAMP => Value::Timestamp(timestamp(bytes)?),
        Type::TIMESTAMPTZ => Value::TimestampTz(timestamp(bytes)?),
        Type::TIMETZ => {
            let [micros, west] = [bytes.get(..8), bytes.get(8..)].map(Option::unwrap_or_default);
            let west = i32::from_be_bytes(exactly(west)?);
            Value::TimeTz(TimeTz {
                micros: i64::from_be_bytes(exactly(micros)?),
                offset_seconds: west.checked_neg().ok_or_else(no_such_timestamp)?,
            })
        }
        Type::INET | Type::CIDR => network::read_binary(bytes, oid == Type::CIDR.oid())?,
        Type::MACADDR => Value::MacAddress(MacAddress(exactly(bytes)?)),
        Type::INTERVAL => {
            let [micros, days, months] =
                [bytes.get(..8), bytes.get(8..12), bytes.get(12..)].map(Option::unwrap_or_default);
            Value::Interval(Interval {
                micros: i64::from_be_bytes(exactly(micros)?),
                days: i32::from_be_bytes(exactly(days)?),
                months: i32::from_be_bytes(exactly(months)?),
            })
        }
        other => match other.kind() {
            Kind::Array(element) => Value::from(array::decode(bytes, element, encoding)?),
            _ => return Err(unknown_type(oid)),
        },
    })
}

/// A number of few digits. The library's decoder takes what is there; the digits are counted here first.
fn decimal(bytes: &[u8]) -> Option<Decimal> {
    let (numbers, []) = bytes.as_chunks::<2>() else { return None };
    let [count, place, _, scale, digits @ ..] = numbers else { return None };
    let place = i16::from_be_bytes(*place);
    let is_small =
        (-6..6).contains(&place) && digits.len() <= 6 && u16::from_be_bytes(*scale) <= 28;
    let is_whole = usize::from(u16::from_be_bytes(*count)) == digits.len();
    // Digits after the point that are not shown are cut off elsewhere.
    let behind = digits.len() as i64 - 1 - i64::from(place);
    let is_shown = behind * 4 < i64::from(u16::from_be_bytes(*scale)) + 4;
    let is_sound = digits.iter().all(|digit| u16::from_be_bytes(*digit) < 10_000);
    (is_small && is_whole && is_shown && is_sound)
        .then(|| Decimal::from_sql(&Type::NUMERIC, bytes).ok())
        .flatten()
}

/// What is not read yet of a value that is made of others.
pub(super) struct Rest<'b> {
    bytes: &'b [u8],
    /// What is said where it is too short.
    malformed: &'static str,
}

impl<'b> Rest<'b> {
    pub(super) fn of(bytes: &'b [u8], malformed: &'static str) -> Rest<'b> {
        Rest { bytes, malformed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| self.fault())?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> Result<i32> {
        let (taken, rest) = self.bytes.split_first_chunk::<4>().ok_or_else(|| self.fault())?;
        self.bytes = rest;
        Ok(i32::from_be_bytes(*taken))
    }

    fn fault(&self) -> SqlError {
        SqlError::new(state::INVALID_BINARY, self.malformed)
    }
}

fn timestamp(bytes: &[u8]) -> Result<i64> {
    let micros = i64::from_be_bytes(exactly(bytes)?);
    if is_infinite_timestamp(micros) {
        return Ok(micros);
    }
    let micros = micros.checked_add(EPOCH_MICROS).filter(|micros| !is_infinite_timestamp(*micros));
    micros.filter(|micros| is_timestamp(*micros)).ok_or_else(no_such_timestamp)
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        let message = format!("a binary parameter has {} bytes, {N} are expected", bytes.len());
        SqlError::new(state::INVALID_BINARY, message)
    })
}

/// A value of the type `"char"` as text: none for zero, and digits in base eight for what is no ASCII.
fn one_byte([byte]: [u8; 1]) -> String {
    match byte {
        0 => String::new(),
        1..=127 => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

fn no_such_timestamp() -> SqlError {
    SqlError::new(state::INVALID_DATETIME, "a date or timestamp is out of range")
        .with_hint("Dates lie in the years 4714 BC to 5874897, timestamps in those to 294246.")
}

fn unknown_type(oid: u32) -> SqlError {
    let name =
        Type::from_oid(oid).map_or_else(|| format!("number {oid}"), |known| known.to_string());
    SqlError::not_supported(
        format!("a binary parameter of type {name}"),
        "Leave the type of the parameter to the server, or send it as text.",
    )
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use onrush_types::calendar::{DATE_INFINITIES, TIMESTAMP_INFINITIES};
    use proptest::prelude::*;

    use super::*;

    fn round_trip(value: Value<'static>, data_type: DataType) {
        for is_binary in [false, true] {
            let mut out = BytesMut::new();
            if is_binary {
                super::super::binary(&value, data_type.into(), &mut out).expect("encoded");
            } else {
                super::super::write_text(&value, &mut out).expect("written");
            }
            let wire = Wire { bytes: &out, is_binary, oid: 0, encoding: ClientEncoding::Utf8 };
            assert_eq!(decode(wire, data_type).expect("decoded"), value, "binary: {is_binary}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            int in any::<i64>(), float in -1e300..1e300f64, small in any::<f32>(), text in ".*",
            bytes in any::<Vec<u8>>(), uuid in any::<u128>(), day in -2_440_588i32..106_751_982,
            micros in 0i64..86_400_000_000, digits in -999_999_999_999i64..999_999_999_999,
        ) {
            round_trip(Value::Int64(int), DataType::Int64);
            round_trip(Value::Float64(float), DataType::Float64);
            if small.is_finite() {
                round_trip(Value::Float32(small), DataType::Float32);
            }
            round_trip(Value::from(text), DataType::Text);
            round_trip(Value::from(bytes), DataType::Bytes);
            round_trip(Value::Uuid(Uuid::from_u128(uuid)), DataType::Uuid);
            round_trip(Value::Date(day), DataType::Date);
            round_trip(Value::Time(micros), DataType::Time);
            let timestamp = i64::from(day) * 86_400_000_000 + micros;
            round_trip(Value::Timestamp(timestamp), DataType::Timestamp);
            round_trip(Value::TimestampTz(timestamp), DataType::TimestampTz);
            for infinite in DATE_INFINITIES {
                round_trip(Value::Date(infinite), DataType::Date);
            }
            for infinite in TIMESTAMP_INFINITIES {
                round_trip(Value::Timestamp(infinite), DataType::Timestamp);
                round_trip(Value::TimestampTz(infinite), DataType::TimestampTz);
            }
            let decimal = DataType::Decimal { precision: 18, scale: 4 };
            round_trip(Value::Decimal(Decimal::new(digits, 4)), decimal);
        }

        #[test]
        fn no_bytes_are_more_than_an_error(bytes in any::<Vec<u8>>(), oid in 0u32..4000) {
            for target in [DataType::Int32, DataType::Text, DataType::TimestampTz] {
                for is_binary in [false, true] {
                    let encoding = ClientEncoding::Utf8;
                    let _ = decode(Wire { bytes: &bytes, is_binary, oid, encoding }, target);
                }
            }
        }
    }
}
