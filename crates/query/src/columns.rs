//! Rows into columns: each value of a row goes straight into the builder of its column.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, IntervalMonthDayNanoBuilder, LargeBinaryBuilder, ListArray, StringBuilder,
    Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, Field};
use datafusion::arrow::error::ArrowError;
use onrush::{DataType, EnumType, RowView, StoredBytes, Value};

use crate::array::read_array;
use crate::enumeration::{self, ENUM_BYTES};
use crate::error::QueryError;
use crate::functions::decimal;
use crate::interval::to_arrow;
use crate::text::read_text;
use crate::types::{
    CIDR_BYTES, ColumnType, INET_BYTES, MAC_ADDRESS_BYTES, TIME_TZ_BYTES, UTC, arrow_type,
};

/// One column in the making.
pub(crate) enum ColumnBuilder {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    /// With the digits after the point.
    Decimal(Decimal128Builder, u32),
    Text(StringBuilder),
    /// Without the blanks at the end, which do not count.
    Char(StringBuilder),
    Bytes(BinaryBuilder),
    Numeric(LargeBinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Array(ArrayColumn),
    Interval(IntervalMonthDayNanoBuilder),
    TimeTz(FixedSizeBinaryBuilder),
    Inet(FixedSizeBinaryBuilder),
    Cidr(FixedSizeBinaryBuilder),
    MacAddress(FixedSizeBinaryBuilder),
    Enum(FixedSizeBinaryBuilder, EnumType),
}

/// Arrays in the making: their elements in a row, and where each of them ends.
pub(crate) struct ArrayColumn {
    element: DataType,
    elements: Box<ColumnBuilder>,
    lengths: Vec<usize>,
    are_valid: Vec<bool>,
}

impl ArrayColumn {
    fn new(element: DataType, rows: usize) -> Result<ArrayColumn, ArrowError> {
        let elements = Box::new(ColumnBuilder::new(ColumnType::Stored(element), rows)?);
        Ok(ArrayColumn { element, elements, lengths: Vec::new(), are_valid: Vec::new() })
    }

    fn append_null(&mut self) {
        self.lengths.push(0);
        self.are_valid.push(false);
    }

