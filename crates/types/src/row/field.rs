//! One column's bytes inside a row: written, read, NULL or not.

use std::borrow::Cow;

use rust_decimal::Decimal;
use uuid::Uuid;

use crate::convert::{self, Fault};
use crate::network::NETWORK_BYTES;
use crate::schema::{Field, RowLayout};
use crate::{
    DataType, EnumType, Interval, MacAddress, Network, Numeric, ROW_BYTES_MAX, Schema, TimeTz,
    TypeError, Value, WHOLE_ROW_BYTES_MAX,
};

#[inline]
pub(crate) fn set_bit(bitmap: &mut [u8], bit: usize) {
    bitmap[bit / 8] |= 1 << (bit % 8);
}

#[inline]
pub(crate) fn clear_bit(bitmap: &mut [u8], bit: usize) {
    bitmap[bit / 8] &= !(1 << (bit % 8));
}

#[inline]
pub(crate) fn bit(bitmap: &[u8], bit: usize) -> bool {
    bitmap[bit / 8] & (1 << (bit % 8)) != 0
}

/// Notes that variable column `ordinal` ends where the row ends now.
#[inline]
pub(crate) fn set_end(layout: &RowLayout, row: &mut [u8], ordinal: usize) {
    set_end_in::<false>(layout, row, ordinal);
}

/// As [`set_end`], in a wide row where `WIDE` says so.
#[inline]
pub(super) fn set_end_in<const WIDE: bool>(layout: &RowLayout, row: &mut [u8], ordinal: usize) {
    if WIDE {
        let wide = layout.wide();
        // A whole row is far below 4 GiB.
        let end = (row.len() - wide.variable) as u32;
        let at = wide.ends + 4 * ordinal;
        row[at..at + 4].copy_from_slice(&end.to_le_bytes());
    } else {
        // What would not fit was refused.
        let end = (row.len() - layout.variable) as u16;
        let at = layout.ends + 2 * ordinal;
        row[at..at + 2].copy_from_slice(&end.to_le_bytes());
    }
}

/// Start and end of variable column `ordinal`, from the start of the row. The row must be sound.
#[inline]
pub(crate) fn variable_range(layout: &RowLayout, row: &[u8], ordinal: usize) -> (usize, usize) {
    let end_of = |ordinal: usize| {
        let at = layout.ends + 2 * ordinal;
        layout.variable + usize::from(u16::from_le_bytes([row[at], row[at + 1]]))
    };
    let start = if ordinal == 0 { layout.variable } else { end_of(ordinal - 1) };
    (start, end_of(ordinal))
}

impl Schema {
    /// Writes a value that is neither NULL nor DEFAULT. Variable columns must come in order, the
    /// row ending where the one before ended.
    #[inline]
    pub(crate) fn put(
        &self,
        index: usize,
        value: &Value<'_>,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        self.put_in::<false>(index, value, row)
    }

    /// As [`put`](Self::put), into a wide row where `WIDE` says so. [`TypeError::RowTooLarge`] where the end does not
    /// fit into its number: nothing was written then.
    #[inline]
    pub(super) fn put_in<const WIDE: bool>(
        &self,
        index: usize,
        value: &Value<'_>,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        let stored = &self.stored[index];
        clear_bit(&mut row[self.layout.nulls..], index);
        let written = match stored.field {
            Field::Fixed { offset, width } => {
                let offset = offset + self.layout.shift::<WIDE>();
                write_fixed(stored.data_type, value, &mut row[offset..offset + width])
            }
            Field::Variable { ordinal } => match convert::variable(stored.data_type, value) {
                Ok(bytes) => {
                    let most = if WIDE { WHOLE_ROW_BYTES_MAX } else { usize::from(u16::MAX) };
                    if row.len() + bytes.len() > most {
                        let limit = if WIDE { most } else { ROW_BYTES_MAX };
                        return Err(self.row_too_large(row.len() + bytes.len(), limit));
                    }
                    row.extend_from_slice(&bytes);
                    set_end_in::<WIDE>(&self.layout, row, ordinal);
                    Ok(())
                }
                Err(fault) => Err(fault),
            },
        };
        written.map_err(|fault| fault.at(self.column_name(stored.column), stored.data_type, value))
    }

