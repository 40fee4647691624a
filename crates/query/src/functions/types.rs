//! What values there are, and of which types.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::SystemFunction;
use super::typed::TypedFunction;
use crate::error::QueryError;
use crate::types::ColumnType;

/// The function that tells the type of a value.
pub(crate) const TYPE_OF: &str = "pg_typeof";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let count = |name, is_counted: fn(&Value<'_>) -> bool| {
        SystemFunction::fallible(name, DataType::Int32.into(), move |given| {
            if given.is_empty() {
                let message = format!("function {name}() does not exist");
                return Err(QueryError::UnknownFunction { message });
            }
            let count = given.iter().filter(|value| is_counted(value)).count();
            Ok(i32::try_from(count).map_or(Value::Null, Value::Int32))
        })
    };
    let text = |_: &[ColumnType]| ColumnType::Stored(DataType::Text);
    vec![
        TypedFunction::new(TYPE_OF, text, |given| {
            Ok(given.types.first().map_or(Value::Null, |column| type_name(*column).into()))
        })
        .into_udf(),
        count("num_nulls", |value| value.is_null()).immutable().into_udf(),
        count("num_nonnulls", |value| !value.is_null()).immutable().into_udf(),
        // There are no moments without an end here.
        SystemFunction::new("isfinite", DataType::Boolean.into(), |given| match given {
            [Value::Null] | [] => Value::Null,
            _ => Value::Boolean(true),
        })
        .immutable()
        .into_udf(),
    ]
}

/// A type as PostgreSQL writes it, without length.
pub(crate) fn type_name(column: ColumnType) -> String {
    let name = match column {
        ColumnType::Char => "\"char\"",
        ColumnType::Array(element) | ColumnType::Vector(element) => {
            return format!("{}[]", type_name(element.into()));
        }
        ColumnType::Stored(stored) => match stored.unrounded() {
            DataType::Float64 => "double precision",
            DataType::Decimal { .. } | DataType::Numeric(_) => "numeric",
            DataType::Char(_) => "character",
            DataType::Varchar(_) => "character varying",
            DataType::Bytes => "bytea",
            DataType::Time => "time without time zone",
            DataType::TimeTz => "time with time zone",
            DataType::Timestamp => "timestamp without time zone",
            DataType::TimestampTz => "timestamp with time zone",
            other => return other.to_string(),
        },
    };
    name.to_owned()
}
