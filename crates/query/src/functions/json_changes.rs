//! What changes jsonb: `jsonb_set`, `jsonb_insert`, `#-`, an assignment to a part, and what leaves parts out.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use serde_json::{Map, Value as Json};

use super::json_parts::{of_jsonb, read};
use super::json_values::in_one_form;
use super::typed::{Given, TypedFunction};
use crate::array::read_array;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// A part of jsonb by a subscript.
pub(crate) const JSON_SUBSCRIPT: &str = "json_subscript";
/// The function that `#-` stands for.
pub(crate) const JSON_WITHOUT_PATH: &str = "jsonb_delete_path";

/// Elements that an assignment may put in front of another one.
const GAP_MAX: i64 = 1_000_000;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let jsonb = |_: &[ColumnType]| ColumnType::Stored(DataType::Jsonb);
    let text = |_: &[ColumnType]| ColumnType::Stored(DataType::Text);
    let strict = [
        TypedFunction::new(JSON_SUBSCRIPT, jsonb, subscript),
        TypedFunction::new(JSON_WITHOUT_PATH, jsonb, |given| set_path(given, None, Change::Delete)),
        TypedFunction::new("jsonb_set", jsonb, |given| {
            set_path(given, Some(read(given, 2)?), creating(given, 3)?)
        }),
        TypedFunction::new("jsonb_insert", jsonb, |given| {
            let change = match given.values.get(3) {
                Some(Value::Boolean(true)) => Change::InsertBehind,
                _ => Change::InsertInFront,
            };
            set_path(given, Some(read(given, 2)?), change)
        }),
        TypedFunction::new("jsonb_pretty", text, |given| of_jsonb(given, pretty)),
    ];
    let strict = strict.into_iter().map(|function| function.strict().into_udf());
    let lenient = [
        TypedFunction::new("jsonb_set_lax", jsonb, set_lax),
        TypedFunction::new("jsonb_set_element", jsonb, set_element),
    ];
    strict.chain(lenient.into_iter().map(TypedFunction::into_udf)).collect()
}

/// What is done at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Create,
    Replace,
    Delete,
    InsertInFront,
    InsertBehind,
    /// As an assignment does: what is missing on the way is made.
    Assign,
}

impl Change {
    fn creates(self) -> bool {
        !matches!(self, Change::Replace | Change::Delete)
    }

    fn inserts(self) -> bool {
        matches!(self, Change::InsertInFront | Change::InsertBehind)
    }
}

type Path = Vec<Option<String>>;

fn creating(given: &Given<'_>, at: usize) -> Result<Change> {
    match given.values.get(at) {
        None | Some(Value::Boolean(true)) => Ok(Change::Create),
        Some(Value::Boolean(false)) => Ok(Change::Replace),
        Some(_) => Err(no_such()),
    }
}

fn no_such() -> QueryError {
    let message = "there is no such function for values of these types".to_owned();
    QueryError::UnknownFunction { message }
}

fn refused(message: impl Into<String>) -> QueryError {
    QueryError::refused("22023", message.into())
}

fn path_of(given: &Given<'_>) -> Result<Path> {
    let Some(Value::Text(path)) = given.values.get(1) else { return Err(no_such()) };
    Ok(read_array(path)?.into_iter().map(|step| step.map(|step| step.into_owned())).collect())
}