    #[cold]
    pub(super) fn row_too_large(&self, bytes: usize, limit: usize) -> TypeError {
        TypeError::RowTooLarge { table: self.name().into(), bytes, limit }
    }

    /// Writes NULL; the caller has checked that the column allows it.
    pub(crate) fn put_null(&self, index: usize, row: &mut [u8]) {
        self.put_null_in::<false>(index, row);
    }

    pub(super) fn put_null_in<const WIDE: bool>(&self, index: usize, row: &mut [u8]) {
        set_bit(&mut row[self.layout.nulls..], index);
        match self.stored[index].field {
            Field::Fixed { offset, width } => {
                let offset = offset + self.layout.shift::<WIDE>();
                row[offset..offset + width].fill(0);
            }
            Field::Variable { ordinal } => set_end_in::<WIDE>(&self.layout, row, ordinal),
        }
    }

    /// The bytes of a column in a sound row.
    #[inline(always)]
    pub(crate) fn field_bytes<'r>(&self, index: usize, row: &'r [u8]) -> &'r [u8] {
        match self.stored[index].field {
            Field::Fixed { offset, width } => &row[offset..offset + width],
            Field::Variable { ordinal } => {
                let (start, end) = variable_range(&self.layout, row, ordinal);
                &row[start..end]
            }
        }
    }
}

/// Writes a value of fixed width; `out` has exactly that width.
#[inline]
fn write_fixed(data_type: DataType, value: &Value<'_>, out: &mut [u8]) -> Result<(), Fault> {
    match data_type {
        DataType::Boolean => out.copy_from_slice(&[u8::from(convert::boolean(value)?)]),
        DataType::Int16 => out.copy_from_slice(&convert::int16(value)?.to_le_bytes()),
        DataType::Int32 => out.copy_from_slice(&convert::int32(value)?.to_le_bytes()),
        DataType::Int64 => out.copy_from_slice(&convert::int64(value)?.to_le_bytes()),
        DataType::Float32 => out.copy_from_slice(&convert::float32(value)?.to_le_bytes()),
        DataType::Float64 => out.copy_from_slice(&convert::float64(value)?.to_le_bytes()),
        DataType::Decimal { precision, scale } => {
            let scaled = convert::scaled(precision, scale, value)?;
            let width = out.len();
            out.copy_from_slice(&scaled.to_le_bytes()[..width]);
        }
        DataType::Char(limit) => {
            let text = convert::char_text(limit, value)?.as_bytes();
            let (filled, blank) = out.split_at_mut(text.len());
            filled.copy_from_slice(text);
            blank.fill(b' ');
        }
        DataType::Uuid => out.copy_from_slice(convert::uuid(value)?),
        DataType::TimeTz => out.copy_from_slice(&convert::time_tz(value)?.to_ordered_bytes()),
        DataType::Inet => out.copy_from_slice(&convert::inet(value)?.to_bytes()),
        DataType::Cidr => out.copy_from_slice(&convert::cidr(value)?.to_bytes()),
        DataType::MacAddress => out.copy_from_slice(&convert::mac_address(value)?.0),
        DataType::Oid => out.copy_from_slice(&convert::oid(value)?.to_le_bytes()),
        DataType::Enum(of) => out.copy_from_slice(&convert::label_code(of, value)?.to_le_bytes()),
        DataType::Date => out.copy_from_slice(&convert::date(value)?.to_le_bytes()),
        DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            out.copy_from_slice(&convert::micros(data_type, value)?.to_le_bytes());
        }
        DataType::Interval => out.copy_from_slice(&convert::interval(value)?.to_bytes()),
        DataType::Rounded(clock, _) => {
            convert::check_rounded(data_type, value)?;
            write_fixed(clock.data_type(), value, out)?;
        }
        DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Bytes
        | DataType::Json
        | DataType::Jsonb
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Numeric(_) => {
            unreachable!("columns of variable width have no fixed field")
        }
    }
    Ok(())
}

/// Appends a constant's bytes, whatever its width. The value is of its column's exact type.
pub(crate) fn write_any(data_type: DataType, value: &Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let written = match data_type.fixed_width_bytes() {
        Some(width) => {
            out.resize(start + width, 0);
            write_fixed(data_type, value, &mut out[start..])
        }
        None => convert::variable(data_type, value).map(|bytes| out.extend_from_slice(&bytes)),
    };
    assert!(written.is_ok(), "a definition holds a constant that its column cannot take");
}

