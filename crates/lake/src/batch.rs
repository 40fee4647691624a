//! Rows become Arrow batches with the field ids of the Iceberg table.
//!
//! A batch takes values in the order of the node's columns, and with each row's end its LSN and
//! its time. Columns that only the Iceberg table has are NULL. A value of the wrong kind is refused
//! and not taken, so whoever went wrong may still give the right one.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, FixedSizeBinaryBuilder, Float32Builder,
    Float64Builder, Int32Builder, Int64Builder, LargeBinaryBuilder, StringBuilder,
    Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef as ArrowSchemaRef;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::Schema;
use onrush_types::calendar::{is_infinite_date, is_infinite_timestamp};

use crate::columns::{LakeColumn, LakeKind, added_columns, check_table};
use crate::error::LakeError;
use crate::mark::NodeId;

/// Iceberg's times of day end before midnight.
const DAY_MICROS: i64 = 86_400_000_000;
/// What a 32-bit offset of a text column can still reach.
const TEXT_BYTES_MAX: usize = i32::MAX as usize;

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LakeValue<'a> {
    /// No value.
    Null,
    /// For [`LakeKind::Boolean`].
    Boolean(bool),
    /// For [`LakeKind::Int32`].
    Int32(i32),
    /// For [`LakeKind::Int64`].
    Int64(i64),
    /// For [`LakeKind::Float32`].
    Float32(f32),
    /// For [`LakeKind::Float64`].
    Float64(f64),
    /// For [`LakeKind::Decimal`]: the digits without the point, at the column's scale.
    Decimal(i128),
    /// For [`LakeKind::Text`].
    Text(&'a str),
    /// For [`LakeKind::Bytes`].
    Bytes(&'a [u8]),
    /// For [`LakeKind::Uuid`].
    Uuid([u8; 16]),
    /// For [`LakeKind::Date`]: days since 1970-01-01; the lowest and the highest number are infinite.
    Date(i32),
    /// For [`LakeKind::TimeMicros`]: since midnight.
    TimeMicros(i64),
    /// For [`LakeKind::TimestampMicros`]: since 1970-01-01 00:00; infinite as a date is.
    TimestampMicros(i64),
    /// For [`LakeKind::TimestamptzMicros`]: since 1970-01-01 00:00 UTC; infinite as a date is.
    TimestamptzMicros(i64),
}

/// Collects rows of one node for one table.
pub struct BatchBuilder {
    node: NodeId,
    columns: Vec<Column>,
    /// Of the node's own columns; the three added stand behind.
    own: usize,
    /// The own column whose value comes next.
    next: usize,
    rows: usize,
    bytes: usize,
    schema: ArrowSchemaRef,
    /// For each field of the Iceberg table the column that fills it.
    sources: Vec<Option<usize>>,
}

/// The values of one column.
struct Column {
    name: String,
    kind: LakeKind,
    is_nullable: bool,
    values: Values,
}

enum Values {
    Boolean(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    /// With the first number that has too many digits.
    Decimal(Decimal128Builder, u128),
    Text(StringBuilder),
    Bytes(LargeBinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Timestamptz(TimestampMicrosecondBuilder),
}

impl BatchBuilder {
    /// For rows of these columns into a table of this schema.
    ///
    /// # Errors
    /// The table does not fit: [`LakeError::TableMismatch`].
    pub fn new(
        table: &Schema,
        columns: &[LakeColumn],
        node: NodeId,
    ) -> Result<BatchBuilder, LakeError> {
        check_table(table, columns)?;
        let schema = schema_to_arrow_schema(table).map_err(|cause| {
            LakeError::Internal(format!("cannot make the Arrow schema: {cause}"))
        })?;
        let all: Vec<Column> =
            columns.iter().chain(&added_columns()).map(Column::new).collect::<Result<_, _>>()?;
        let source_of = |name: &str| all.iter().position(|column| column.name == name);
        let sources = schema.fields().iter().map(|field| source_of(field.name())).collect();
        Ok(BatchBuilder {
            node,
            own: columns.len(),
            columns: all,
            next: 0,
            rows: 0,
            bytes: 0,
            schema: Arc::new(schema),
            sources,
        })
    }

    /// Takes the value of the row's next column.
    ///
    /// # Errors
    /// [`LakeError::Row`]: the value is of another kind, NULL where none may be, or out of range.
    /// It was not taken.
    pub fn push(&mut self, value: LakeValue<'_>) -> Result<(), LakeError> {
        if self.next == self.own {
            return Err(LakeError::Row(format!("more than {} values in a row", self.own)));
        }
        self.push_to(self.next, value)?;
        self.next += 1;
        Ok(())
    }

    /// Ends the row whose values were pushed; `at` is in microseconds since 1970-01-01 00:00 UTC.
    ///
    /// # Errors
    /// [`LakeError::Row`]: values are missing, or Iceberg cannot hold the LSN. The row is still
    /// open.
    pub fn end_row(&mut self, lsn: u64, at: i64) -> Result<(), LakeError> {
        if self.next != self.own {
            let missing = self.columns.get(self.next).map_or("", |column| column.name.as_str());
            return Err(LakeError::Row(format!("the row ends without a value for {missing}")));
        }
        let signed = |what: &str| LakeError::Row(format!("{what} is beyond what Iceberg can hold"));
        let lsn_signed = i64::try_from(lsn).map_err(|_| signed(&format!("LSN {lsn}")))?;
        let node =
            i32::try_from(self.node.0).map_err(|_| signed(&format!("node {}", self.node)))?;
        self.push_to(self.own, LakeValue::Int32(node))?;
        self.push_to(self.own + 1, LakeValue::Int64(lsn_signed))?;
        self.push_to(self.own + 2, LakeValue::TimestamptzMicros(at))?;
        self.next = 0;
        self.rows += 1;
        Ok(())
    }

    /// Takes a whole row.
    ///
    /// # Errors
    /// As [`BatchBuilder::push`] and [`BatchBuilder::end_row`]; the batch is of no use then.
    pub fn row(&mut self, values: &[LakeValue<'_>], lsn: u64, at: i64) -> Result<(), LakeError> {
        for value in values {
            self.push(*value)?;
        }
        self.end_row(lsn, at)
    }

    /// Rows that were ended since the last batch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// About what their values take in memory: for whoever cuts batches by size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows so far as a batch; the builder starts anew.
    ///
    /// # Errors
    /// A row is still open, or Arrow refuses the batch.
    pub fn finish(&mut self) -> Result<RecordBatch, LakeError> {
        if self.next != 0 {
            return Err(LakeError::Row("a batch ends within a row".to_owned()));
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut filled: Vec<Option<ArrayRef>> =
            self.columns.iter_mut().map(|column| Some(column.values.finish())).collect();
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (source, field) in self.sources.iter().zip(self.schema.fields()) {
            let array = match source {
                Some(place) => filled.get_mut(*place).and_then(Option::take),
                None => Some(new_null_array(field.data_type(), rows)),
            };
            arrays.push(array.ok_or_else(|| {
                LakeError::Internal(format!("two fields of the table are named {}", field.name()))
            })?);
        }
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|cause| LakeError::Internal(format!("cannot make an Arrow batch: {cause}")))
    }

    fn push_to(&mut self, place: usize, value: LakeValue<'_>) -> Result<(), LakeError> {
        let Some(column) = self.columns.get_mut(place) else {
            return Err(LakeError::Internal(format!("there is no column {place}")));
        };
        self.bytes += column.push(value)?;
        Ok(())
    }
}

impl Column {
    fn new(column: &LakeColumn) -> Result<Column, LakeError> {
        Ok(Column {
            name: column.name.clone(),
            kind: column.kind,
            is_nullable: column.is_nullable,
            values: Values::new(column.kind)?,
        })
    }

    /// Takes the value, and says about how many bytes it takes.
    fn push(&mut self, value: LakeValue<'_>) -> Result<usize, LakeError> {
        match (&mut self.values, value) {
            (_, LakeValue::Null) if !self.is_nullable => Err(self.refuse("NULL")),
            (values, LakeValue::Null) => {
                values.append_null();
                Ok(1)
            }
            (Values::Boolean(values), LakeValue::Boolean(value)) => {
                values.append_value(value);
                Ok(1)
            }
            (Values::Int32(values), LakeValue::Int32(value)) => {
                values.append_value(value);
                Ok(4)
            }
            (Values::Int64(values), LakeValue::Int64(value)) => {
                values.append_value(value);
                Ok(8)
            }
            (Values::Float32(values), LakeValue::Float32(value)) => {
                values.append_value(value);
                Ok(4)
            }
            (Values::Float64(values), LakeValue::Float64(value)) => {
                values.append_value(value);
                Ok(8)
            }
            (Values::Decimal(_, limit), LakeValue::Decimal(value))
                if value.unsigned_abs() >= *limit =>
            {
                Err(self.refuse(&format!("the decimal {value}, which has more digits")))
            }
            (Values::Decimal(values, _), LakeValue::Decimal(value)) => {
                values.append_value(value);
                Ok(16)
            }
            (Values::Text(values), LakeValue::Text(text)) => {
                if text.len() > TEXT_BYTES_MAX - values.values_slice().len() {
                    return Err(self.refuse("2 GiB of text in one batch; finish it earlier"));
                }
                values.append_value(text);
                Ok(text.len() + 4)
            }
            (Values::Bytes(values), LakeValue::Bytes(bytes)) => {
                values.append_value(bytes);
                Ok(bytes.len() + 8)
            }
            (Values::Uuid(values), LakeValue::Uuid(uuid)) => {
                values.append_value(uuid).map_err(|cause| {
                    LakeError::Internal(format!("16 bytes are refused as a uuid: {cause}"))
                })?;
                Ok(16)
            }
            (Values::Date(_), LakeValue::Date(days)) if is_infinite_date(days) => {
                Err(self.refuse("an infinite date, which Iceberg has not,"))
            }
            (Values::Timestamp(_), LakeValue::TimestampMicros(micros))
            | (Values::Timestamptz(_), LakeValue::TimestamptzMicros(micros))
                if is_infinite_timestamp(micros) =>
            {
                Err(self.refuse("an infinite time, which Iceberg has not,"))
            }
            (Values::Date(values), LakeValue::Date(days)) => {
                values.append_value(days);
                Ok(4)
            }
            (Values::Time(values), LakeValue::TimeMicros(micros)) => {
                if !(0..DAY_MICROS).contains(&micros) {
                    return Err(self.refuse(&format!("the time of {micros} us after midnight")));
                }
                values.append_value(micros);
                Ok(8)
            }
            (Values::Timestamp(values), LakeValue::TimestampMicros(micros))
            | (Values::Timestamptz(values), LakeValue::TimestamptzMicros(micros)) => {
                values.append_value(micros);
                Ok(8)
            }
            (_, other) => Err(self.refuse(&format!("a value of another kind, {other:?}"))),
        }
    }

    #[cold]
    fn refuse(&self, what: &str) -> LakeError {
        LakeError::Row(format!("column {} of kind {:?} cannot take {what}", self.name, self.kind))
    }
}

impl Values {
    fn new(kind: LakeKind) -> Result<Values, LakeError> {
        Ok(match kind {
            LakeKind::Boolean => Values::Boolean(BooleanBuilder::new()),
            LakeKind::Int32 => Values::Int32(Int32Builder::new()),
            LakeKind::Int64 => Values::Int64(Int64Builder::new()),
            LakeKind::Float32 => Values::Float32(Float32Builder::new()),
            LakeKind::Float64 => Values::Float64(Float64Builder::new()),
            LakeKind::Decimal { precision, scale } => {
                let refuse = |cause: &dyn std::fmt::Display| {
                    LakeError::Internal(format!("numeric({precision},{scale}): {cause}"))
                };
                let scale = i8::try_from(scale).map_err(|cause| refuse(&cause))?;
                let values = Decimal128Builder::new()
                    .with_precision_and_scale(precision, scale)
                    .map_err(|cause| refuse(&cause))?;
                let limit = 10u128.checked_pow(precision.into());
                Values::Decimal(values, limit.ok_or_else(|| refuse(&"too many digits"))?)
            }
            LakeKind::Text => Values::Text(StringBuilder::new()),
            LakeKind::Bytes => Values::Bytes(LargeBinaryBuilder::new()),
            LakeKind::Uuid => Values::Uuid(FixedSizeBinaryBuilder::new(16)),
            LakeKind::Date => Values::Date(Date32Builder::new()),
            LakeKind::TimeMicros => Values::Time(Time64MicrosecondBuilder::new()),
            LakeKind::TimestampMicros => Values::Timestamp(TimestampMicrosecondBuilder::new()),
            LakeKind::TimestamptzMicros => Values::Timestamptz(
                TimestampMicrosecondBuilder::new().with_timezone(iceberg::arrow::UTC_TIME_ZONE),
            ),
        })
    }

    fn append_null(&mut self) {
        match self {
            Values::Boolean(values) => values.append_null(),
            Values::Int32(values) => values.append_null(),
            Values::Int64(values) => values.append_null(),
            Values::Float32(values) => values.append_null(),
            Values::Float64(values) => values.append_null(),
            Values::Decimal(values, _) => values.append_null(),
            Values::Text(values) => values.append_null(),
            Values::Bytes(values) => values.append_null(),
            Values::Uuid(values) => values.append_null(),
            Values::Date(values) => values.append_null(),
            Values::Time(values) => values.append_null(),
            Values::Timestamp(values) | Values::Timestamptz(values) => values.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Values::Boolean(values) => Arc::new(values.finish()),
            Values::Int32(values) => Arc::new(values.finish()),
            Values::Int64(values) => Arc::new(values.finish()),
            Values::Float32(values) => Arc::new(values.finish()),
            Values::Float64(values) => Arc::new(values.finish()),
            Values::Decimal(values, _) => Arc::new(values.finish()),
            Values::Text(values) => Arc::new(values.finish()),
            Values::Bytes(values) => Arc::new(values.finish()),
            Values::Uuid(values) => Arc::new(values.finish()),
            Values::Date(values) => Arc::new(values.finish()),
            Values::Time(values) => Arc::new(values.finish()),
            Values::Timestamp(values) | Values::Timestamptz(values) => Arc::new(values.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::iceberg_schema;

    const KINDS: [LakeKind; 13] = [
        LakeKind::Boolean,
        LakeKind::Int32,
        LakeKind::Int64,
        LakeKind::Float32,
        LakeKind::Float64,
        LakeKind::Decimal { precision: 5, scale: 2 },
        LakeKind::Text,
        LakeKind::Bytes,
        LakeKind::Uuid,
        LakeKind::Date,
        LakeKind::TimeMicros,
        LakeKind::TimestampMicros,
        LakeKind::TimestamptzMicros,
    ];
    const VALUES: [LakeValue<'static>; 13] = [
        LakeValue::Boolean(true),
        LakeValue::Int32(i32::MIN),
        LakeValue::Int64(i64::MAX),
        LakeValue::Float32(f32::NAN),
        LakeValue::Float64(f64::NEG_INFINITY),
        LakeValue::Decimal(-99_999),
        LakeValue::Text("ä"),
        LakeValue::Bytes(&[0, 255]),
        LakeValue::Uuid([7; 16]),
        LakeValue::Date(-1),
        LakeValue::TimeMicros(DAY_MICROS - 1),
        LakeValue::TimestampMicros(i64::MIN + 1),
        LakeValue::TimestamptzMicros(i64::MAX - 1),
    ];

    fn columns(is_nullable: bool) -> Vec<LakeColumn> {
        let column = |(place, kind)| LakeColumn { name: format!("c{place}"), kind, is_nullable };
        KINDS.into_iter().enumerate().map(column).collect()
    }

    fn builder(columns: &[LakeColumn]) -> BatchBuilder {
        let schema = iceberg_schema(columns, &[]).unwrap();
        BatchBuilder::new(&schema, columns, NodeId(3)).unwrap()
    }

    #[test]
    fn each_column_takes_its_own_kind_alone() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            let column = LakeColumn { name: "c".to_owned(), kind, is_nullable: false };
            let mut builder = builder(&[column]);
            for (other, value) in VALUES.into_iter().enumerate() {
                if other != place {
                    assert!(matches!(builder.push(value), Err(LakeError::Row(_))), "{kind:?}");
                }
            }
            assert!(matches!(builder.push(LakeValue::Null), Err(LakeError::Row(_))));
            // What was refused left nothing behind.
            builder.row(&[VALUES[place]], 1, 2).unwrap();
            assert_eq!(builder.finish().unwrap().num_rows(), 1);
        }
    }

    #[test]
    fn batches_follow_each_other() {
        let mut builder = builder(&columns(true));
        for _ in 0..2 {
            builder.row(&VALUES, 1, 2).unwrap();
            builder.row(&[LakeValue::Null; 13], i64::MAX as u64, -1).unwrap();
            assert_eq!(builder.rows(), 2);
            assert!(builder.bytes() > 50);
            let batch = builder.finish().unwrap();
            assert_eq!((batch.num_rows(), batch.num_columns()), (2, 16));
            assert!(batch.columns()[..13].iter().all(|column| column.null_count() == 1));
            assert_eq!((builder.rows(), builder.bytes()), (0, 0));
        }
    }

    #[test]
    fn rows_that_are_too_short_too_long_or_out_of_range_are_refused() {
        let mut builder = builder(&columns(true));
        assert!(builder.end_row(1, 1).is_err());
        builder.push(VALUES[0]).unwrap();
        assert!(builder.end_row(1, 1).is_err());
        assert!(builder.finish().is_err());
        for value in &VALUES[1..] {
            builder.push(*value).unwrap();
        }
        assert!(builder.push(LakeValue::Null).is_err());
        assert!(builder.end_row(u64::MAX, 1).is_err());
        builder.end_row(1, 1).unwrap();
        assert_eq!(builder.finish().unwrap().num_rows(), 1);

        let kinds = [(5, LakeValue::Decimal(100_000)), (10, LakeValue::TimeMicros(DAY_MICROS))];
        for (place, value) in kinds {
            for other in VALUES.iter().take(place) {
                builder.push(*other).unwrap();
            }
            assert!(matches!(builder.push(value), Err(LakeError::Row(_))));
            for other in VALUES.iter().skip(place) {
                builder.push(*other).unwrap();
            }
            builder.end_row(1, 1).unwrap();
        }
    }

    #[test]
    fn a_column_that_only_the_table_has_is_null() {
        let all = columns(true);
        let schema = iceberg_schema(&all, &[]).unwrap();
        let mut builder = BatchBuilder::new(&schema, &all[..1], NodeId(1)).unwrap();
        builder.row(&VALUES[..1], 1, 1).unwrap();
        let batch = builder.finish().unwrap();
        assert_eq!(batch.column(12).null_count(), 1);
        assert_eq!(batch.column(0).null_count(), 0);
    }
}
