//! From key bytes back to values.

use std::borrow::Cow;

use uuid::Uuid;

use super::{END_MARK, ESCAPED_ZERO, NOT_NULL, NULL_FIRST, NULL_LAST};
use crate::data_type::decimal_width_bytes;
use crate::row::field;
use crate::schema::KeyColumn;
use crate::{
    DataType, KeyOrder, MacAddress, Network, Numeric, Schema, TimeTz, TypeError, Value, convert,
    numeric,
};

impl Schema {
    /// The values of the key columns, in key order.
    ///
    /// # Errors
    /// [`TypeError::KeyDamaged`].
    pub fn decode_key(&self, key: &[u8]) -> Result<Vec<Value<'static>>, TypeError> {
        let mut values = Vec::with_capacity(self.keys.len());
        self.visit_key(key, &mut |_, value| values.push(value.into_owned()))?;
        Ok(values)
    }

    /// Calls `visit` with each key column (its position among all columns) and its value.
    pub(crate) fn visit_key<'k>(
        &self,
        key: &'k [u8],
        visit: &mut impl FnMut(usize, Value<'k>),
    ) -> Result<(), TypeError> {
        let mut at = 0;
        for column in &self.keys {
            let value =
                read_column(column, key, &mut at).map_err(|reason| self.key_damaged(at, reason))?;
            visit(column.column, value);
        }
        if at == key.len() {
            Ok(())
        } else {
            Err(self.key_damaged(at, "bytes are left over after the last column"))
        }
    }

    /// The value of the key column at `position` in the key.
    pub(crate) fn decode_key_column<'k>(
        &self,
        key: &'k [u8],
        position: usize,
    ) -> Result<Value<'k>, TypeError> {
        let mut at = 0;
        let (before, wanted) = (&self.keys[..position], &self.keys[position]);
        before
            .iter()
            .try_for_each(|column| skip_column(column, key, &mut at))
            .and_then(|()| read_column(wanted, key, &mut at))
            .map_err(|reason| self.key_damaged(at, reason))
    }

    #[cold]
    fn key_damaged(&self, at: usize, reason: &'static str) -> TypeError {
        TypeError::KeyDamaged { table: self.name().into(), at, reason }
    }
}

/// What stands in front of a key column of an index: whether a value follows.
fn take_mark(order: KeyOrder, key: &[u8], at: &mut usize) -> Result<bool, &'static str> {
    match (take::<1>(key, at)?, order.nulls_first) {
        ([NOT_NULL], _) => Ok(true),
        ([NULL_FIRST], true) | ([NULL_LAST], false) => Ok(false),
        _ => Err("what stands before a key column is no mark"),
    }
}

#[inline]
fn read_column<'k>(
    column: &KeyColumn,
    key: &'k [u8],
    at: &mut usize,
) -> Result<Value<'k>, &'static str> {
    match column.order {
        None => read(column.data_type, key, at),
        Some(order) if !take_mark(order, key, at)? => Ok(Value::Null),
        Some(KeyOrder { descending: false, .. }) => read(column.data_type, key, at),
        Some(_) => {
            let flipped = flipped(key, *at);
            let mut taken = 0;
            let value = read(column.data_type, &flipped, &mut taken)?.into_owned();
            *at += taken;
            Ok(value)
        }
    }
}

fn skip_column(column: &KeyColumn, key: &[u8], at: &mut usize) -> Result<(), &'static str> {
    match column.order {
        None => skip(column.data_type, key, at),
        Some(order) if !take_mark(order, key, at)? => Ok(()),
        Some(KeyOrder { descending: false, .. }) => skip(column.data_type, key, at),
        Some(_) => {
            let mut taken = 0;
            skip(column.data_type, &flipped(key, *at), &mut taken)?;
            *at += taken;
            Ok(())
        }
    }
}

/// The key from `at` on, all bits flipped.
fn flipped(key: &[u8], at: usize) -> Vec<u8> {
    key.get(at..).unwrap_or_default().iter().map(|byte| !byte).collect()
}

fn take<'k, const N: usize>(key: &'k [u8], at: &mut usize) -> Result<&'k [u8; N], &'static str> {
    let taken = key
        .get(*at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .ok_or("the key ends inside a column")?;
    *at += N;
    Ok(taken)
}

fn take_i32(key: &[u8], at: &mut usize) -> Result<i32, &'static str> {
    Ok((u32::from_be_bytes(*take(key, at)?) ^ (1 << 31)).cast_signed())
}

fn take_i64(key: &[u8], at: &mut usize) -> Result<i64, &'static str> {
    Ok((u64::from_be_bytes(*take(key, at)?) ^ (1 << 63)).cast_signed())
}

