//! Values to bytes, in PostgreSQL's binary forms.

use bytes::{BufMut, BytesMut};
use onrush::{DataType, Value};
use onrush_query::ColumnType;
use onrush_query::style::{ClientEncoding, client_encoding};
use onrush_types::calendar::{is_infinite_date, is_infinite_timestamp};

use super::decode::{EPOCH_DAYS, EPOCH_MICROS, JSONB_VERSION};
use super::{array, network, numeric, record};
use crate::error::{Result, SqlError, state};

/// Writes the text that begins at `start` of the output in the client's encoding.
///
/// # Errors
/// A character that the encoding has not (`22P05`).
pub(crate) fn as_of_client(
    output: &mut BytesMut,
    start: usize,
    encoding: ClientEncoding,
) -> Result<()> {
    if !encoding.is_other() || output[start..].is_ascii() {
        return Ok(());
    }
    let text = output.split_off(start);
    let text = std::str::from_utf8(&text)
        .map_err(|_| SqlError::new(state::INTERNAL, "a value was written as no text"))?;
    output.put_slice(&encoding.encode(text)?);
    Ok(())
}

/// Appends the value in the binary form of its own type, or of the system's catalogue. NULL has none.
pub(crate) fn binary(value: &Value<'_>, column_type: ColumnType, out: &mut BytesMut) -> Result<()> {
    if let (Value::Text(written), ColumnType::Array(element)) = (value, column_type) {
        return array::encode(written, element, out);
    }
    if let (Value::Text(written), ColumnType::Vector(element)) = (value, column_type) {
        let array = format!("{{{}}}", written.replace(' ', ","));
        return array::encode(&array, element, out);
    }
    if let (Value::Text(written), ColumnType::Stored(DataType::Composite(of))) =
        (value, column_type)
    {
        return record::encode(written, of, out);
    }
    match value {
        Value::Text(written) if column_type == ColumnType::Char => out.put_u8(one_byte(written)),
        // Numbers of things have no sign; none here is beyond 32 bits.
        Value::Int64(number) if column_type == ColumnType::Stored(DataType::Oid) => {
            out.put_u32(u32::try_from(*number).unwrap_or(0));
        }
        Value::Null | Value::Default => {}
        Value::Boolean(value) => out.put_u8(u8::from(*value)),
        Value::Int16(value) => out.put_i16(*value),
        Value::Int32(value) => out.put_i32(*value),
        Value::Int64(value) => out.put_i64(*value),
        Value::Float32(value) => out.put_f32(*value),
        Value::Float64(value) => out.put_f64(*value),
        Value::Decimal(number) => numeric::write_decimal(*number, out),
        Value::Numeric(number) => numeric::write_binary(number, out),
        Value::Text(text) => {
            if column_type == ColumnType::Stored(DataType::Jsonb) {
                out.put_u8(JSONB_VERSION);
            }
            out.put_slice(&client_encoding().encode(text)?);
        }
        Value::Bytes(bytes) => out.put_slice(bytes),
        Value::Uuid(value) => out.put_slice(value.as_bytes()),
        // The infinities are the same numbers there.
        Value::Date(days) if is_infinite_date(*days) => out.put_i32(*days),
        Value::Date(days) => out.put_i32(days - EPOCH_DAYS),
        Value::Time(micros) => out.put_i64(*micros),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => {
            out.put_i64(match is_infinite_timestamp(*micros) {
                true => *micros,
                false => micros - EPOCH_MICROS,
            });
        }
        Value::TimeTz(time) => {
            out.put_i64(time.micros);
            out.put_i32(-time.offset_seconds);
        }
        Value::Inet(address) => network::write_binary(*address, false, out),
        Value::Cidr(address) => network::write_binary(*address, true, out),
        Value::MacAddress(address) => out.put_slice(&address.0),
        Value::Interval(interval) => {
            out.put_i64(interval.micros);
            out.put_i32(interval.days);
            out.put_i32(interval.months);
        }
    }
    Ok(())
}

/// A value of the type `"char"`, which is zero where there is nothing of it.
fn one_byte(written: &str) -> u8 {
    let octal = written.strip_prefix('\\').filter(|digits| digits.len() == 3);
    octal
        .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        .unwrap_or_else(|| written.bytes().next().unwrap_or(0))
}
