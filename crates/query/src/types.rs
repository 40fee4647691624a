//! Which Arrow type stands for which type of a column, and back.
//!
//! Arrow's types say less than SQL's: `char(10)` and `text` are both strings there. What is lost goes
//! into the metadata of the field, which DataFusion hands on wherever a column is only passed through.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, IntervalUnit, TimeUnit};
use onrush::DataType;

use crate::enumeration::{ENUM_BYTES, any_enum};
use crate::numeric;

/// Where a field's metadata says what its Arrow type does not.
const TYPE_KEY: &str = "onrush.type";
/// Timestamps are kept in UTC.
pub(crate) const UTC: &str = "+00:00";
/// What stands for any `numeric` while a statement is read.
pub(crate) const STAND_IN: ArrowType = ArrowType::Decimal128(38, 10);

/// Bytes of a time with an offset.
pub(crate) const TIME_TZ_BYTES: i32 = 12;

/// Bytes of an address, ordered as addresses are: its network, then the whole of it.
pub(crate) const INET_BYTES: i32 = 34;
/// Bytes of a network.
pub(crate) const CIDR_BYTES: i32 = 18;
/// Bytes of the address of a network card.
pub(crate) const MAC_ADDRESS_BYTES: i32 = 6;

/// Ends the note of a field with arrays.
const ARRAY: &str = "[]";

/// What marks a field that is shown as a vector.
const VECTOR: &str = "vector";

/// The type of a column of an answer, as clients are told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A type that columns of tables can have.
    Stored(DataType),
    /// One byte of the system's catalogue, PostgreSQL's `"char"`.
    Char,
    /// An array of values of a type. Its values are texts, as [`write_array`](crate::write_array)
    /// makes them.
    Array(DataType),
    /// Numbers of the system's catalogue, PostgreSQL's `int2vector` and `oidvector`: an array, which is shown with
    /// blanks between its values. Inside a query it is an array like any other.
    Vector(DataType),
}

impl From<DataType> for ColumnType {
    fn from(data_type: DataType) -> ColumnType {
        match data_type {
            DataType::Array(element) => ColumnType::Array(*element),
            other => ColumnType::Stored(other),
        }
    }
}

impl ColumnType {
    /// The type of a column of a table that holds such values; none where no column does.
    #[must_use]
    pub fn in_table(self) -> Option<DataType> {
        match self {
            ColumnType::Stored(data_type) => Some(data_type),
            ColumnType::Array(element) => element.array(),
            ColumnType::Char | ColumnType::Vector(_) => None,
        }
    }
}

/// The Arrow type of a column's values.
pub(crate) fn arrow_type(column_type: ColumnType) -> ArrowType {
    let data_type = match column_type {
        ColumnType::Char => return ArrowType::Utf8,
        ColumnType::Stored(DataType::Array(&element))
        | ColumnType::Array(element)
        | ColumnType::Vector(element) => {
            let element = arrow_type(ColumnType::Stored(element));
            return ArrowType::List(Arc::new(Field::new_list_field(element, true)));
        }
        ColumnType::Stored(data_type) => data_type,
    };
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        // A number without a sign has space there.
        DataType::Int64 | DataType::Oid => ArrowType::Int64,
        DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::Decimal { precision, scale } => {
            ArrowType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
        }
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Json
        | DataType::Jsonb
        | DataType::Composite(_) => ArrowType::Utf8,
        DataType::Bytes => ArrowType::Binary,
        DataType::Numeric(_) => numeric::ANY,
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
        // Ordered as the times are.
        DataType::TimeTz => ArrowType::FixedSizeBinary(TIME_TZ_BYTES),
        DataType::Inet => ArrowType::FixedSizeBinary(INET_BYTES),
        DataType::Cidr => ArrowType::FixedSizeBinary(CIDR_BYTES),
        DataType::MacAddress => ArrowType::FixedSizeBinary(MAC_ADDRESS_BYTES),
        DataType::Enum(_) => ArrowType::FixedSizeBinary(ENUM_BYTES),
        DataType::Array(&element) => arrow_type(ColumnType::Array(element)),
        DataType::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
        DataType::Rounded(clock, _) => arrow_type(ColumnType::Stored(clock.data_type())),
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(Arc::from(UTC))),
    }
}

/// A field for a column.
pub(crate) fn field(name: &str, column_type: ColumnType, is_nullable: bool) -> Field {
    let field = Field::new(name, arrow_type(column_type), is_nullable);
    let note = match column_type {
        ColumnType::Stored(DataType::Enum(of)) => of.note(),
        ColumnType::Array(DataType::Enum(of)) => format!("{}{ARRAY}", of.note()),
        ColumnType::Stored(DataType::Composite(of)) => of.note(),
        ColumnType::Array(DataType::Composite(of)) => format!("{}{ARRAY}", of.note()),
        ColumnType::Array(
            element @ (DataType::Name | DataType::Json | DataType::Jsonb | DataType::Oid),
        ) => format!("{element}{ARRAY}"),
        ColumnType::Stored(
            data_type @ (DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Json
            | DataType::Jsonb
            | DataType::Name
            | DataType::Oid
            | DataType::Rounded(..)
            | DataType::Numeric(Some(_))),
        ) => data_type.to_string(),
        ColumnType::Stored(_) | ColumnType::Array(_) => return field,
        ColumnType::Char => "\"char\"".to_owned(),
        ColumnType::Vector(_) => VECTOR.to_owned(),
    };
    field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), note)]))
}

