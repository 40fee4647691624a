//! Keys: each column in its only ordered form, one behind the other.

use std::fmt::Write;

use onrush_types::{DataType, EnumType, KeyOrder};

use super::address::{NETWORK_BYTES, address_of_key, address_words, is_inet_key, is_network};
use super::definition::Definition;
use super::field::{
    DAY_MICROS, NOT_NUMERIC, NOT_TEXT, characters, is_date, is_text, is_time_tz, is_timestamp,
    numeric_length,
};

/// Most bytes of a key.
pub(crate) const KEY_BYTES_MAX: usize = 1024;
const SHORT: &str = "the key ends inside a column";

#[derive(Clone, Debug)]
struct KeyColumn {
    data_type: DataType,
    /// Of the entries of an index: how it is ordered, NULL included.
    order: Option<KeyOrder>,
    name: String,
}

/// How to check the keys of a table.
#[derive(Clone, Debug)]
pub(crate) struct KeyPlan {
    columns: Box<[KeyColumn]>,
    /// Where all columns are of fixed width and any bytes will do: the width of a key.
    any: Option<usize>,
}

impl KeyPlan {
    pub(crate) fn new(definition: &Definition) -> KeyPlan {
        let order = |place: usize| definition.entries_of.as_ref()?.orders.get(place).copied();
        let columns: Box<[KeyColumn]> = definition
            .key
            .iter()
            .enumerate()
            .map(|(place, &position)| {
                let column = &definition.columns[position];
                let (data_type, name) = (column.data_type, column.name.clone());
                KeyColumn { data_type, order: order(place), name }
            })
            .collect();
        let width = |column: &KeyColumn| match (column.order, column.data_type) {
            (None, DataType::Int16) => Some(2),
            (None, DataType::Int32) => Some(4),
            (None, DataType::Int64) => Some(8),
            (None, DataType::Uuid) => Some(16),
            _ => None,
        };
        let any = columns.iter().try_fold(0, |sum, column| Some(sum + width(column)?));
        KeyPlan { columns, any: any.filter(|width| *width <= KEY_BYTES_MAX) }
    }

    /// Checks a whole key.
    #[inline]
    pub(crate) fn check(&self, key: &[u8]) -> Result<(), &'static str> {
        match self.any {
            Some(width) if key.len() == width => Ok(()),
            _ => self.check_columns(key),
        }
    }

    fn check_columns(&self, key: &[u8]) -> Result<(), &'static str> {
        if key.len() > KEY_BYTES_MAX {
            return Err("the key is longer than a key may be");
        }
        let mut rest = key;
        for column in &self.columns {
            check_column(column, &mut rest)?;
        }
        if rest.is_empty() { Ok(()) } else { Err("bytes are left over after the last key column") }
    }

    /// The bytes of the key column at `position`, where the columns before it are of fixed width.
    #[inline]
    pub(crate) fn column<'k>(&self, key: &'k [u8], position: usize) -> Option<&'k [u8]> {
        let before = self.columns[..position]
            .iter()
            .try_fold(0, |sum, column| Some(sum + fixed_width(column)?))?;
        key.get(before..before + fixed_width(&self.columns[position])?)
    }

    /// A key in words; a fence may be a part of one.
    pub(crate) fn words(&self, key: &[u8]) -> String {
        let mut text = String::new();
        let mut rest = key;
        for (number, column) in self.columns.iter().enumerate() {
            let before = rest;
            if rest.is_empty() || check_column(column, &mut rest).is_err() {
                rest = before;
                break;
            }
            let separator = if number == 0 { "" } else { ", " };
            let value = column_words(column, &before[..before.len() - rest.len()]);
            let _ = write!(text, "{separator}{name} = {value}", name = column.name);
        }
        if !rest.is_empty() || text.is_empty() {
            let separator = if text.is_empty() { "" } else { ", then " };
            let _ = write!(text, "{separator}bytes {rest:02x?}");
        }
        text
    }

    /// A range of keys in words.
    pub(crate) fn range_words(&self, low: &[u8], high: Option<&[u8]>) -> String {
        let from = if low.is_empty() { "the first key".to_owned() } else { self.words(low) };
        match high {
            Some(high) => format!("keys from {from} up to, not including, {}", self.words(high)),
            None => format!("keys from {from} to the last"),
        }
    }
}