/// Reads a column's bytes; the error says what is wrong with them.
pub(crate) fn read(data_type: DataType, bytes: &[u8]) -> Result<Value<'_>, &'static str> {
    const WIDTH: &str = "a column has the wrong width";
    fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], &'static str> {
        bytes.try_into().map_err(|_| WIDTH)
    }
    Ok(match data_type {
        DataType::Boolean => match array::<1>(bytes)?[0] {
            0 => Value::Boolean(false),
            1 => Value::Boolean(true),
            _ => return Err("a boolean is neither 0 nor 1"),
        },
        DataType::Int16 => Value::Int16(i16::from_le_bytes(array(bytes)?)),
        DataType::Int32 => Value::Int32(i32::from_le_bytes(array(bytes)?)),
        DataType::Int64 => Value::Int64(i64::from_le_bytes(array(bytes)?)),
        DataType::Float32 => Value::Float32(f32::from_le_bytes(array(bytes)?)),
        DataType::Float64 => Value::Float64(f64::from_le_bytes(array(bytes)?)),
        DataType::Decimal { precision, scale } => {
            let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
            let mut wide = if negative { [0xFF; 16] } else { [0; 16] };
            wide.get_mut(..bytes.len()).ok_or(WIDTH)?.copy_from_slice(bytes);
            Value::Decimal(decimal(i128::from_le_bytes(wide), precision, scale)?)
        }
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Json
        | DataType::Jsonb
        | DataType::Array(_)
        | DataType::Composite(_) => Value::Text(Cow::Borrowed(utf8(bytes)?)),
        DataType::Bytes => Value::Bytes(Cow::Borrowed(bytes)),
        DataType::Numeric(_) => Value::Numeric(Numeric::read(bytes)?),
        DataType::Uuid => Value::Uuid(Uuid::from_bytes(array(bytes)?)),
        DataType::TimeTz => Value::TimeTz(TimeTz::from_ordered_bytes(array(bytes)?)),
        DataType::Inet => Value::Inet(Network::from_bytes(array(bytes)?).ok_or(NO_ADDRESS)?),
        DataType::Cidr => Value::Cidr(network(array(bytes)?)?),
        DataType::MacAddress => Value::MacAddress(MacAddress(array(bytes)?)),
        DataType::Oid => Value::Int64(i64::from(u32::from_le_bytes(array(bytes)?))),
        DataType::Enum(of) => label(of, u32::from_le_bytes(array(bytes)?))?,
        DataType::Date => Value::Date(i32::from_le_bytes(array(bytes)?)),
        DataType::Time => Value::Time(i64::from_le_bytes(array(bytes)?)),
        DataType::Timestamp => Value::Timestamp(i64::from_le_bytes(array(bytes)?)),
        DataType::TimestampTz => Value::TimestampTz(i64::from_le_bytes(array(bytes)?)),
        DataType::Interval => Value::Interval(Interval::from_bytes(array(bytes)?)),
        DataType::Rounded(clock, _) => read(clock.data_type(), bytes)?,
    })
}

/// What is said of bytes that stand for no address.
pub(crate) const NO_ADDRESS: &str =
    "an address has another version than 4 or 6, or too long a network";

/// The network of a `cidr`.
pub(crate) fn network(bytes: [u8; NETWORK_BYTES]) -> Result<Network, &'static str> {
    let network = Network::from_bytes(bytes).ok_or(NO_ADDRESS)?;
    match network.is_network() {
        true => Ok(network),
        false => Err("a network has bits set to the right of its mask"),
    }
}

/// The label of a code.
pub(crate) fn label(of: EnumType, code: u32) -> Result<Value<'static>, &'static str> {
    let label = of.label(code).ok_or("a label is not one of its type")?;
    Ok(Value::Text(Cow::Borrowed(label)))
}

/// The decimal with this count of its last declared digit.
pub(crate) fn decimal(scaled: i128, precision: u8, scale: u8) -> Result<Decimal, &'static str> {
    const DIGITS: &str = "a decimal has more digits than declared";
    if scaled.unsigned_abs() >= convert::power_of_ten(u32::from(precision)).unsigned_abs() {
        return Err(DIGITS);
    }
    Decimal::try_from_i128_with_scale(scaled, u32::from(scale)).map_err(|_| DIGITS)
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")
}
