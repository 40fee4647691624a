//! JSON as records of a composite type: `json_populate_record`, and what `json_populate_recordset` is made of.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{CompositeType, DataType, Value};
use onrush_types::write_record;
use serde_json::value::RawValue;

use super::json_rows::{Members, check_depth, not_json, read, text_of};
use super::records::field_text;
use super::typed::{Given, TypedFunction};
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// The records of an array of objects, as an array.
pub(crate) const JSON_RECORDS: &str = "json_records";
/// The record of an object.
const JSON_RECORD: [&str; 2] = ["json_populate_record", "jsonb_populate_record"];

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let own = |given: &[ColumnType]| given.first().copied().unwrap_or(DataType::Text.into());
    let array = |given: &[ColumnType]| match given.first() {
        Some(ColumnType::Stored(element)) => ColumnType::Array(*element),
        _ => ColumnType::Array(DataType::Text),
    };
    let record = |name| TypedFunction::new(name, own, record).into_udf();
    let records = TypedFunction::new(JSON_RECORDS, array, records).into_udf();
    JSON_RECORD.into_iter().map(record).chain([records]).collect()
}

/// Whether a function makes one record.
pub(crate) fn makes_record(function: &str) -> bool {
    JSON_RECORD.contains(&function)
}

/// The type and the record whose fields the members of objects stand in.
fn base<'g>(given: &'g Given<'_>) -> Result<(CompositeType, Option<&'g str>)> {
    let (Some(ColumnType::Stored(DataType::Composite(of))), [base, _, ..]) =
        (given.types.first(), given.values)
    else {
        let message = "first argument of json_populate_record must be a row type";
        return Err(QueryError::refused("42804", message));
    };
    if of.is_anonymous() && of.fields().is_empty() {
        let message = "could not determine row type for result of json_populate_record";
        let hint = "Provide a record of a type that has fields.";
        return Err(QueryError::refused("0A000", message).hint(hint));
    }
    match base {
        Value::Text(record) => Ok((*of, Some(record))),
        _ => Ok((*of, None)),
    }
}

fn record(given: &Given<'_>) -> Result<Value<'static>> {
    let (of, base) = base(given)?;
    let Some(Value::Text(json)) = given.values.get(1) else {
        return Ok(base.map_or(Value::Null, |base| Value::from(base.to_owned())));
    };
    check_depth(json)?;
    Ok(Value::from(of_object(of, base, json)?))
}

fn records(given: &Given<'_>) -> Result<Value<'static>> {
    let (of, base) = base(given)?;
    let Some(Value::Text(json)) = given.values.get(1) else { return Ok(Value::Null) };
    check_depth(json)?;
    if !json.trim_start().starts_with('[') {
        let message = "cannot call json_populate_recordset on a non-array";
        return Err(QueryError::refused("22023", message));
    }
    let objects: Vec<&RawValue> = read(json)?;
    let record = |object: &&RawValue| match object.get().starts_with('{') {
        true => of_object(of, base, object.get()),
        false => {
            let message = "argument of json_populate_recordset must be an array of objects";
            Err(QueryError::refused("22023", message))
        }
    };
    let records: Vec<String> = objects.iter().map(record).collect::<Result<_>>()?;
    Ok(Value::from(write_array(records.iter().map(|record| Some(record.as_str())))))
}

/// The record of an object; what that has no member for is as in the `base`.
fn of_object(of: CompositeType, base: Option<&str>, json: &str) -> Result<String> {
    let Members(members) = serde_json::from_str(json).map_err(|_| {
        let of = match json.trim_start().chars().next() {
            Some('[') => "an array",
            Some('{') | None => return not_json(),
            Some(_) => "a scalar",
        };
        QueryError::refused("22023", format!("cannot call json_populate_record on {of}"))
    })?;
    let none = |_| QueryError::Internal { message: "a record is none of its type".to_owned() };
    let known = base.map(|base| of.read(base)).transpose().map_err(none)?;
    let mut fields = Vec::with_capacity(of.fields().len());
    for (at, (name, data_type)) in of.fields().iter().enumerate() {
        // Of several members of one name the last one counts.
        let member = members.iter().rev().find(|(own, _)| **own == **name);
        fields.push(match (member, &known) {
            (Some((_, member)), _) => field(*data_type, member.get())?,
            (None, Some(known)) => known[at].as_deref().map(str::to_owned),
            (None, None) => None,
        });
    }
    Ok(write_record(fields.iter().map(Option::as_deref)))
}

/// What a member is as a field of a type, none for null.
fn field(data_type: DataType, json: &str) -> Result<Option<String>> {
    if json == "null" {
        return Ok(None);
    }
    let text = match data_type {
        DataType::Json | DataType::Jsonb => json.to_owned(),
        DataType::Composite(of) if json.starts_with('{') => {
            return of_object(of, None, json).map(Some);
        }
        DataType::Array(element) if json.starts_with('[') => {
            let items: Vec<&RawValue> = read(json)?;
            let items = items.iter().map(|item| field(*element, item.get()));
            let items: Vec<Option<String>> = items.collect::<Result<_>>()?;
            write_array(items.iter().map(Option::as_deref))
        }
        DataType::Array(_) if !json.starts_with('"') => {
            return Err(QueryError::refused("22P02", "expected JSON array"));
        }
        _ if json.starts_with('"') => text_of(json)?,
        _ => json.to_owned(),
    };
    Ok(Some(field_text(data_type, &text)?))
}
