//! `json_object`: objects of the texts of arrays, keys and values in turn or in an array of each.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use serde_json::Value as Json;

use super::json_values::in_one_form;
use super::typed::{Given, TypedFunction};
use crate::array::{Elements, read_array};
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let json = |_: &[ColumnType]| ColumnType::Stored(DataType::Json);
    let jsonb = |_: &[ColumnType]| ColumnType::Stored(DataType::Jsonb);
    vec![
        TypedFunction::new("json_object", json, |given| Ok(object(given)?.into()))
            .strict()
            .into_udf(),
        TypedFunction::new("jsonb_object", jsonb, |given| in_one_form(&object(given)?))
            .strict()
            .into_udf(),
    ]
}

fn object(given: &Given<'_>) -> Result<String> {
    let subscripts = |message: &str| QueryError::refused("2202E", message);
    let pairs: Vec<(_, _)> = match given.values {
        [Value::Text(one)] => {
            let elements = elements(one)?;
            if elements.len() % 2 == 1 {
                return Err(subscripts("array must have even number of elements"));
            }
            let pair = |pair: &[Option<_>]| (pair[0].clone(), pair[1].clone());
            elements.chunks_exact(2).map(pair).collect()
        }
        [Value::Text(keys), Value::Text(values)] => {
            let (keys, values) = (elements(keys)?, elements(values)?);
            if keys.len() != values.len() {
                return Err(subscripts("mismatched array dimensions"));
            }
            keys.into_iter().zip(values).collect()
        }
        _ => {
            let message = "there is no such function for values of these types".to_owned();
            return Err(QueryError::UnknownFunction { message });
        }
    };
    let mut written = String::from("{");
    for (at, (key, value)) in pairs.into_iter().enumerate() {
        let Some(key) = key else {
            return Err(QueryError::refused("22004", "null value not allowed for object key"));
        };
        let value = value.map_or(Json::Null, |value| Json::from(&*value));
        let comma = if at > 0 { ", " } else { "" };
        written.push_str(&format!("{comma}{} : {value}", Json::from(&*key)));
    }
    written.push('}');
    Ok(written)
}

/// Of arrays of arrays there are none here.
fn elements(array: &str) -> Result<Elements<'_>> {
    if array.trim_start().starts_with("{{") {
        let message = "an object of JSON of an array of arrays is not supported".to_owned();
        return Err(QueryError::NotSupported { message });
    }
    read_array(array)
}
