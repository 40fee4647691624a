//! Columns and values of a table as the lake has them.
//!
//! | column | in the lake |
//! |---|---|
//! | boolean; smallint, integer; bigint, oid | boolean; int; long |
//! | real; double precision; numeric(p,s) of up to 28 digits | float; double; decimal(p,s) |
//! | char(n) without its blanks, varchar, text, name, json, jsonb, labels | string |
//! | bytea; uuid | binary; uuid |
//! | date; time; timestamp; timestamptz | the same, in microseconds |

use onrush::{Clock, ColumnDefinition, DataType, TableDefinition, Value};

use crate::batch::LakeValue;
use crate::columns::{LakeColumn, LakeKind};
use crate::error::LakeError;

/// The columns of a table, all but one that only tells its rows apart, and the names of those of its key.
pub(super) fn of_table(
    definition: &TableDefinition,
) -> Result<(Vec<LakeColumn>, Vec<String>), LakeError> {
    let column = |at: usize| {
        let column = &definition.columns()[at];
        let (name, is_nullable) = (column.name.clone(), column.nullable);
        Ok(LakeColumn { name, kind: kind_of(column)?, is_nullable })
    };
    let columns = definition.shown_columns().map(column).collect::<Result<_, LakeError>>()?;
    let key = definition.primary_key().iter().filter(|at| definition.row_id() != Some(**at));
    let key = key.map(|at| definition.columns()[*at].name.clone()).collect();
    Ok((columns, key))
}

fn kind_of(column: &ColumnDefinition) -> Result<LakeKind, LakeError> {
    Ok(match column.data_type {
        DataType::Boolean => LakeKind::Boolean,
        DataType::Int16 | DataType::Int32 => LakeKind::Int32,
        DataType::Int64 | DataType::Oid => LakeKind::Int64,
        DataType::Float32 => LakeKind::Float32,
        DataType::Float64 => LakeKind::Float64,
        DataType::Decimal { precision, scale } => LakeKind::Decimal { precision, scale },
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::Name
        | DataType::Json
        | DataType::Jsonb
        | DataType::Enum(_) => LakeKind::Text,
        DataType::Bytes => LakeKind::Bytes,
        DataType::Uuid => LakeKind::Uuid,
        DataType::Date => LakeKind::Date,
        DataType::Time | DataType::Rounded(Clock::Time, _) => LakeKind::TimeMicros,
        DataType::Timestamp | DataType::Rounded(Clock::Timestamp, _) => LakeKind::TimestampMicros,
        DataType::TimestampTz | DataType::Rounded(Clock::TimestampTz, _) => {
            LakeKind::TimestamptzMicros
        }
        other => {
            return Err(LakeError::NoSuchKind {
                column: column.name.clone(),
                data_type: other.to_string(),
            });
        }
    })
}

/// A value of a column of this type, as the lake has it. Infinite dates and times are the lowest and the highest
/// number.
pub(super) fn value_of<'v>(
    data_type: DataType,
    value: &'v Value<'_>,
) -> Result<LakeValue<'v>, LakeError> {
    Ok(match (data_type, value) {
        (_, Value::Null) => LakeValue::Null,
        (_, Value::Boolean(value)) => LakeValue::Boolean(*value),
        (_, Value::Int16(value)) => LakeValue::Int32((*value).into()),
        (DataType::Int64 | DataType::Oid, Value::Int32(value)) => LakeValue::Int64((*value).into()),
        (_, Value::Int32(value)) => LakeValue::Int32(*value),
        (_, Value::Int64(value)) => LakeValue::Int64(*value),
        (_, Value::Float32(value)) => LakeValue::Float32(*value),
        (_, Value::Float64(value)) => LakeValue::Float64(*value),
        (DataType::Decimal { scale, .. }, Value::Decimal(value)) => {
            let mut scaled = *value;
            scaled.rescale(scale.into());
            LakeValue::Decimal(scaled.mantissa())
        }
        (DataType::Char(_), Value::Text(text)) => LakeValue::Text(text.trim_end_matches(' ')),
        (_, Value::Text(text)) => LakeValue::Text(text),
        (_, Value::Bytes(bytes)) => LakeValue::Bytes(bytes),
        (_, Value::Uuid(uuid)) => LakeValue::Uuid(uuid.into_bytes()),
        (_, Value::Date(days)) => LakeValue::Date(*days),
        (_, Value::Time(micros)) => LakeValue::TimeMicros(*micros),
        (_, Value::Timestamp(micros)) => LakeValue::TimestampMicros(*micros),
        (_, Value::TimestampTz(micros)) => LakeValue::TimestamptzMicros(*micros),
        (data_type, value) => {
            return Err(LakeError::Internal(format!("{value:?} is not of type {data_type}")));
        }
    })
}
