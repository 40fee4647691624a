//! Rows as a Parquet file, each column with the Parquet type that means the same.
//!
//! | column | Parquet |
//! |---|---|
//! | boolean, real, double | boolean, float, double |
//! | smallint, integer, bigint | int32 (signed 16 bits), int32, int64 |
//! | decimal(p,s) | decimal on int64 up to 18 digits, else on 12 bytes |
//! | char, varchar, text | string; `char` without its trailing blanks |
//! | bytes | byte array |
//! | uuid | 16 bytes, uuid |
//! | date | int32, date |
//! | time, timestamp, timestamptz | int64 in microseconds; only timestamptz is adjusted to UTC |

use std::io::Write;
use std::sync::Arc;

use onrush::{ColumnDefinition, DataType, TableDefinition, Value};
use onrush_types::calendar::{is_infinite_date, is_infinite_timestamp};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type as physical;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::error::TransferError;
use crate::length_of;

/// Rows of a row group: they are held in memory.
const GROUP_ROWS: usize = 128 << 10;
/// A row group ends where its values take so many bytes.
const GROUP_BYTES: usize = 64 << 20;
/// Bytes of a decimal of more than 18 digits.
const WIDE_DECIMAL_BYTES: usize = 12;

/// Writes rows, a row group at a time.
pub struct ParquetRows<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    /// Of texts and bytes in them.
    bytes: usize,
}

/// The values of one column of a row group.
struct Column {
    data_type: DataType,
    nullable: bool,
    /// 1 for a value, 0 for NULL.
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl<W: Write + Send> ParquetRows<W> {
    /// For rows of a table.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(definition: &TableDefinition, out: W) -> Result<ParquetRows<W>, TransferError> {
        let fields = definition
            .columns()
            .iter()
            .map(|column| Ok(Arc::new(parquet_type(column)?)))
            .collect::<Result<Vec<_>, TransferError>>()?;
        let schema = Type::group_type_builder(definition.name()).with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("onrush {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(ParquetRows {
            file: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns: definition.columns().iter().map(Column::new).collect(),
            rows: 0,
            bytes: 0,
        })
    }

    /// Adds one row.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn row(&mut self, row: &[Value<'_>]) -> Result<(), TransferError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value)?;
            self.bytes += length_of(value);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.write_group()
        } else {
            Ok(())
        }
    }

    /// Writes what is left and the footer.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<(), TransferError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.finish()?;
        Ok(self.file.inner_mut().flush()?)
    }

    fn write_group(&mut self) -> Result<(), TransferError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(TransferError::Parquet("a column is missing from the schema".into()));
            };
            column.write(&mut writer)?;
            writer.close()?;
            column.clear();
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl Column {
    fn new(column: &ColumnDefinition) -> Column {
        let values = match physical_type(column.data_type) {
            PhysicalType::BOOLEAN => Values::Boolean(Vec::new()),
            PhysicalType::INT32 => Values::Int32(Vec::new()),
            PhysicalType::FLOAT => Values::Float(Vec::new()),
            PhysicalType::DOUBLE => Values::Double(Vec::new()),
            PhysicalType::BYTE_ARRAY => Values::Bytes(Vec::new()),
            PhysicalType::FIXED_LEN_BYTE_ARRAY => Values::Fixed(Vec::new()),
            PhysicalType::INT64 | PhysicalType::INT96 => Values::Int64(Vec::new()),
        };
        Column {
            data_type: column.data_type,
            nullable: column.nullable,
            levels: Vec::new(),
            values,
        }
    }

    fn push(&mut self, value: &Value<'_>) -> Result<(), TransferError> {
        self.levels.push(i16::from(!value.is_null()));
        match (&mut self.values, value) {
            (_, Value::Null) => {}
            (_, Value::Date(days)) if is_infinite_date(*days) => return Err(infinite(value)),
            (_, Value::Timestamp(micros) | Value::TimestampTz(micros))
                if is_infinite_timestamp(*micros) =>
            {
                return Err(infinite(value));
            }
            (Values::Boolean(values), Value::Boolean(value)) => values.push(*value),
            (Values::Int32(values), Value::Int16(value)) => values.push(i32::from(*value)),
            (Values::Int32(values), Value::Int32(value) | Value::Date(value)) => {
                values.push(*value)
            }
            (
                Values::Int64(values),
                Value::Int64(value)
                | Value::Time(value)
                | Value::Timestamp(value)
                | Value::TimestampTz(value),
            ) => values.push(*value),
            (Values::Float(values), Value::Float32(value)) => values.push(*value),
            (Values::Double(values), Value::Float64(value)) => values.push(*value),
            (Values::Bytes(values), Value::Text(text)) => {
                let is_char = crate::export::is_char(self.data_type);
                let text = if is_char { text.trim_end_matches(' ') } else { text };
                values.push(ByteArray::from(text.as_bytes().to_vec()));
            }
            (
                Values::Bytes(values),
                Value::Interval(_)
                | Value::TimeTz(_)
                | Value::Inet(_)
                | Value::Cidr(_)
                | Value::MacAddress(_),
            ) => {
                values.push(ByteArray::from(value.to_string().as_str()));
            }
            (Values::Bytes(values), Value::Bytes(bytes)) => {
                values.push(ByteArray::from(bytes.to_vec()));
            }
            (Values::Fixed(values), Value::Uuid(uuid)) => {
                values.push(ByteArray::from(uuid.as_bytes().to_vec()).into());
            }
            (values, Value::Decimal(_)) => push_decimal(values, self.data_type, value)?,
            (_, other) => {
                return Err(TransferError::Parquet(format!(
                    "a {} value in a column of type {}",
                    other.kind(),
                    self.data_type
                )));
            }
        }
        Ok(())
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), TransferError> {
        let levels = self.nullable.then_some(self.levels.as_slice());
        match &self.values {
            Values::Boolean(values) => {
                writer.typed::<physical::BoolType>().write_batch(values, levels, None)
            }
            Values::Int32(values) => {
                writer.typed::<physical::Int32Type>().write_batch(values, levels, None)
            }
            Values::Int64(values) => {
                writer.typed::<physical::Int64Type>().write_batch(values, levels, None)
            }
            Values::Float(values) => {
                writer.typed::<physical::FloatType>().write_batch(values, levels, None)
            }
            Values::Double(values) => {
                writer.typed::<physical::DoubleType>().write_batch(values, levels, None)
            }
            Values::Bytes(values) => {
                writer.typed::<physical::ByteArrayType>().write_batch(values, levels, None)
            }
            Values::Fixed(values) => {
                writer.typed::<physical::FixedLenByteArrayType>().write_batch(values, levels, None)
            }
        }?;
        Ok(())
    }

    fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            Values::Boolean(values) => values.clear(),
            Values::Int32(values) => values.clear(),
            Values::Int64(values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Double(values) => values.clear(),
            Values::Bytes(values) => values.clear(),
            Values::Fixed(values) => values.clear(),
        }
    }
}

