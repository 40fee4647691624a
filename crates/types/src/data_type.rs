//! The types a column can have, their names, and their limits.
//!
//! Lengths of `char` and `varchar` count bytes of UTF-8, so that a column's width never depends
//! on its content: "é" counts as two.

use std::fmt;
use std::str::FromStr;

use crate::TypeError;
use crate::composite::CompositeType;
use crate::enumeration::EnumType;
use crate::interval::INTERVAL_BYTES;
use crate::mac_address::MAC_ADDRESS_BYTES;
use crate::network::NETWORK_BYTES;
use crate::numeric::NUMERIC_PRECISION_MAX;
use crate::rounding::{self, Clock};
use crate::time_tz::TIME_TZ_BYTES;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// True or false.
    Boolean,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
    /// Exact decimal number: `precision` digits in all, `scale` of them after the point.
    Decimal {
        /// Digits in all, 1 to 28.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// Fixed width of `n` bytes (1 to 8000), filled up with blanks. Trailing blanks do not count:
    /// they are ignored in comparisons and keys, and come back as padding up to the width.
    Char(u16),
    /// Text of up to `n` characters (1 to 10,485,760).
    Varchar(u32),
    /// Text, limited only by the size of a row.
    Text,
    /// Bytes, limited only by the size of a row.
    Bytes,
    /// 16 bytes, ordered as bytes.
    Uuid,
    /// A day, years 4714 BC to 5874897, or an infinity.
    Date,
    /// A time of day in microseconds, without a time zone.
    Time,
    /// A day and time in microseconds, without a time zone.
    Timestamp,
    /// A moment in microseconds, kept in UTC.
    TimestampTz,
    /// JSON as it was written.
    Json,
    /// JSON in one form for all ways of writing it, which is PostgreSQL's.
    Jsonb,
    /// Months, days and microseconds: a span of time.
    Interval,
    /// Text of up to 63 bytes, as PostgreSQL's catalogue has names. Who writes a longer one cuts it.
    Name,
    /// The number of a thing in PostgreSQL's catalogue: 32 bits without a sign.
    Oid,
    /// A time of day with the offset of its clock from UTC.
    TimeTz,
    /// An address of a host, version 4 or 6, with the length of its network.
    Inet,
    /// A network: an address and a length, without bits behind it.
    Cidr,
    /// The address of a network card: 6 bytes, ordered as bytes.
    MacAddress,
    /// A time, timestamp or interval with so many digits of seconds, or all. Values of more are not taken: who writes
    /// them rounds them.
    Rounded(Clock, Option<u8>),
    /// Labels in an order of their own. A value is the label as a text.
    Enum(EnumType),
    /// Records with the fields of the type. A value is the text that PostgreSQL writes, `(1,,"a b")`.
    Composite(CompositeType),
    /// Arrays of values of this type, of one dimension: made by [`array`](DataType::array). A value is the text that
    /// PostgreSQL writes, `{1,NULL,"a b"}`.
    Array(&'static DataType),
    /// Any [`Numeric`](crate::Numeric); or those of so many digits, so many of them after the point: 1 to 1000, and
    /// -1000 to 1000. What [`Decimal`](DataType::Decimal) has space for is kept as that.
    Numeric(Option<(u16, i16)>),
}

/// Most digits of a decimal.
pub const DECIMAL_DIGITS_MAX: u8 = 28;
/// Longest declared length of `char`, in bytes.
pub const CHAR_BYTES_MAX: u16 = 8000;
/// The same of `varchar`, in characters: PostgreSQL's.
pub const VARCHAR_CHARACTERS_MAX: u32 = 10_485_760;
/// Longest name, in bytes.
pub const NAME_BYTES_MAX: u16 = 63;

/// The names, for error messages and help.
pub const TYPE_NAMES: &str = "boolean, smallint, integer, bigint, real, double, decimal(p,s), \
     char(n), varchar(n), text, bytes, uuid, date, time, timestamp, timestamptz, json, jsonb, \
     numeric, interval, name, oid, inet, cidr, macaddr, timetz, time(n), timestamp(n), timestamptz(n), interval(n)";

impl DataType {
    /// Bytes of a value inside a row when every value takes the same; None for variable ones.
    pub const fn fixed_width_bytes(self) -> Option<usize> {
        match self {
            DataType::Boolean => Some(1),
            DataType::Int16 => Some(2),
            DataType::Int32
            | DataType::Float32
            | DataType::Date
            | DataType::Oid
            | DataType::Enum(_) => Some(4),
            DataType::Int64
            | DataType::Float64
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz => Some(8),
            DataType::Decimal { precision, .. } => Some(decimal_width_bytes(precision)),
            DataType::Char(length) => Some(length as usize),
            DataType::TimeTz => Some(TIME_TZ_BYTES),
            DataType::Inet | DataType::Cidr => Some(NETWORK_BYTES),
            DataType::MacAddress => Some(MAC_ADDRESS_BYTES),
            DataType::Uuid => Some(16),
            DataType::Interval => Some(INTERVAL_BYTES),
            DataType::Rounded(clock, _) => clock.data_type().fixed_width_bytes(),
            DataType::Varchar(_)
            | DataType::Text
            | DataType::Name
            | DataType::Bytes
            | DataType::Json
            | DataType::Jsonb
            | DataType::Array(_)
            | DataType::Composite(_)
            | DataType::Numeric(_) => None,
        }
    }

    /// Whether the type's values are any text.
    pub const fn is_text(self) -> bool {
        matches!(self, DataType::Char(_) | DataType::Varchar(_) | DataType::Text | DataType::Name)
    }

    /// Whether the type's values are numbers.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Float32
                | DataType::Float64
                | DataType::Decimal { .. }
                | DataType::Numeric(_)
        )
    }

    /// Whether keys can hold the type's values: those that are equal are written alike, but for blanks at the end of
    /// `char` and the signs of zeros.
    pub const fn is_ordered(self) -> bool {
        !matches!(
            self.unrounded(),
            DataType::Json
                | DataType::Jsonb
                | DataType::Interval
                | DataType::Array(_)
                | DataType::Composite(_)
        )
    }

    /// The type, if lengths and digits can be so.
    fn sound(self, text: &str) -> Result<DataType, TypeError> {
        match self.fault() {
            Some(reason) => Err(TypeError::ImpossibleDataType { text: text.into(), reason }),
            None => Ok(self),
        }
    }

    /// The type of numbers with so many digits, so many of them after the point.
    #[must_use]
    pub fn numeric(precision: u16, scale: i16) -> DataType {
        small_decimal(precision, scale).unwrap_or(DataType::Numeric(Some((precision, scale))))
    }

    /// The reason why length, precision or scale cannot be, if so.
    pub(crate) fn fault(self) -> Option<&'static str> {
        match self {
            DataType::Decimal { precision, scale }
                if !(1..=DECIMAL_DIGITS_MAX).contains(&precision) || scale > precision =>
            {
                Some("precision is 1 to 28 and scale 0 to precision")
            }
            DataType::Numeric(Some((precision, scale)))
                if !(1..=NUMERIC_PRECISION_MAX).contains(&precision)
                    || scale.unsigned_abs() > NUMERIC_PRECISION_MAX
                    || small_decimal(precision, scale).is_some() =>
            {
                Some("precision is 1 to 1000 and scale -1000 to 1000")
            }
            DataType::Char(length) if !(1..=CHAR_BYTES_MAX).contains(&length) => {
                Some("the length is 1 to 8000 bytes")
            }
            DataType::Varchar(length) if !(1..=VARCHAR_CHARACTERS_MAX).contains(&length) => {
                Some("the length is 1 to 10485760 characters")
            }
            DataType::Rounded(clock, digits) => rounding::fault(clock, digits),
            DataType::Array(element) => element.fault(),
            DataType::Composite(of) => of.fault(),
            _ => None,
        }
    }
}