/// The width of a key column, where all its values take the same.
fn fixed_width(column: &KeyColumn) -> Option<usize> {
    match column.order {
        None => value_width(column.data_type),
        Some(_) => None,
    }
}

fn value_width(data_type: DataType) -> Option<usize> {
    match data_type {
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Bytes => None,
        // The network, and the address behind it.
        DataType::Inet => Some(NETWORK_BYTES + 16),
        other => other.fixed_width_bytes(),
    }
}

/// Takes one column off the front of `rest`: of an index's entries what stands before the value, too.
fn check_column(column: &KeyColumn, rest: &mut &[u8]) -> Result<(), &'static str> {
    let Some(order) = column.order else { return check_value(column.data_type, rest) };
    let (mark, behind) = rest.split_first().ok_or(SHORT)?;
    *rest = behind;
    match (mark, order.nulls_first) {
        (0, true) | (2, false) => Ok(()),
        (1, _) if !order.descending => check_value(column.data_type, rest),
        (1, _) => {
            let flipped: Vec<u8> = rest.iter().map(|byte| !byte).collect();
            let mut left = flipped.as_slice();
            check_value(column.data_type, &mut left)?;
            *rest = &rest[flipped.len() - left.len()..];
            Ok(())
        }
        _ => Err("what stands before a key column is no mark"),
    }
}

/// Takes one value off the front of `rest`.
fn check_value(data_type: DataType, rest: &mut &[u8]) -> Result<(), &'static str> {
    if let DataType::Numeric(_) = data_type {
        let length = numeric_length(rest).ok_or(NOT_NUMERIC)?;
        *rest = &rest[length..];
        return Ok(());
    }
    let Some(width) = value_width(data_type) else { return check_escaped(data_type, rest) };
    let (bytes, behind) = rest.split_at_checked(width).ok_or(SHORT)?;
    *rest = behind;
    let sound = match data_type.unrounded() {
        DataType::Boolean => bytes[0] <= 1,
        // Minus zero is written as zero, and every NaN as one of them.
        DataType::Float32 => {
            let bits = unordered(bytes, 4) as u32;
            bits != 1 << 31 && (!f32::from_bits(bits).is_nan() || bits == 0x7FC0_0000)
        }
        DataType::Float64 => {
            let bits = unordered(bytes, 8);
            bits != 1 << 63 && (!f64::from_bits(bits).is_nan() || bits == 0x7FF8_0000_0000_0000)
        }
        DataType::Decimal { precision, .. } => {
            integer(bytes).abs() < 10i128.pow(u32::from(precision))
        }
        DataType::Date => i32::try_from(integer(bytes)).is_ok_and(is_date),
        DataType::TimeTz => is_time_tz(bytes),
        DataType::Inet => is_inet_key(bytes),
        DataType::Cidr => is_network(bytes),
        DataType::Enum(of) => label(of, bytes).is_some(),
        DataType::Time => (0..=i128::from(DAY_MICROS)).contains(&integer(bytes)),
        DataType::Timestamp | DataType::TimestampTz => {
            i64::try_from(integer(bytes)).is_ok_and(is_timestamp)
        }
        _ => true,
    };
    if sound { Ok(()) } else { Err("a key column holds a value that its type does not have") }
}

/// The label whose code is in a key.
fn label(of: EnumType, bytes: &[u8]) -> Option<&'static str> {
    of.label(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The bits of a float from their ordered form.
fn unordered(bytes: &[u8], width: usize) -> u64 {
    let sign = 1u64 << (8 * width - 1);
    let ordered = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let mask = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    if ordered & sign == 0 { !ordered & mask } else { ordered ^ sign }
}

/// A signed number from its ordered form: big-endian, sign bit flipped.
pub(crate) fn integer(bytes: &[u8]) -> i128 {
    let number = bytes.iter().fold(0i128, |number, byte| number << 8 | i128::from(*byte));
    number - (1i128 << (8 * bytes.len() - 1))
}

fn check_escaped(data_type: DataType, rest: &mut &[u8]) -> Result<(), &'static str> {
    let mut value = Vec::new();
    let mut bytes = *rest;
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0).ok_or(SHORT)?;
        value.extend_from_slice(&bytes[..zero]);
        match bytes.get(zero + 1) {
            Some(0) => break *rest = &bytes[zero + 2..],
            Some(0xFF) => value.push(0),
            _ => return Err("a zero byte in a key is neither escaped nor an end"),
        }
        bytes = &bytes[zero + 2..];
    }
    match data_type {
        DataType::Bytes => Ok(()),
        _ if !is_text(&value) => Err(NOT_TEXT),
        DataType::Char(_) if value.last() == Some(&b' ') => Err("a char in a key ends in a blank"),
        DataType::Char(limit) if value.len() > usize::from(limit) => Err(TOO_LONG),
        DataType::Varchar(limit) if characters(&value) > limit as usize => Err(TOO_LONG),
        _ => Ok(()),
    }
}