fn push_decimal(
    values: &mut Values,
    data_type: DataType,
    value: &Value<'_>,
) -> Result<(), TransferError> {
    let (Value::Decimal(decimal), DataType::Decimal { scale, .. }) = (value, data_type) else {
        return Err(TransferError::Parquet(format!("a decimal in a column of type {data_type}")));
    };
    let mut decimal = *decimal;
    decimal.rescale(u32::from(scale));
    let number = decimal.mantissa();
    match values {
        Values::Int64(values) => {
            values.push(i64::try_from(number).map_err(|_| {
                TransferError::Parquet(format!("{decimal} has more than 18 digits"))
            })?)
        }
        Values::Fixed(values) => {
            let bytes = number.to_be_bytes();
            let narrow = bytes[bytes.len() - WIDE_DECIMAL_BYTES..].to_vec();
            values.push(ByteArray::from(narrow).into());
        }
        _ => return Err(TransferError::Parquet("a decimal in a column of another type".into())),
    }
    Ok(())
}

fn physical_type(data_type: DataType) -> PhysicalType {
    match data_type {
        DataType::Rounded(clock, _) => physical_type(clock.data_type()),
        DataType::Boolean => PhysicalType::BOOLEAN,
        DataType::Int16 | DataType::Int32 | DataType::Date => PhysicalType::INT32,
        DataType::Int64
        | DataType::Oid
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz => PhysicalType::INT64,
        DataType::Float32 => PhysicalType::FLOAT,
        DataType::Float64 => PhysicalType::DOUBLE,
        DataType::Decimal { precision, .. } if precision <= 18 => PhysicalType::INT64,
        DataType::Decimal { .. } | DataType::Uuid => PhysicalType::FIXED_LEN_BYTE_ARRAY,
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Bytes
        | DataType::Json
        | DataType::Jsonb
        | DataType::TimeTz
        | DataType::Inet
        | DataType::Cidr
        | DataType::MacAddress
        | DataType::Enum(_)
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Interval
        | DataType::Numeric(_) => PhysicalType::BYTE_ARRAY,
    }
}

fn logical_type(data_type: DataType) -> Option<LogicalType> {
    let is_utc = data_type == DataType::TimestampTz;
    let unit = TimeUnit::MICROS;
    Some(match data_type {
        DataType::Rounded(clock, _) => return logical_type(clock.data_type()),
        DataType::Boolean | DataType::Float32 | DataType::Float64 | DataType::Bytes => return None,
        DataType::Int16 => LogicalType::integer(16, true),
        DataType::Int32 => LogicalType::integer(32, true),
        DataType::Int64 | DataType::Oid => LogicalType::integer(64, true),
        DataType::Decimal { precision, scale } => {
            LogicalType::decimal(i32::from(scale), i32::from(precision))
        }
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Numeric(_) => LogicalType::String,
        DataType::Enum(_) => LogicalType::Enum,
        DataType::Array(_) | DataType::Composite(_) => LogicalType::String,
        // Parquet's own interval counts milliseconds without a sign.
        DataType::Interval
        | DataType::TimeTz
        | DataType::Inet
        | DataType::Cidr
        | DataType::MacAddress => LogicalType::String,
        DataType::Json | DataType::Jsonb => LogicalType::Json,
        DataType::Uuid => LogicalType::Uuid,
        DataType::Date => LogicalType::Date,
        DataType::Time => LogicalType::time(false, unit),
        DataType::Timestamp | DataType::TimestampTz => LogicalType::timestamp(is_utc, unit),
    })
}

/// Whoever read the file would take it for a day of some far year.
#[cold]
fn infinite(value: &Value<'_>) -> TransferError {
    TransferError::Parquet(format!("Parquet has no date or timestamp {value}"))
}

fn parquet_type(column: &ColumnDefinition) -> Result<Type, TransferError> {
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let length = match column.data_type {
        DataType::Uuid => 16,
        DataType::Decimal { precision, .. } if precision > 18 => 12,
        _ => -1, // not of fixed length
    };
    let mut builder = Type::primitive_type_builder(&column.name, physical_type(column.data_type))
        .with_repetition(repetition)
        .with_logical_type(logical_type(column.data_type))
        .with_length(length);
    if let DataType::Decimal { precision, scale } = column.data_type {
        builder = builder.with_precision(i32::from(precision)).with_scale(i32::from(scale));
    }
    Ok(builder.build()?)
}