fn small_decimal(precision: u16, scale: i16) -> Option<DataType> {
    let (precision, scale) = (u8::try_from(precision).ok()?, u8::try_from(scale).ok()?);
    let is_small = (1..=DECIMAL_DIGITS_MAX).contains(&precision) && scale <= precision;
    is_small.then_some(DataType::Decimal { precision, scale })
}

/// Bytes of a decimal's scaled integer: 18 digits fit 64 bits, 28 digits fit 96.
pub(crate) const fn decimal_width_bytes(precision: u8) -> usize {
    if precision <= 18 { 8 } else { 12 }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            DataType::Boolean => "boolean",
            DataType::Int16 => "smallint",
            DataType::Int32 => "integer",
            DataType::Int64 => "bigint",
            DataType::Float32 => "real",
            DataType::Float64 => "double",
            DataType::Decimal { precision, scale } => {
                return write!(formatter, "decimal({precision},{scale})");
            }
            DataType::Char(length) => return write!(formatter, "char({length})"),
            DataType::Varchar(length) => return write!(formatter, "varchar({length})"),
            DataType::Text => "text",
            DataType::Bytes => "bytes",
            DataType::Uuid => "uuid",
            DataType::Date => "date",
            DataType::Time => "time",
            DataType::Timestamp => "timestamp",
            DataType::TimestampTz => "timestamptz",
            DataType::Json => "json",
            DataType::Jsonb => "jsonb",
            DataType::Interval => "interval",
            DataType::TimeTz => "timetz",
            DataType::Inet => "inet",
            DataType::Cidr => "cidr",
            DataType::MacAddress => "macaddr",
            DataType::Name => "name",
            DataType::Oid => "oid",
            DataType::Enum(of) => of.name(),
            DataType::Composite(of) => of.name(),
            DataType::Array(element) => return write!(formatter, "{element}[]"),
            DataType::Rounded(clock, digits) => return rounding::write(*clock, *digits, formatter),
            DataType::Numeric(None) => "numeric",
            DataType::Numeric(Some((precision, scale))) => {
                return write!(formatter, "numeric({precision},{scale})");
            }
        };
        formatter.write_str(name)
    }
}

