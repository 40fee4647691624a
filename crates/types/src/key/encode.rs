//! From key values to ordered bytes. The order rules stand in the head of [`crate::key`].

use super::{END_MARK, ESCAPED_ZERO, KEY_BYTES_MAX, NOT_NULL, NULL_FIRST, NULL_LAST};
use crate::convert::{self, Fault};
use crate::{DataType, KeyOrder, Schema, TypeError, Value};

impl Schema {
    /// Encodes a key from the values of all key columns, in key order; `out` is replaced.
    ///
    /// # Errors
    /// A value that its column cannot hold, NULL, a wrong number of values, or
    /// [`TypeError::KeyTooLarge`].
    pub fn encode_key(&self, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), TypeError> {
        self.check_count(values.len(), self.keys.len(), false)?;
        self.encode_key_prefix(values, out)
    }

    /// Encodes the first key columns, for ranges: all keys that start with these values lie from
    /// the prefix up to [`prefix_end`](crate::prefix_end) of it. `out` is replaced.
    ///
    /// # Errors
    /// As [`Schema::encode_key`]; fewer values than key columns are allowed.
    pub fn encode_key_prefix(
        &self,
        values: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        if values.len() > self.keys.len() {
            self.check_count(values.len(), self.keys.len(), false)?;
        }
        out.clear();
        for (position, value) in values.iter().enumerate() {
            self.push_key(position, value, out)?;
        }
        Ok(())
    }

    /// Appends one key column.
    #[inline]
    pub(crate) fn push_key(
        &self,
        position: usize,
        value: &Value<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        let key = self.keys[position];
        let pushed = match key.order {
            None => push(key.data_type, value, out),
            Some(order) => push_ordered(key.data_type, order, value, out),
        };
        if let Err(fault) = pushed {
            return Err(self.key_fault(fault, position, value));
        }
        self.check_key_size(out)
    }

    #[inline]
    pub(crate) fn check_key_size(&self, key: &[u8]) -> Result<(), TypeError> {
        if key.len() > KEY_BYTES_MAX {
            let (bytes, limit) = (key.len(), KEY_BYTES_MAX);
            return Err(TypeError::KeyTooLarge { table: self.name().into(), bytes, limit });
        }
        Ok(())
    }

    #[cold]
    fn key_fault(&self, fault: Fault, position: usize, value: &Value<'_>) -> TypeError {
        let key = self.keys[position];
        let name = self.column_name(key.column);
        match value {
            Value::Null => TypeError::NullValue(name),
            Value::Default => TypeError::MissingValue(name),
            _ => fault.at(name, key.data_type, value),
        }
    }
}

/// A value that may be NULL, in the order of an index.
fn push_ordered(
    data_type: DataType,
    order: KeyOrder,
    value: &Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if value.is_null() {
        out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
        return Ok(());
    }
    out.push(NOT_NULL);
    let start = out.len();
    push(data_type, value, out)?;
    if order.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

const SIGN16: u16 = 1 << 15;
const SIGN32: u32 = 1 << 31;
const SIGN64: u64 = 1 << 63;
/// The one NaN of keys: positive and quiet, so that it orders above infinity.
const NAN32: u32 = 0x7FC0_0000;
const NAN64: u64 = 0x7FF8_0000_0000_0000;

#[inline]
fn push(data_type: DataType, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match data_type {
        DataType::Int64 => push_i64(convert::int64(value)?, out),
        DataType::Uuid => out.extend_from_slice(convert::uuid(value)?),
        DataType::Int32 => push_i32(convert::int32(value)?, out),
        DataType::Int16 => {
            let ordered = convert::int16(value)?.cast_unsigned() ^ SIGN16;
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        DataType::Boolean => out.push(u8::from(convert::boolean(value)?)),
        DataType::Float32 => {
            let float = convert::float32(value)?;
            // Adding 0.0 turns -0 into 0 and changes nothing else.
            let bits = if float.is_nan() { NAN32 } else { (float + 0.0).to_bits() };
            let ordered = if bits & SIGN32 != 0 { !bits } else { bits | SIGN32 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        DataType::Float64 => {
            let float = convert::float64(value)?;
            let bits = if float.is_nan() { NAN64 } else { (float + 0.0).to_bits() };
            let ordered = if bits & SIGN64 != 0 { !bits } else { bits | SIGN64 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        DataType::Decimal { precision, scale } => {
            let scaled = convert::scaled(precision, scale, value)?.cast_unsigned();
            let width = crate::data_type::decimal_width_bytes(precision);
            let ordered = scaled ^ (1 << (8 * width - 1));
            out.extend_from_slice(&ordered.to_be_bytes()[16 - width..]);
        }
        DataType::Numeric(limits) => convert::numeric(limits, value)?.write_key(out),
        DataType::Char(limit) => push_escaped(convert::char_text(limit, value)?.as_bytes(), out),
        DataType::TimeTz => out.extend_from_slice(&convert::time_tz(value)?.to_ordered_bytes()),
        DataType::Inet => out.extend_from_slice(&convert::inet(value)?.to_ordered_bytes()),
        DataType::Cidr => out.extend_from_slice(&convert::cidr(value)?.to_bytes()),
        DataType::MacAddress => out.extend_from_slice(&convert::mac_address(value)?.0),
        DataType::Oid => out.extend_from_slice(&convert::oid(value)?.to_be_bytes()),
        DataType::Enum(of) => {
            out.extend_from_slice(&convert::label_code(of, value)?.to_be_bytes());
        }
        DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Bytes
        | DataType::Json
        | DataType::Jsonb => {
            push_escaped(&convert::variable(data_type, value)?, out);
        }
        DataType::Date => push_i32(convert::date(value)?, out),
        DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            push_i64(convert::micros(data_type, value)?, out);
        }
        // No key has one.
        DataType::Interval | DataType::Array(_) | DataType::Composite(_) => {
            return Err(Fault::WrongType);
        }
        // Not rounded: what is looked for may have more digits, and is not there.
        DataType::Rounded(clock, _) => push(clock.data_type(), value, out)?,
    }
    Ok(())
}

#[inline]
fn push_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.cast_unsigned() ^ SIGN64).to_be_bytes());
}

#[inline]
fn push_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.cast_unsigned() ^ SIGN32).to_be_bytes());
}

fn push_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&ESCAPED_ZERO);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&END_MARK);
}
