//! What a count of rows is that takes ties along, as [`ties`](crate::ties) uses it.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::typed::{Given, TypedFunction};
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// The function that a count of rows stands below that takes ties along: `LIMIT onrush_with_ties(3)`.
pub const WITH_TIES: &str = "onrush_with_ties";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let bigint = |_: &[ColumnType]| ColumnType::Stored(DataType::Int64);
    vec![TypedFunction::new(WITH_TIES, bigint, counted).into_udf()]
}

fn counted(given: &Given<'_>) -> Result<Value<'static>> {
    match given.values.first().and_then(Value::as_i64) {
        Some(count @ 0..) => Ok(Value::Int64(count)),
        Some(_) => Err(QueryError::NegativeCount { clause: "LIMIT" }),
        None => {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause".to_owned();
            Err(QueryError::refused("2201W", message))
        }
    }
}