impl FromStr for DataType {
    type Err = TypeError;

    /// Reads the names of [`TYPE_NAMES`], in any case, and the usual other names of SQL, PostgreSQL
    /// and Rust. A `varchar` without a length is `text`.
    fn from_str(text: &str) -> Result<DataType, TypeError> {
        let unknown = || TypeError::UnknownDataType { text: text.into() };
        let lower = text.trim().to_ascii_lowercase();
        if let Some((element, length)) = lower.strip_suffix(']').and_then(|it| it.rsplit_once('['))
        {
            // As in PostgreSQL, how long an array is to be says nothing.
            let is_length = length.bytes().all(|digit| digit.is_ascii_digit());
            let element: DataType = element.parse()?;
            let array = match element {
                // Nor how many dimensions it has.
                DataType::Array(_) => Some(element),
                element => element.array(),
            };
            return array.filter(|_| is_length).ok_or_else(unknown);
        }
        // As PostgreSQL calls arrays inside.
        if let Some(element) = lower.strip_prefix('_').filter(|element| !element.starts_with('_')) {
            return element.parse::<DataType>()?.array().ok_or_else(unknown);
        }
        if let Some(data_type) = rounding::read(&lower) {
            return data_type.sound(text);
        }
        let (name, arguments) = match lower.split_once('(') {
            None => (lower.as_str(), None),
            Some((name, rest)) => {
                (name.trim_end(), Some(rest.strip_suffix(')').ok_or_else(unknown)?))
            }
        };
        let data_type = match arguments {
            None => plain_type(name).ok_or_else(unknown)?,
            Some(arguments) => type_with_arguments(name, arguments).ok_or_else(unknown)?,
        };
        data_type.sound(text)
    }
}

