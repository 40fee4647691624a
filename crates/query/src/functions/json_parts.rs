//! What is in JSON: `#>`, `@>`, `?`, `json_typeof` and the like.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::json::part;
use super::json_values::in_one_form;
use super::typed::{Given, TypedFunction};
use crate::array::{read_array, write_array};
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// The function that `#>` stands for.
pub(crate) const JSON_AT_PATH: &str = "json_at_path";
/// The function that `#>>` stands for.
pub(crate) const JSON_AT_PATH_TEXT: &str = "json_at_path_text";
/// The function that `@>` of jsonb stands for.
pub(crate) const JSON_CONTAINS: &str = "json_contains";
/// The function that `?` stands for.
pub(crate) const JSON_HAS_KEY: &str = "json_has_key";
/// The function that `?|` stands for.
pub(crate) const JSON_HAS_ANY: &str = "jsonb_exists_any";
/// The function that `?&` stands for.
pub(crate) const JSON_HAS_ALL: &str = "jsonb_exists_all";
/// The function that `||` of jsonb stands for.
pub(crate) const JSON_JOINED: &str = "json_joined";
/// The function that `-` of jsonb stands for.
pub(crate) const JSON_WITHOUT: &str = "json_without";
/// The items of a JSON array, as an array.
pub(crate) const JSON_ITEMS: &str = "json_items";
/// The same as texts.
pub(crate) const JSON_ITEMS_TEXT: &str = "json_items_text";
/// The items of an array of jsonb, as an array.
pub(crate) const JSONB_ITEMS: &str = "jsonb_items";
/// The same as texts.
pub(crate) const JSONB_ITEMS_TEXT: &str = "jsonb_items_text";
/// The keys of a JSON object, as an array.
pub(crate) const JSON_KEYS: &str = "json_keys";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[ColumnType]| ColumnType::Stored(DataType::Text);
    let boolean = |_: &[ColumnType]| ColumnType::Stored(DataType::Boolean);
    let integer = |_: &[ColumnType]| ColumnType::Stored(DataType::Int32);
    let jsonb = |_: &[ColumnType]| ColumnType::Stored(DataType::Jsonb);
    let texts = |_: &[ColumnType]| ColumnType::Array(DataType::Text);
    let functions = [
        TypedFunction::new(JSON_AT_PATH, of_given, of_path),
        TypedFunction::new(JSON_AT_PATH_TEXT, text, text_of_path),
        TypedFunction::new("json_extract_path", of_given, of_path),
        TypedFunction::new("jsonb_extract_path", jsonb, |given| of_jsonb(given, of_path)),
        TypedFunction::new("json_extract_path_text", text, text_of_path),
        TypedFunction::new("jsonb_extract_path_text", text, |given| of_jsonb(given, text_of_path)),
        TypedFunction::new("json_typeof", text, type_of),
        TypedFunction::new("jsonb_typeof", text, type_of),
        TypedFunction::new("json_array_length", integer, length),
        TypedFunction::new("jsonb_array_length", integer, length),
        TypedFunction::new(JSON_CONTAINS, boolean, |given| holds(given, 0, 1)),
        TypedFunction::new("jsonb_contains", boolean, |given| holds(given, 0, 1)),
        TypedFunction::new("jsonb_contained", boolean, |given| holds(given, 1, 0)),
        TypedFunction::new(JSON_HAS_KEY, boolean, has_key),
        TypedFunction::new("jsonb_exists", boolean, has_key),
        TypedFunction::new(JSON_HAS_ANY, boolean, |given| {
            let whole = read(given, 0)?;
            Ok(Value::Boolean(keys_asked(given)?.iter().any(|key| is_key(&whole, key))))
        }),
        TypedFunction::new(JSON_HAS_ALL, boolean, |given| {
            let whole = read(given, 0)?;
            Ok(Value::Boolean(keys_asked(given)?.iter().all(|key| is_key(&whole, key))))
        }),
        TypedFunction::new(JSON_JOINED, jsonb, joined),
        TypedFunction::new("jsonb_concat", jsonb, joined),
        TypedFunction::new(JSON_WITHOUT, jsonb, without),
        TypedFunction::new("jsonb_delete", jsonb, without),
        TypedFunction::new(JSON_ITEMS, texts, |given| items(given, false)),
        TypedFunction::new(JSON_ITEMS_TEXT, texts, |given| items(given, true)),
        TypedFunction::new(JSONB_ITEMS, texts, |given| {
            of_jsonb(given, |given| items(given, false))
        }),
        TypedFunction::new(JSONB_ITEMS_TEXT, texts, |given| {
            of_jsonb(given, |given| items(given, true))
        }),
        TypedFunction::new(JSON_KEYS, texts, keys),
    ];
    functions.into_iter().map(|function| function.strict().into_udf()).collect()
}