    fn append(&mut self, written: &str) -> Result<(), ArrowError> {
        let external = |error| ArrowError::ExternalError(Box::new(error));
        let elements = read_array(written).map_err(external)?;
        self.lengths.push(elements.len());
        self.are_valid.push(true);
        for element in elements {
            let value = match &element {
                Some(written) => read_text(self.element, written).map_err(external)?,
                None => Value::Null,
            };
            self.elements.append(&value)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let element = arrow_type(ColumnType::Stored(self.element));
        let lengths = std::mem::take(&mut self.lengths);
        Arc::new(ListArray::new(
            Arc::new(Field::new_list_field(element, true)),
            OffsetBuffer::from_lengths(lengths),
            self.elements.finish(),
            Some(NullBuffer::from(std::mem::take(&mut self.are_valid))),
        ))
    }
}

impl ColumnBuilder {
    /// For `rows` values of a column.
    pub(crate) fn new(column_type: ColumnType, rows: usize) -> Result<ColumnBuilder, ArrowError> {
        let text = || StringBuilder::with_capacity(rows, rows * 16);
        let data_type = match column_type {
            ColumnType::Stored(data_type) => data_type,
            ColumnType::Char => DataType::Text,
            ColumnType::Array(element) | ColumnType::Vector(element) => {
                return Ok(ColumnBuilder::Array(ArrayColumn::new(element, rows)?));
            }
        };
        Ok(match data_type {
            DataType::Rounded(clock, _) => {
                return ColumnBuilder::new(clock.data_type().into(), rows);
            }
            DataType::Boolean => ColumnBuilder::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::Int16 => ColumnBuilder::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => ColumnBuilder::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 | DataType::Oid => {
                ColumnBuilder::Int64(Int64Builder::with_capacity(rows))
            }
            DataType::Float32 => ColumnBuilder::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => ColumnBuilder::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal { precision, scale } => {
                let builder = Decimal128Builder::with_capacity(rows)
                    .with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(i8::MAX))?;
                ColumnBuilder::Decimal(builder, u32::from(scale))
            }
            DataType::Char(_) => ColumnBuilder::Char(text()),
            DataType::Varchar(_)
            | DataType::Text
            | DataType::Name
            | DataType::Json
            | DataType::Jsonb
            | DataType::Composite(_) => ColumnBuilder::Text(text()),
            DataType::Bytes => ColumnBuilder::Bytes(BinaryBuilder::with_capacity(rows, rows * 16)),
            DataType::Numeric(_) => {
                ColumnBuilder::Numeric(LargeBinaryBuilder::with_capacity(rows, rows * 12))
            }
            DataType::Uuid => ColumnBuilder::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
            DataType::TimeTz => {
                ColumnBuilder::TimeTz(FixedSizeBinaryBuilder::with_capacity(rows, TIME_TZ_BYTES))
            }
            DataType::Inet => {
                ColumnBuilder::Inet(FixedSizeBinaryBuilder::with_capacity(rows, INET_BYTES))
            }
            DataType::Cidr => {
                ColumnBuilder::Cidr(FixedSizeBinaryBuilder::with_capacity(rows, CIDR_BYTES))
            }
            DataType::MacAddress => {
                let builder = FixedSizeBinaryBuilder::with_capacity(rows, MAC_ADDRESS_BYTES);
                ColumnBuilder::MacAddress(builder)
            }
            DataType::Array(&element) => ColumnBuilder::Array(ArrayColumn::new(element, rows)?),
            DataType::Enum(of) => {
                ColumnBuilder::Enum(FixedSizeBinaryBuilder::with_capacity(rows, ENUM_BYTES), of)
            }
            DataType::Interval => {
                ColumnBuilder::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows))
            }
            DataType::Date => ColumnBuilder::Date(Date32Builder::with_capacity(rows)),
            DataType::Time => ColumnBuilder::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            DataType::Timestamp => {
                ColumnBuilder::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows))
            }
            DataType::TimestampTz => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone(UTC);
                ColumnBuilder::Timestamp(builder)
            }
        })
    }

    /// Appends a value of the column's type, or NULL.
    pub(crate) fn append(&mut self, value: &Value<'_>) -> Result<(), ArrowError> {
        match (self, value) {
            (ColumnBuilder::Boolean(to), Value::Boolean(value)) => to.append_value(*value),
            (ColumnBuilder::Int16(to), Value::Int16(value)) => to.append_value(*value),
            (ColumnBuilder::Int32(to), Value::Int32(value)) => to.append_value(*value),
            (ColumnBuilder::Int64(to), Value::Int64(value)) => to.append_value(*value),
            (ColumnBuilder::Float32(to), Value::Float32(value)) => to.append_value(*value),
            (ColumnBuilder::Float64(to), Value::Float64(value)) => to.append_value(*value),
            (ColumnBuilder::Decimal(to, scale), Value::Decimal(value)) => {
                to.append_value(scaled(value, *scale));
            }
            (ColumnBuilder::Decimal(to, scale), Value::Numeric(value)) => {
                let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
                let value = decimal(value.clone(), DECIMAL128_MAX_PRECISION, scale);
                to.append_value(value.map_err(|error| ArrowError::ExternalError(Box::new(error)))?);
            }
            (ColumnBuilder::Numeric(to), value) if let Some(number) = value.as_numeric() => {
                to.append_value(number.to_bytes());
            }
            (ColumnBuilder::Text(to), Value::Text(text)) => to.append_value(text),
            (ColumnBuilder::Char(to), Value::Text(text)) => {
                to.append_value(text.trim_end_matches(' '));
            }
            (ColumnBuilder::Bytes(to), Value::Bytes(bytes)) => to.append_value(bytes),
            (ColumnBuilder::Uuid(to), Value::Uuid(uuid)) => to.append_value(uuid.as_bytes())?,
            (ColumnBuilder::Date(to), Value::Date(days)) => to.append_value(*days),
            (ColumnBuilder::Time(to), Value::Time(micros)) => to.append_value(*micros),
            (
                ColumnBuilder::Timestamp(to),
                Value::Timestamp(micros) | Value::TimestampTz(micros),
            ) => to.append_value(*micros),
            (ColumnBuilder::Array(to), Value::Text(written)) => to.append(written)?,
            (ColumnBuilder::TimeTz(to), Value::TimeTz(time)) => {
                to.append_value(time.to_ordered_bytes())?;
            }
            (ColumnBuilder::Inet(to), Value::Inet(address) | Value::Cidr(address)) => {
                to.append_value(address.to_ordered_bytes())?;
            }
            (ColumnBuilder::Cidr(to), Value::Cidr(network)) => {
                to.append_value(network.to_bytes())?;
            }
            (ColumnBuilder::MacAddress(to), Value::MacAddress(address)) => {
                to.append_value(address.0)?;
            }
            (ColumnBuilder::Interval(to), Value::Interval(interval)) => {
                let fits = to_arrow(*interval);
                to.append_value(fits.map_err(|error| ArrowError::ExternalError(Box::new(error)))?);
            }
            (ColumnBuilder::Enum(to, of), Value::Text(label)) => {
                let value = enumeration::to_bytes(*of, label).ok_or_else(|| {
                    ArrowError::SchemaError(format!("{label:?} is no label of {}", of.name()))
                })?;
                to.append_value(value)?;
            }
            (to, Value::Null) => to.append_null(),
            (_, other) => {
                let message = format!("a column has a value of another type: {other:?}");
                return Err(ArrowError::SchemaError(message));
            }
        }
        Ok(())
    }

    /// Appends a column of a stored row. Numbers go from the row's bytes into the array: a [`Value`] on
    /// the way costs more than all the rest of a scan.
    pub(crate) fn append_column(
        &mut self,
        row: &RowView<'_>,
        column: usize,
    ) -> Result<(), QueryError> {
        match (&mut *self, row.stored_bytes(column)) {
            (to, StoredBytes::Null) => to.append_null(),
            (ColumnBuilder::Int16(to), StoredBytes::Here(&[a, b])) => {
                to.append_value(i16::from_le_bytes([a, b]));
            }
            (ColumnBuilder::Int32(to), StoredBytes::Here(&[a, b, c, d])) => {
                to.append_value(i32::from_le_bytes([a, b, c, d]));
            }
            (ColumnBuilder::Int64(to), StoredBytes::Here(&[a, b, c, d, e, f, g, h])) => {
                to.append_value(i64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            (ColumnBuilder::Float64(to), StoredBytes::Here(&[a, b, c, d, e, f, g, h])) => {
                to.append_value(f64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            (ColumnBuilder::Timestamp(to), StoredBytes::Here(&[a, b, c, d, e, f, g, h])) => {
                to.append_value(i64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            (ColumnBuilder::Numeric(to), StoredBytes::Here(bytes)) => to.append_value(bytes),
            (to, _) => to.append(&row.column(column).map_err(onrush::Error::from)?)?,
        }
        Ok(())
    }

    fn append_null(&mut self) {
        match self {
            ColumnBuilder::Boolean(to) => to.append_null(),
            ColumnBuilder::Int16(to) => to.append_null(),
            ColumnBuilder::Int32(to) => to.append_null(),
            ColumnBuilder::Int64(to) => to.append_null(),
            ColumnBuilder::Float32(to) => to.append_null(),
            ColumnBuilder::Float64(to) => to.append_null(),
            ColumnBuilder::Decimal(to, _) => to.append_null(),
            ColumnBuilder::Text(to) | ColumnBuilder::Char(to) => to.append_null(),
            ColumnBuilder::Bytes(to) => to.append_null(),
            ColumnBuilder::Numeric(to) => to.append_null(),
            ColumnBuilder::Uuid(to) => to.append_null(),
            ColumnBuilder::Date(to) => to.append_null(),
            ColumnBuilder::Time(to) => to.append_null(),
            ColumnBuilder::Timestamp(to) => to.append_null(),
            ColumnBuilder::Array(to) => to.append_null(),
            ColumnBuilder::Interval(to) => to.append_null(),
            ColumnBuilder::TimeTz(to)
            | ColumnBuilder::Inet(to)
            | ColumnBuilder::Cidr(to)
            | ColumnBuilder::MacAddress(to)
            | ColumnBuilder::Enum(to, _) => to.append_null(),
        }
    }

    /// The values so far, as an array; the builder is empty afterwards.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Boolean(from) => Arc::new(from.finish()),
            ColumnBuilder::Int16(from) => Arc::new(from.finish()),
            ColumnBuilder::Int32(from) => Arc::new(from.finish()),
            ColumnBuilder::Int64(from) => Arc::new(from.finish()),
            ColumnBuilder::Float32(from) => Arc::new(from.finish()),
            ColumnBuilder::Float64(from) => Arc::new(from.finish()),
            ColumnBuilder::Decimal(from, _) => Arc::new(from.finish()),
            ColumnBuilder::Text(from) | ColumnBuilder::Char(from) => Arc::new(from.finish()),
            ColumnBuilder::Bytes(from) => Arc::new(from.finish()),
            ColumnBuilder::Numeric(from) => Arc::new(from.finish()),
            ColumnBuilder::Uuid(from) => Arc::new(from.finish()),
            ColumnBuilder::Date(from) => Arc::new(from.finish()),
            ColumnBuilder::Time(from) => Arc::new(from.finish()),
            ColumnBuilder::Timestamp(from) => Arc::new(from.finish()),
            ColumnBuilder::Array(from) => from.finish(),
            ColumnBuilder::Interval(from) => Arc::new(from.finish()),
            ColumnBuilder::TimeTz(from)
            | ColumnBuilder::Inet(from)
            | ColumnBuilder::Cidr(from)
            | ColumnBuilder::MacAddress(from)
            | ColumnBuilder::Enum(from, _) => Arc::new(from.finish()),
        }
    }
}

/// A decimal as a whole number of units of its last digit.
fn scaled(value: &onrush::Decimal, scale: u32) -> i128 {
    let (own, mantissa) = (value.scale(), value.mantissa());
    if own <= scale {
        mantissa * 10i128.pow(scale - own)
    } else {
        mantissa / 10i128.pow(own - scale)
    }
}