fn plain_type(name: &str) -> Option<DataType> {
    Some(match name {
        "boolean" | "bool" => DataType::Boolean,
        "smallint" | "int16" | "int2" => DataType::Int16,
        "integer" | "int" | "int32" | "int4" => DataType::Int32,
        "bigint" | "int64" | "int8" => DataType::Int64,
        "real" | "float32" | "float4" => DataType::Float32,
        "double" | "double precision" | "float64" | "float8" | "float" => DataType::Float64,
        "char" | "character" => DataType::Char(1),
        "text" | "varchar" | "character varying" => DataType::Text,
        "bytes" | "bytea" => DataType::Bytes,
        "uuid" => DataType::Uuid,
        "date" => DataType::Date,
        "json" => DataType::Json,
        "jsonb" => DataType::Jsonb,
        "name" => DataType::Name,
        "oid" => DataType::Oid,
        "inet" => DataType::Inet,
        "cidr" => DataType::Cidr,
        "macaddr" => DataType::MacAddress,
        "numeric" | "decimal" => DataType::Numeric(None),
        other => {
            let composite = || CompositeType::noted(other).map(DataType::Composite);
            return EnumType::noted(other).map(DataType::Enum).or_else(composite);
        }
    })
}

fn type_with_arguments(name: &str, arguments: &str) -> Option<DataType> {
    Some(match name {
        "char" | "character" | "bpchar" => {
            DataType::Char(u16::try_from(length(arguments)?).unwrap_or(u16::MAX))
        }
        "varchar" | "character varying" => DataType::Varchar(length(arguments)?),
        // So many bits of a number.
        "float" => match arguments.trim().parse::<u8>().ok()? {
            1..=24 => DataType::Float32,
            25..=53 => DataType::Float64,
            _ => return None,
        },
        "decimal" | "numeric" => {
            let (precision, scale) = arguments.split_once(',').unwrap_or((arguments, "0"));
            DataType::numeric(precision.trim().parse().ok()?, scale.trim().parse().ok()?)
        }
        _ => return None,
    })
}

/// A length; one that is too long stays so.
fn length(text: &str) -> Option<u32> {
    let length: u64 = text.trim().parse().ok()?;
    Some(u32::try_from(length).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalFields;

    #[test]
    fn every_type_reads_back_from_its_name() {
        for data_type in [
            DataType::Boolean,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::Float32,
            DataType::Float64,
            DataType::Decimal { precision: 18, scale: 4 },
            DataType::Char(111),
            DataType::Varchar(8000),
            DataType::Varchar(VARCHAR_CHARACTERS_MAX),
            DataType::Text,
            DataType::Bytes,
            DataType::Uuid,
            DataType::Date,
            DataType::Time,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Json,
            DataType::Jsonb,
            DataType::Interval,
            DataType::Name,
            DataType::Oid,
            DataType::TimeTz,
            DataType::Inet,
            DataType::Cidr,
            DataType::MacAddress,
            DataType::Rounded(Clock::TimeTz, Some(2)),
            DataType::Rounded(Clock::Timestamp, Some(0)),
            DataType::Rounded(Clock::TimestampTz, Some(6)),
            DataType::Rounded(Clock::Interval(IntervalFields::YearToMonth), None),
            DataType::Numeric(None),
            DataType::Numeric(Some((210, 10))),
            DataType::Numeric(Some((3, -6))),
        ] {
            assert_eq!(data_type.to_string().parse(), Ok(data_type));
        }
    }

    #[test]
    fn impossible_types_are_refused() {
        for text in
            ["", "int9", "char(0)", "char(8001)", "decimal(1001,0)", "decimal(0,4)", "text("]
        {
            assert!(text.parse::<DataType>().is_err(), "{text}");
        }
    }
}
