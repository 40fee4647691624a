//! One value of one column, and how two values of a type compare.

use std::borrow::Cow;
use std::cmp::Ordering;

use rust_decimal::Decimal;
use uuid::Uuid;

use crate::convert::length_without_blanks;
use crate::{DataType, Interval, MacAddress, Network, Numeric, TimeTz};

/// A value on its way in or out. Text and bytes may be borrowed from the caller or from a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// In an insert or update: the column's default.
    #[default]
    Default,
    /// True or false.
    Boolean(bool),
    /// 16-bit integer; accepted by every wider integer and by decimal.
    Int16(i16),
    /// 32-bit integer; accepted by `bigint` and decimal.
    Int32(i32),
    /// 64-bit integer; accepted by decimal.
    Int64(i64),
    /// Single precision.
    Float32(f32),
    /// Double precision.
    Float64(f64),
    /// Exact decimal number.
    Decimal(Decimal),
    /// Text for `char`, `varchar` and `text`.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// 16 bytes.
    Uuid(Uuid),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00:00, without a time zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// A span of time.
    Interval(Interval),
    /// Exact number of any size.
    Numeric(Numeric),
    /// A time of day with the offset of its clock.
    TimeTz(TimeTz),
    /// An address and its network.
    Inet(Network),
    /// A network.
    Cidr(Network),
    /// The address of a network card.
    MacAddress(MacAddress),
}