/// Of a text in a key.
const TOO_LONG: &str = "a text in a key is longer than declared";

/// A sound column in words.
fn column_words(column: &KeyColumn, bytes: &[u8]) -> String {
    let Some(order) = column.order else { return value_words(column.data_type, bytes) };
    match bytes {
        [1, value @ ..] if order.descending => {
            let value: Vec<u8> = value.iter().map(|byte| !byte).collect();
            value_words(column.data_type, &value)
        }
        [1, value @ ..] => value_words(column.data_type, value),
        _ => "NULL".to_owned(),
    }
}

/// A sound value in words.
fn value_words(data_type: DataType, bytes: &[u8]) -> String {
    match data_type.unrounded() {
        DataType::Boolean => (bytes[0] == 1).to_string(),
        DataType::Int16 | DataType::Int32 | DataType::Int64 => integer(bytes).to_string(),
        DataType::Float32 => f32::from_bits(unordered(bytes, 4) as u32).to_string(),
        DataType::Float64 => f64::from_bits(unordered(bytes, 8)).to_string(),
        DataType::Decimal { scale, .. } => format!("{}e-{scale}", integer(bytes)),
        DataType::Oid => (integer(bytes) + (1 << 31)).to_string(), // without a sign
        DataType::Date => format!("day {} since 1970-01-01", integer(bytes)),
        DataType::TimeTz => format!("{} microseconds in UTC", integer(&bytes[..8])),
        DataType::Inet => address_words(&address_of_key(bytes)),
        DataType::Cidr => address_words(bytes),
        DataType::MacAddress => format!("{bytes:02x?}"),
        DataType::Enum(of) => label(of, bytes).unwrap_or("?").to_owned(),
        DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            format!("{} microseconds", integer(bytes))
        }
        DataType::Uuid => {
            let number = bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
            onrush_types::Uuid::from_u128(number).to_string()
        }
        DataType::Bytes => format!("{bytes:02x?}"),
        DataType::Numeric(_) => match onrush_types::Numeric::read_key(bytes, None) {
            Ok(number) => number.to_string(),
            Err(_) => format!("{bytes:02x?}"),
        },
        _ => format!("{:?}", String::from_utf8_lossy(bytes.strip_suffix(&[0, 0]).unwrap_or(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(columns: &[DataType]) -> KeyPlan {
        let column = |(n, t): (usize, &DataType)| KeyColumn {
            data_type: *t,
            order: None,
            name: format!("c{n}"),
        };
        let columns = columns.iter().enumerate().map(column).collect();
        KeyPlan { columns, any: None }
    }

    #[test]
    fn a_float_has_one_form() {
        let floats = plan(&[DataType::Float64]);
        let ordered = |bits: u64| {
            if bits >> 63 == 1 { (!bits).to_be_bytes() } else { (bits | 1 << 63).to_be_bytes() }
        };
        for float in [0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(floats.check(&ordered(float.to_bits())), Ok(()));
            assert_eq!(floats.words(&ordered(float.to_bits())), format!("c0 = {float}"));
        }
        assert!(floats.check(&ordered((-0.0f64).to_bits())).is_err());
        assert!(floats.check(&ordered(f64::NAN.to_bits() | 1)).is_err());
    }

    #[test]
    fn texts_end_where_they_say_and_read_as_words() {
        let texts = plan(&[DataType::Char(3), DataType::Int16]);
        assert_eq!(texts.check(b"ab\0\0\x80\x07"), Ok(()));
        assert_eq!(texts.words(b"ab\0\0\x80\x07"), "c0 = \"ab\", c1 = 7");
        for wrong in
            [&b"ab \0\0\x80\x07"[..], b"abcd\0\0\x80\x07", b"ab\0\x01\x80\x07", b"ab\0\0\x80"]
        {
            assert!(texts.check(wrong).is_err(), "{wrong:?}");
        }
    }
}