/// What a field of an answer is, as clients are told it.
pub(crate) fn answer_type(field: &Field) -> ColumnType {
    let is_vector = field.metadata().get(TYPE_KEY).is_some_and(|note| note == VECTOR);
    match column_type(field) {
        ColumnType::Array(element) if is_vector => ColumnType::Vector(element),
        other => other,
    }
}

/// What a field is inside a query. Types that no column can have go out as text.
pub(crate) fn column_type(field: &Field) -> ColumnType {
    match field.metadata().get(TYPE_KEY).map(String::as_str) {
        Some("\"char\"") if *field.data_type() == ArrowType::Utf8 => return ColumnType::Char,
        Some(note) if matches!(field.data_type(), ArrowType::Decimal128(..) | &numeric::ANY) => {
            if let Ok(data_type @ DataType::Numeric(_)) = note.parse::<DataType>() {
                return ColumnType::Stored(data_type);
            }
        }
        Some(note) => {
            let noted = match note.strip_suffix(ARRAY) {
                Some(element) => element.parse().map(ColumnType::Array),
                None => note.parse().map(ColumnType::Stored),
            };
            if let Ok(noted) = noted
                && arrow_type(noted) == *field.data_type()
            {
                return noted;
            }
        }
        None => {}
    }
    match field.data_type() {
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::FixedSizeList(element, _)
            if !element.data_type().is_nested() =>
        {
            ColumnType::Array(plain_type(element.data_type()))
        }
        other => ColumnType::Stored(plain_type(other)),
    }
}

/// The type of a column that holds values of an Arrow type.
pub(crate) fn plain_type(arrow: &ArrowType) -> DataType {
    match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::Int16,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Int32,
        ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => DataType::Int64,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => decimal(*precision, *scale),
        ArrowType::LargeBinary => DataType::Numeric(None),
        ArrowType::Binary | ArrowType::BinaryView => DataType::Bytes,
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        ArrowType::FixedSizeBinary(TIME_TZ_BYTES) => DataType::TimeTz,
        ArrowType::FixedSizeBinary(INET_BYTES) => DataType::Inet,
        ArrowType::FixedSizeBinary(CIDR_BYTES) => DataType::Cidr,
        ArrowType::FixedSizeBinary(MAC_ADDRESS_BYTES) => DataType::MacAddress,
        ArrowType::FixedSizeBinary(ENUM_BYTES) => DataType::Enum(any_enum()),
        ArrowType::FixedSizeBinary(_) => DataType::Bytes,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Interval(_) | ArrowType::Duration(_) => DataType::Interval,
        ArrowType::Dictionary(_, values) => plain_type(values),
        _ => DataType::Text,
    }
}

/// The type of a column that holds all of a decimal.
fn decimal(precision: u8, scale: i8) -> DataType {
    match DataType::numeric(u16::from(precision), i16::from(scale)) {
        decimal @ DataType::Decimal { .. } => decimal,
        _ => DataType::Numeric(None),
    }
}

/// The field of a column while a statement is read: DataFusion computes with decimals, and any `numeric` is one until
/// all types are known.
pub(crate) fn planned_field(name: &str, column_type: ColumnType, is_nullable: bool) -> Field {
    let ColumnType::Stored(data_type @ DataType::Numeric(_)) = column_type else {
        return field(name, column_type, is_nullable);
    };
    let stand_in = Field::new(name, STAND_IN, is_nullable);
    match data_type {
        DataType::Numeric(None) => stand_in,
        limited => {
            stand_in.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), limited.to_string())]))
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush::{Clock, IntervalFields};

    use super::*;

    #[test]
    fn every_column_type_comes_back_from_its_field() {
        let stored = [
            DataType::Boolean,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::Float32,
            DataType::Float64,
            DataType::Decimal { precision: 28, scale: 4 },
            DataType::Char(7),
            DataType::Varchar(8000),
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
            DataType::Rounded(Clock::Timestamp, Some(3)),
            DataType::Rounded(Clock::Interval(IntervalFields::DayToHour), None),
            DataType::Numeric(None),
            DataType::Numeric(Some((210, 10))),
        ];
        let array = ColumnType::Array(DataType::Int32);
        let system = [ColumnType::Char, array, ColumnType::Array(DataType::Name)];
        for column in stored.into_iter().map(ColumnType::Stored).chain(system) {
            assert_eq!(column_type(&field("c", column, true)), column);
        }
    }
}
