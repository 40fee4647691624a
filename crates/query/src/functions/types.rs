//! What values there are, and of which types.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, EnumType, Value};

use super::SystemFunction;
use super::typed::{Given, TypedFunction};
use crate::array::write_array;
use crate::enumeration::any_enum;
use crate::error::{QueryError, Result};
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
    let own = |given: &[ColumnType]| given.first().copied().unwrap_or(DataType::Text.into());
    let array = |given: &[ColumnType]| match given.first() {
        Some(ColumnType::Stored(element)) => ColumnType::Array(*element),
        _ => ColumnType::Array(DataType::Text),
    };
    vec![
        TypedFunction::new(TYPE_OF, text, |given| {
            Ok(given.types.first().map_or(Value::Null, |column| type_name(*column).into()))
        })
        .into_udf(),
        TypedFunction::new("enum_first", own, |given| {
            Ok(end(enum_of(given)?.labels().iter().next()))
        })
        .into_udf(),
        TypedFunction::new("enum_last", own, |given| {
            Ok(end(enum_of(given)?.labels().iter().next_back()))
        })
        .into_udf(),
        TypedFunction::new("enum_range", array, |given| {
            let labels = enum_of(given)?.labels().iter().map(|(_, label)| label);
            let labels: Vec<&str> = labels.collect();
            let place = |value: Option<&Value<'_>>| match value {
                Some(Value::Text(label)) => labels.iter().position(|own| own == label),
                _ => None,
            };
            // NULL is the end that it stands for.
            let [first, last] = match given.values {
                [first, last] => [place(Some(first)), place(Some(last))],
                _ => [None, None],
            };
            let end = last.map_or(labels.len(), |last| last + 1);
            let chosen = labels.get(first.unwrap_or(0)..end).unwrap_or_default();
            Ok(Value::from(write_array(chosen.iter().map(|label| Some(*label)))))
        })
        .into_udf(),
        count("num_nulls", |value| value.is_null()).immutable().into_udf(),
        count("num_nonnulls", |value| !value.is_null()).immutable().into_udf(),
    ]
}

fn end(label: Option<(u32, &'static str)>) -> Value<'static> {
    label.map_or(Value::Null, |(_, label)| Value::from(label))
}

/// The enumerated type of what a function is given, NULL or not.
fn enum_of(given: &Given<'_>) -> Result<EnumType> {
    let mut types = given.types.iter().filter_map(|own| match own {
        ColumnType::Stored(DataType::Enum(of)) => Some(*of),
        _ => None,
    });
    types
        .find(|of| *of != any_enum())
        .ok_or_else(|| QueryError::refused("22023", "could not determine actual enum type"))
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
