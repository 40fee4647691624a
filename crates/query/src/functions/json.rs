//! `->` and `->>`: what stands in JSON under a key, or at a place of an array.
//!
//! A part is the text of the whole between its first byte and its last: jsonb, which is kept in one
//! form, has its parts in that form, too.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Value};
use serde_json::value::RawValue;

use super::argument_columns;
use crate::columns::ColumnBuilder;
use crate::error::QueryError;
use crate::types::{ColumnType, arrow_type, column_type, field};
use crate::values::value_at;

/// The function that `->` stands for.
pub(crate) const JSON_PART: &str = "json_part";
/// The function that `->>` stands for.
pub(crate) const JSON_PART_TEXT: &str = "json_part_text";

/// One of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonPart {
    /// What is found comes as text, and not as JSON.
    as_text: bool,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |as_text| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(JsonPart { as_text, signature }))
    };
    vec![function(false), function(true)]
}

impl ScalarUDFImpl for JsonPart {
    fn name(&self) -> &str {
        if self.as_text { JSON_PART_TEXT } else { JSON_PART }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(ColumnType::Stored(DataType::Text)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let given = args.arg_fields.first().map(|given| column_type(given));
        let returned = match given {
            _ if self.as_text => DataType::Text,
            Some(ColumnType::Stored(DataType::Json)) => DataType::Json,
            _ => DataType::Jsonb,
        };
        Ok(Arc::new(field(self.name(), ColumnType::Stored(returned), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = argument_columns(&args)?;
        let text = ColumnType::Stored(DataType::Text);
        let mut found = ColumnBuilder::new(text, args.number_rows)?;
        for row in 0..args.number_rows {
            let value = |at: usize| value_at(&columns[at].0, row, columns[at].1);
            let (whole, place) = (value(0)?, value(1)?);
            let part = match &whole {
                Value::Text(whole) => part(whole, &place, self.as_text)?,
                _ => None,
            };
            found.append(&part.map_or(Value::Null, Value::from))?;
        }
        Ok(ColumnarValue::Array(found.finish()))
    }
}

/// What stands at a place; none where there is no such place, or nothing to look into.
pub(super) fn part(
    whole: &str,
    place: &Value<'_>,
    as_text: bool,
) -> Result<Option<String>, QueryError> {
    let bad = |_| QueryError::BadText { message: "invalid input syntax for type json".to_owned() };
    let found: Option<Box<RawValue>> = match (place, whole.trim_start().as_bytes().first()) {
        (Value::Text(key), Some(b'{')) => {
            let mut object: HashMap<String, Box<RawValue>> =
                serde_json::from_str(whole).map_err(bad)?;
            object.remove(&**key)
        }
        (Value::Null | Value::Text(_), _) => None,
        (index, Some(b'[')) => {
            let mut items: Vec<Box<RawValue>> = serde_json::from_str(whole).map_err(bad)?;
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            // Places below 0 count from the end.
            let index = index.as_i64().map(|at| if at < 0 { at + count } else { at });
            let index = index.and_then(|at| usize::try_from(at).ok());
            index.filter(|at| *at < items.len()).map(|at| items.swap_remove(at))
        }
        _ => None,
    };
    let Some(found) = found else { return Ok(None) };
    // What is left as it is written is looked at, too: half a character is none.
    if found.get().contains("\\u") {
        serde_json::from_str::<serde_json::Value>(found.get()).map_err(bad)?;
    }
    match (as_text, found.get()) {
        (true, "null") => Ok(None),
        (true, text) if text.starts_with('"') => {
            let text: String = serde_json::from_str(text).map_err(bad)?;
            if text.contains('\0') {
                let message = "unsupported Unicode escape sequence";
                return Err(QueryError::refused("22P05", message));
            }
            Ok(Some(text))
        }
        (_, text) => Ok(Some(text.to_owned())),
    }
}