fn read<'k>(data_type: DataType, key: &'k [u8], at: &mut usize) -> Result<Value<'k>, &'static str> {
    Ok(match data_type {
        DataType::Boolean => match take::<1>(key, at)? {
            [0] => Value::Boolean(false),
            [1] => Value::Boolean(true),
            _ => return Err("a boolean is neither 0 nor 1"),
        },
        DataType::Int16 => {
            Value::Int16((u16::from_be_bytes(*take(key, at)?) ^ (1 << 15)).cast_signed())
        }
        DataType::Int32 => Value::Int32(take_i32(key, at)?),
        DataType::Int64 => Value::Int64(take_i64(key, at)?),
        DataType::Float32 => {
            let ordered = u32::from_be_bytes(*take(key, at)?);
            let bits = if ordered >> 31 == 0 { !ordered } else { ordered ^ (1 << 31) };
            Value::Float32(f32::from_bits(bits))
        }
        DataType::Float64 => {
            let ordered = u64::from_be_bytes(*take(key, at)?);
            let bits = if ordered >> 63 == 0 { !ordered } else { ordered ^ (1 << 63) };
            Value::Float64(f64::from_bits(bits))
        }
        DataType::Decimal { precision, scale } => {
            let scaled = if decimal_width_bytes(precision) == 8 {
                i128::from(take_i64(key, at)?)
            } else {
                let bytes = take::<12>(key, at)?;
                let mut wide = [0; 16];
                wide[4..].copy_from_slice(bytes);
                // Taking away 2^95 undoes the flipped sign bit and extends the sign.
                i128::from_be_bytes(wide) - (1 << 95)
            };
            Value::Decimal(field::decimal(scaled, precision, scale)?)
        }
        DataType::Numeric(limits) => {
            let scale = limits.map(|(_, scale)| u16::try_from(scale).unwrap_or(0));
            Value::Numeric(Numeric::read_key(take_numeric(key, at)?, scale)?)
        }
        DataType::Char(limit) => {
            let text = text(take_escaped(key, at)?)?;
            if text.len() > usize::from(limit) {
                return Err("a char value is longer than declared");
            }
            Value::Text(Cow::Owned(convert::padded(&text, limit)))
        }
        DataType::TimeTz => Value::TimeTz(TimeTz::from_ordered_bytes(*take(key, at)?)),
        DataType::Inet => {
            let address = Network::from_ordered_bytes(*take(key, at)?);
            Value::Inet(address.ok_or(field::NO_ADDRESS)?)
        }
        DataType::Cidr => Value::Cidr(field::network(*take(key, at)?)?),
        DataType::MacAddress => Value::MacAddress(MacAddress(*take(key, at)?)),
        DataType::Oid => Value::Int64(i64::from(u32::from_be_bytes(*take(key, at)?))),
        DataType::Enum(of) => field::label(of, u32::from_be_bytes(*take(key, at)?))?,
        DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Json
        | DataType::Jsonb => Value::Text(text(take_escaped(key, at)?)?),
        DataType::Bytes => Value::Bytes(take_escaped(key, at)?),
        DataType::Uuid => Value::Uuid(Uuid::from_bytes(*take(key, at)?)),
        DataType::Date => Value::Date(take_i32(key, at)?),
        DataType::Time => Value::Time(take_i64(key, at)?),
        DataType::Timestamp => Value::Timestamp(take_i64(key, at)?),
        DataType::TimestampTz => Value::TimestampTz(take_i64(key, at)?),
        DataType::Interval => return Err("an interval is in no key"),
        DataType::Array(_) => return Err("an array is in no key"),
        DataType::Composite(_) => return Err("a record is in no key"),
        DataType::Rounded(clock, _) => read(clock.data_type(), key, at)?,
    })
}

fn take_numeric<'k>(key: &'k [u8], at: &mut usize) -> Result<&'k [u8], &'static str> {
    let rest = key.get(*at..).unwrap_or_default();
    let length = numeric::key_length(rest)?;
    *at += length;
    Ok(&rest[..length])
}

fn text(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, &'static str> {
    match bytes {
        Cow::Borrowed(bytes) => field::utf8(bytes).map(Cow::Borrowed),
        Cow::Owned(bytes) => {
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "a text is not UTF-8")
        }
    }
}

/// Borrows when nothing was escaped, which is nearly always.
fn take_escaped<'k>(key: &'k [u8], at: &mut usize) -> Result<Cow<'k, [u8]>, &'static str> {
    let mut unescaped: Option<Vec<u8>> = None;
    loop {
        let rest = key.get(*at..).unwrap_or_default();
        let zero = rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or("a text inside the key has no end mark")?;
        let (part, mark) = rest.split_at(zero);
        if mark.starts_with(&END_MARK) {
            *at += zero + END_MARK.len();
            return Ok(match unescaped {
                None => Cow::Borrowed(part),
                Some(mut bytes) => {
                    bytes.extend_from_slice(part);
                    Cow::Owned(bytes)
                }
            });
        }
        if !mark.starts_with(&ESCAPED_ZERO) {
            return Err("a zero byte inside a key is neither escaped nor an end mark");
        }
        let bytes = unescaped.get_or_insert_default();
        bytes.extend_from_slice(part);
        bytes.push(0);
        *at += zero + ESCAPED_ZERO.len();
    }
}

fn skip(data_type: DataType, key: &[u8], at: &mut usize) -> Result<(), &'static str> {
    match super::width_bytes(data_type) {
        Some(width) => {
            *at += width;
            Ok(())
        }
        None if matches!(data_type, DataType::Numeric(_)) => take_numeric(key, at).map(|_| ()),
        _ => take_escaped(key, at).map(|_| ()),
    }
}