fn set_path(given: &Given<'_>, new: Option<Json>, change: Change) -> Result<Value<'static>> {
    let (mut whole, path) = (read(given, 0)?, path_of(given)?);
    if !whole.is_object() && !whole.is_array() {
        let what = if change == Change::Delete { "delete" } else { "set" };
        return Err(refused(format!("cannot {what} path in scalar")));
    }
    let is_empty = match &whole {
        Json::Object(object) => object.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    };
    if !path.is_empty() && (change.creates() || !is_empty) {
        set(&mut whole, &path, 0, new.as_ref(), change)?;
    }
    in_one_form(&whole.to_string())
}

fn set(
    whole: &mut Json,
    path: &Path,
    level: usize,
    new: Option<&Json>,
    change: Change,
) -> Result<()> {
    let Some(Some(step)) = path.get(level) else {
        let message = format!("path element at position {} is null", level + 1);
        return Err(QueryError::refused("22004", message));
    };
    match whole {
        Json::Object(object) => set_key(object, step, path, level, new, change),
        Json::Array(items) => set_item(items, step, path, level, new, change),
        _ if change == Change::Assign => {
            let detail = "The path assumes key is a composite object, but it is a scalar value.";
            Err(refused("cannot replace existing key").detail(detail))
        }
        _ => Ok(()),
    }
}

fn set_key(
    object: &mut Map<String, Json>,
    step: &str,
    path: &Path,
    level: usize,
    new: Option<&Json>,
    change: Change,
) -> Result<()> {
    let is_last = level + 1 == path.len();
    match (object.get_mut(step), new) {
        (Some(_), _) if is_last && change.inserts() => {
            let hint = "Try using the function jsonb_set to replace key value.";
            return Err(refused("cannot replace existing key").hint(hint));
        }
        (Some(found), Some(new)) if is_last => *found = new.clone(),
        (Some(_), None) if is_last => _ = object.remove(step),
        (Some(found), _) => set(found, path, level + 1, new, change)?,
        (None, Some(new)) if is_last && change.creates() => {
            object.insert(step.to_owned(), new.clone());
        }
        (None, Some(new)) if change == Change::Assign => {
            object.insert(step.to_owned(), made(&path[level + 1..], new)?);
        }
        (None, _) => {}
    }
    Ok(())
}

fn set_item(
    items: &mut Vec<Json>,
    step: &str,
    path: &Path,
    level: usize,
    new: Option<&Json>,
    change: Change,
) -> Result<()> {
    let position = level + 1;
    let is_last = position == path.len();
    let Some(place) = whole_number(step) else {
        let message = format!("path element at position {position} is not an integer: \"{step}\"");
        return Err(QueryError::refused("22P02", message));
    };
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let at = if place < 0 { place + count } else { place };
    if at < 0 && change == Change::Assign {
        let message = format!("path element at position {position} is out of range: {place}");
        return Err(refused(message));
    }
    let there = usize::try_from(at).ok().filter(|at| *at < items.len());
    match (there, new) {
        (Some(at), Some(new)) if is_last => match change {
            Change::InsertInFront => items.insert(at, new.clone()),
            Change::InsertBehind => items.insert(at + 1, new.clone()),
            _ => items[at] = new.clone(),
        },
        (Some(at), None) if is_last => _ = items.remove(at),
        (Some(at), _) => set(&mut items[at], path, level + 1, new, change)?,
        (None, Some(new)) if is_last && change.creates() => {
            if at < 0 {
                items.insert(0, new.clone());
            } else {
                if change == Change::Assign {
                    fill(items, at)?;
                }
                items.push(new.clone());
            }
        }
        (None, Some(new)) if change == Change::Assign => {
            fill(items, at)?;
            items.push(made(&path[level + 1..], new)?);
        }
        (None, _) => {}
    }
    Ok(())
}

/// A step of a path as C reads a number.
fn whole_number(step: &str) -> Option<i64> {
    step.trim_start().parse::<i32>().ok().map(i64::from)
}

/// Nulls up to a place.
fn fill(items: &mut Vec<Json>, place: i64) -> Result<()> {
    if place > GAP_MAX {
        return Err(QueryError::refused("54000", "an array of jsonb would have too many elements"));
    }
    let wanted = usize::try_from(place).unwrap_or(0);
    if items.len() < wanted {
        items.resize(wanted, Json::Null);
    }
    Ok(())
}

/// A value at a path of which nothing is there.
fn made(path: &[Option<String>], new: &Json) -> Result<Json> {
    let mut value = new.clone();
    for step in path.iter().rev().flatten() {
        value = match whole_number(step) {
            Some(place) => {
                let mut items = Vec::new();
                fill(&mut items, place)?;
                items.push(value);
                Json::Array(items)
            }
            None => Json::Object(Map::from_iter([(step.clone(), value)])),
        };
    }
    Ok(value)
}

/// `jsonb_set(target, path, new, create, treatment of NULL)`.
fn set_lax(given: &Given<'_>) -> Result<Value<'static>> {
    let [target, path, new, rest @ ..] = given.values else { return Err(no_such()) };
    if target.is_null() || path.is_null() || rest.first().is_some_and(Value::is_null) {
        return Ok(Value::Null);
    }
    let change = creating(given, 3)?;
    let treatment = rest.get(1).cloned().unwrap_or_else(|| "use_json_null".into());
    let is_null = new.is_null();
    match treatment.as_str().unwrap_or_default() {
        "use_json_null" | "raise_exception" | "delete_key" | "return_target" if !is_null => {
            set_path(given, Some(read(given, 2)?), change)
        }
        "use_json_null" => set_path(given, Some(Json::Null), change),
        "delete_key" => set_path(given, None, Change::Delete),
        "return_target" => in_one_form(target.as_str().unwrap_or_default()),
        "raise_exception" => {
            let detail =
                "Exception was raised because null_value_treatment is \"raise_exception\".";
            let hint = "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not \
                        passed.";
            let error = QueryError::refused("22004", "JSON value must not be null");
            Err(error.detail(detail).hint(hint))
        }
        _ if !is_null && !treatment.is_null() => set_path(given, Some(read(given, 2)?), change),
        _ => Err(refused(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

/// `target[path...] = new`, given as target, new value and the path.
fn set_element(given: &Given<'_>) -> Result<Value<'static>> {
    let ([target, new, path @ ..], [own, _, types @ ..]) = (given.values, given.types) else {
        return Err(no_such());
    };
    if *own != ColumnType::Stored(DataType::Jsonb) {
        let message = "an assignment to a part of what is no jsonb is not supported".to_owned();
        return Err(QueryError::NotSupported { message });
    }
    let mut steps = Path::new();
    for step in path {
        steps.push(Some(match step {
            Value::Text(step) => step.clone().into_owned(),
            number if let Some(number) = number.as_i64() => number.to_string(),
            _ => {
                let message = "jsonb subscript in assignment must not be null";
                return Err(QueryError::refused("22004", message));
            }
        }));
    }
    let is_number = |own: &ColumnType| matches!(own, ColumnType::Stored(own) if own.is_number());
    let mut whole = match (target.is_null(), types.first().is_some_and(is_number)) {
        (true, true) => Json::Array(Vec::new()),
        (true, false) => Json::Object(Map::new()),
        (false, _) => read(given, 0)?,
    };
    let new = if new.is_null() { Json::Null } else { read(given, 1)? };
    set(&mut whole, &steps, 0, Some(&new), Change::Assign)?;
    in_one_form(&whole.to_string())
}

fn subscript(given: &Given<'_>) -> Result<Value<'static>> {
    let [_, step] = given.values else { return Err(no_such()) };
    let step = match step {
        Value::Text(step) => step.clone().into_owned(),
        number => number.as_i64().ok_or_else(no_such)?.to_string(),
    };
    let whole = read(given, 0)?;
    let found = match &whole {
        Json::Object(object) => object.get(&step),
        Json::Array(items) => whole_number(&step).and_then(|at| {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            items.get(usize::try_from(if at < 0 { at + count } else { at }).ok()?)
        }),
        _ => None,
    };
    found.map_or(Ok(Value::Null), |found| in_one_form(&found.to_string()))
}

fn pretty(given: &Given<'_>) -> Result<Value<'static>> {
    let mut out = String::new();
    indented(&read(given, 0)?, 0, &mut out);
    Ok(out.into())
}

/// Jsonb with a line for each element, and four blanks for each level.
fn indented(json: &Json, level: usize, out: &mut String) {
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(level));
    };
    match json {
        Json::Object(object) => {
            out.push('{');
            let mut fields: Vec<(&String, &Json)> = object.iter().collect();
            fields.sort_by_key(|(key, _)| (key.len(), *key));
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(level + 1, out);
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push_str(": ");
                indented(value, level + 1, out);
            }
            line(level, out);
            out.push('}');
        }
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(level + 1, out);
                indented(item, level + 1, out);
            }
            line(level, out);
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}