/// JSON as it was written of such, else jsonb.
fn of_given(given: &[ColumnType]) -> ColumnType {
    match given.first() {
        Some(ColumnType::Stored(DataType::Json)) => DataType::Json.into(),
        _ => DataType::Jsonb.into(),
    }
}

fn of_path(given: &Given<'_>) -> Result<Value<'static>> {
    at_path(given, false)
}

fn text_of_path(given: &Given<'_>) -> Result<Value<'static>> {
    at_path(given, true)
}

/// What a function comes to that takes jsonb: a constant in quotes is read as such first.
pub(super) fn of_jsonb(
    given: &Given<'_>,
    call: fn(&Given<'_>) -> Result<Value<'static>>,
) -> Result<Value<'static>> {
    let is_jsonb = matches!(given.types.first(), Some(ColumnType::Stored(DataType::Jsonb)));
    let (false, Some(Value::Text(whole))) = (is_jsonb, given.values.first()) else {
        return call(given);
    };
    let mut values = given.values.to_vec();
    values[0] = in_one_form(whole)?;
    call(&Given { values: &values, types: given.types })
}

fn refused(message: &str) -> QueryError {
    QueryError::refused("22023", message)
}

pub(super) fn read(given: &Given<'_>, at: usize) -> Result<Json> {
    let bad = || QueryError::BadText { message: "invalid input syntax for type json".to_owned() };
    match given.values.get(at) {
        Some(Value::Text(json)) => serde_json::from_str(json).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

/// A path is an array of keys and places, or all the arguments behind the first.
fn at_path(given: &Given<'_>, as_text: bool) -> Result<Value<'static>> {
    let [Value::Text(whole), path @ ..] = given.values else { return Ok(Value::Null) };
    let is_array = path.len() == 1
        && match (given.types.get(1), &path[0]) {
            (Some(ColumnType::Array(_)), _) => true,
            (_, Value::Text(path)) => path.starts_with('{'),
            _ => false,
        };
    let steps: Vec<Option<String>> = match path {
        [Value::Text(path)] if is_array => {
            read_array(path)?.into_iter().map(|step| step.map(|step| step.into_owned())).collect()
        }
        _ => path.iter().map(|step| step.as_str().map(str::to_owned)).collect(),
    };
    let mut found = whole.clone().into_owned();
    let count = steps.len();
    for (number, step) in steps.into_iter().enumerate() {
        let Some(step) = step else { return Ok(Value::Null) };
        let is_text = as_text && number + 1 == count;
        let is_array = found.trim_start().starts_with('[');
        let place = match (is_array, step.trim().parse::<i64>()) {
            (true, Ok(index)) => Value::Int64(index),
            (true, Err(_)) => return Ok(Value::Null),
            (false, _) => Value::from(step.as_str()),
        };
        let Some(next) = part(&found, &place, is_text)? else { return Ok(Value::Null) };
        found = next;
    }
    match (as_text && count == 0, serde_json::from_str::<Json>(&found)) {
        (true, Ok(Json::Null)) => Ok(Value::Null),
        (true, Ok(Json::String(text))) => Ok(text.into()),
        _ => Ok(found.into()),
    }
}

fn type_of(given: &Given<'_>) -> Result<Value<'static>> {
    Ok(json_type_name(&read(given, 0)?).into())
}

/// What PostgreSQL calls the type of a value.
pub(crate) fn json_type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn length(given: &Given<'_>) -> Result<Value<'static>> {
    match read(given, 0)? {
        Json::Array(items) => Ok(i32::try_from(items.len()).map_or(Value::Null, Value::Int32)),
        Json::Object(_) => Err(refused("cannot get array length of a non-array")),
        _ => Err(refused("cannot get array length of a scalar")),
    }
}

fn holds(given: &Given<'_>, whole: usize, part: usize) -> Result<Value<'static>> {
    Ok(Value::Boolean(contains(&read(given, whole)?, &read(given, part)?, true)))
}

fn has_key(given: &Given<'_>) -> Result<Value<'static>> {
    let Some(Value::Text(key)) = given.values.get(1) else { return Ok(Value::Null) };
    Ok(Value::Boolean(is_key(&read(given, 0)?, key)))
}

/// Whether a text is a key of an object, an item of an array, or all there is.
fn is_key(whole: &Json, key: &str) -> bool {
    match whole {
        Json::Object(object) => object.contains_key(key),
        Json::Array(items) => items.iter().any(|item| item.as_str() == Some(key)),
        other => other.as_str() == Some(key),
    }
}

/// The keys of an array that are told.
fn keys_asked(given: &Given<'_>) -> Result<Vec<String>> {
    let Some(Value::Text(keys)) = given.values.get(1) else { return Ok(Vec::new()) };
    Ok(read_array(keys)?.into_iter().flatten().map(|key| key.into_owned()).collect())
}

/// Whether all that one says the other says, too; an array may contain what is no array, at the top.
fn contains(whole: &Json, part: &Json, is_top: bool) -> bool {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|found| contains(found, value, false))),
        (Json::Array(whole), Json::Array(part)) => {
            part.iter().all(|wanted| whole.iter().any(|item| contains(item, wanted, false)))
        }
        (Json::Array(whole), scalar) if is_top && !scalar.is_object() => {
            whole.iter().any(|item| equals(item, scalar))
        }
        _ => equals(whole, part),
    }
}

/// Numbers are equal whatever their digits.
fn equals(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            let digits = |text: &str| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text.to_owned(),
            };
            digits(&one) == digits(&other)
        }
        _ => one == other,
    }
}

fn joined(given: &Given<'_>) -> Result<Value<'static>> {
    let whole = match (read(given, 0)?, read(given, 1)?) {
        (Json::Object(mut one), Json::Object(other)) => {
            one.extend(other);
            Json::Object(one)
        }
        (one, other) => {
            let items = |json| match json {
                Json::Array(items) => items,
                other => vec![other],
            };
            Json::Array([items(one), items(other)].concat())
        }
    };
    in_one_form(&whole.to_string())
}

fn is_array(given: &Given<'_>, at: usize) -> bool {
    matches!(given.types.get(at), Some(ColumnType::Array(_)))
}

/// Without a key or several, an item that is this text, or the item at a place.
fn without(given: &Given<'_>) -> Result<Value<'static>> {
    let mut whole = read(given, 0)?;
    match (&mut whole, given.values.get(1)) {
        (whole, Some(Value::Text(written))) if is_array(given, 1) => {
            let keys: Vec<_> = read_array(written)?.into_iter().flatten().collect();
            match whole {
                Json::Object(object) => keys.iter().for_each(|key| _ = object.remove(&**key)),
                Json::Array(items) => items.retain(|item| {
                    !item.as_str().is_some_and(|item| keys.iter().any(|key| key == item))
                }),
                _ => return Err(refused("cannot delete from scalar")),
            }
        }
        (Json::Object(object), Some(Value::Text(key))) => {
            object.remove(&**key);
        }
        (Json::Array(items), Some(Value::Text(text))) => {
            items.retain(|item| item.as_str() != Some(text));
        }
        (Json::Array(items), Some(place)) => {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let place = place.as_i64().map(|at| if at < 0 { at + count } else { at });
            let place = place.and_then(|at| usize::try_from(at).ok());
            if let Some(place) = place.filter(|place| *place < items.len()) {
                items.remove(place);
            }
        }
        (Json::Object(_), _) => {
            return Err(refused("cannot delete from object using integer index"));
        }
        _ => return Err(refused("cannot delete from scalar")),
    }
    in_one_form(&whole.to_string())
}

fn items(given: &Given<'_>, as_text: bool) -> Result<Value<'static>> {
    let Some(Value::Text(whole)) = given.values.first() else { return Ok(Value::Null) };
    // As each of them was written.
    let Ok(items) = serde_json::from_str::<Vec<Box<RawValue>>>(whole) else {
        return Err(match read(given, 0)? {
            Json::Object(_) => refused("cannot extract elements from an object"),
            _ => refused("cannot extract elements from a scalar"),
        });
    };
    let text = |item: &RawValue| match item.get() {
        "null" => None,
        quoted if quoted.starts_with('"') => serde_json::from_str::<String>(quoted).ok(),
        other => Some(other.to_owned()),
    };
    let written: Vec<Option<String>> = items
        .iter()
        .map(|item| if as_text { text(item) } else { Some(item.get().to_owned()) })
        .collect();
    Ok(write_array(written.iter().map(Option::as_deref)).into())
}

/// The keys of jsonb in its order.
fn keys(given: &Given<'_>) -> Result<Value<'static>> {
    let Json::Object(object) = read(given, 0)? else {
        return Err(refused("cannot call jsonb_object_keys on what is no object"));
    };
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_by_key(|key| (key.len(), *key));
    Ok(write_array(keys.into_iter().map(Some)).into())
}