impl<'a> Value<'a> {
    /// The same value, owning its text or bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Default => Value::Default,
            Value::Boolean(value) => Value::Boolean(value),
            Value::Int16(value) => Value::Int16(value),
            Value::Int32(value) => Value::Int32(value),
            Value::Int64(value) => Value::Int64(value),
            Value::Float32(value) => Value::Float32(value),
            Value::Float64(value) => Value::Float64(value),
            Value::Decimal(value) => Value::Decimal(value),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Value::Uuid(value) => Value::Uuid(value),
            Value::Date(value) => Value::Date(value),
            Value::Time(value) => Value::Time(value),
            Value::Timestamp(value) => Value::Timestamp(value),
            Value::TimestampTz(value) => Value::TimestampTz(value),
            Value::Interval(value) => Value::Interval(value),
            Value::Numeric(value) => Value::Numeric(value),
            Value::TimeTz(value) => Value::TimeTz(value),
            Value::Inet(value) => Value::Inet(value),
            Value::Cidr(value) => Value::Cidr(value),
            Value::MacAddress(value) => Value::MacAddress(value),
        }
    }

    /// The same value, borrowing its text or bytes from `self`.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
            Value::Null => Value::Null,
            Value::Default => Value::Default,
            Value::Boolean(value) => Value::Boolean(*value),
            Value::Int16(value) => Value::Int16(*value),
            Value::Int32(value) => Value::Int32(*value),
            Value::Int64(value) => Value::Int64(*value),
            Value::Float32(value) => Value::Float32(*value),
            Value::Float64(value) => Value::Float64(*value),
            Value::Decimal(value) => Value::Decimal(*value),
            Value::Uuid(value) => Value::Uuid(*value),
            Value::Date(value) => Value::Date(*value),
            Value::Time(value) => Value::Time(*value),
            Value::Timestamp(value) => Value::Timestamp(*value),
            Value::TimestampTz(value) => Value::TimestampTz(*value),
            Value::Interval(value) => Value::Interval(*value),
            Value::Numeric(value) => Value::Numeric(value.clone()),
            Value::TimeTz(value) => Value::TimeTz(*value),
            Value::Inet(value) => Value::Inet(*value),
            Value::Cidr(value) => Value::Cidr(*value),
            Value::MacAddress(value) => Value::MacAddress(*value),
        }
    }

    /// Whether the value is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Default => "DEFAULT",
            Value::Boolean(_) => "boolean",
            Value::Int16(_) => "smallint",
            Value::Int32(_) => "integer",
            Value::Int64(_) => "bigint",
            Value::Float32(_) => "real",
            Value::Float64(_) => "double",
            Value::Decimal(_) => "decimal",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::Uuid(_) => "uuid",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::Timestamp(_) => "timestamp",
            Value::TimestampTz(_) => "timestamptz",
            Value::Interval(_) => "interval",
            Value::Numeric(_) => "numeric",
            Value::TimeTz(_) => "timetz",
            Value::Inet(_) => "inet",
            Value::Cidr(_) => "cidr",
            Value::MacAddress(_) => "macaddr",
        }
    }

    /// The value as a 64-bit integer, when it is an integer of any width.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int16(value) => Some(i64::from(*value)),
            Value::Int32(value) => Some(i64::from(*value)),
            Value::Int64(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, when the value is an exact one.
    pub fn as_numeric(&self) -> Option<Cow<'_, Numeric>> {
        match self {
            Value::Numeric(number) => Some(Cow::Borrowed(number)),
            Value::Decimal(number) => Some(Cow::Owned(Numeric::from(*number))),
            other => other.as_i64().map(|number| Cow::Owned(Numeric::from(number))),
        }
    }

    /// The text, when the value is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, when the value is bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A total order: NULL first, then by value; text by its bytes. The order of keys is the same.
    /// Floats: -0 equals 0, all NaN are equal and above infinity. Integers compare across widths
    /// and with decimals; other kinds that do not mix are ordered by kind.
    pub fn total_cmp(&self, other: &Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
            (Value::Float32(left), Value::Float32(right)) => {
                compare_floats(f64::from(*left), f64::from(*right))
            }
            (Value::Float64(left), Value::Float64(right)) => compare_floats(*left, *right),
            (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
            (Value::Numeric(left), Value::Numeric(right)) => left.compare(right),
            (Value::Text(left), Value::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
            (Value::Uuid(left), Value::Uuid(right)) => left.cmp(right),
            (Value::Date(left), Value::Date(right)) => left.cmp(right),
            (Value::Time(left), Value::Time(right)) => left.cmp(right),
            (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
            (Value::TimestampTz(left), Value::TimestampTz(right)) => left.cmp(right),
            (Value::TimeTz(left), Value::TimeTz(right)) => left.cmp(right),
            (Value::Inet(left) | Value::Cidr(left), Value::Inet(right) | Value::Cidr(right)) => {
                left.cmp(right)
            }
            (Value::MacAddress(left), Value::MacAddress(right)) => left.cmp(right),
            (Value::Interval(left), Value::Interval(right)) => {
                left.span_micros().cmp(&right.span_micros())
            }
            _ => match (self.as_i64(), other.as_i64(), self, other) {
                (Some(left), Some(right), ..) => left.cmp(&right),
                (Some(left), None, _, Value::Decimal(right)) => Decimal::from(left).cmp(right),
                (None, Some(right), Value::Decimal(left), _) => left.cmp(&Decimal::from(right)),
                _ => match (self.as_numeric(), other.as_numeric()) {
                    (Some(left), Some(right)) => left.compare(&right),
                    _ => self.rank().cmp(&other.rank()),
                },
            },
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Default => 1,
            Value::Boolean(_) => 2,
            Value::Int16(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Decimal(_)
            | Value::Numeric(_) => 3,
            Value::Float32(_) => 4,
            Value::Float64(_) => 5,
            Value::Text(_) => 6,
            Value::Bytes(_) => 7,
            Value::Uuid(_) => 8,
            Value::Date(_) => 9,
            Value::Time(_) => 10,
            Value::Timestamp(_) => 11,
            Value::TimestampTz(_) => 12,
            Value::Interval(_) => 13,
            Value::TimeTz(_) => 14,
            Value::Inet(_) | Value::Cidr(_) => 15,
            Value::MacAddress(_) => 16,
        }
    }
}

impl DataType {
    /// How two values of this type compare: [`Value::total_cmp`], for `char` without trailing blanks, and labels in
    /// the order of their type. This is the order of keys.
    pub fn compare(self, left: &Value<'_>, right: &Value<'_>) -> Ordering {
        match (self, left, right) {
            (DataType::Char(_), Value::Text(left), Value::Text(right)) => {
                let (left, right) = (left.as_bytes(), right.as_bytes());
                let trimmed = &right[..length_without_blanks(right)];
                left[..length_without_blanks(left)].cmp(trimmed)
            }
            (DataType::Enum(of), Value::Text(left), Value::Text(right)) => {
                of.code(left).cmp(&of.code(right))
            }
            _ => left.total_cmp(right),
        }
    }
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    match left.partial_cmp(&right) {
        Some(order) => order,
        None => left.is_nan().cmp(&right.is_nan()),
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value<'_> {
            fn from(value: $from) -> Self {
                Value::$variant(value)
            }
        })*
    };
}

value_from! {
    bool => Boolean, i16 => Int16, i32 => Int32, i64 => Int64, f32 => Float32, f64 => Float64,
    Decimal => Decimal, Uuid => Uuid, Interval => Interval, Numeric => Numeric,
    TimeTz => TimeTz, MacAddress => MacAddress,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Bytes(Cow::Owned(bytes))
    }
}

/// None is NULL.
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
