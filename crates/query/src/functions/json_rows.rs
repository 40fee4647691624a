//! JSON as rows: the members of an object, and objects as rows of columns, each of them as an array that is unnested.

use std::fmt;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json_parts::of_jsonb;
use super::json_values::in_one_form;
use super::typed::{Given, TypedFunction};
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// The names of the members of an object.
pub(crate) const JSON_NAMES: &str = "json_member_names";
/// The same of jsonb.
pub(crate) const JSONB_NAMES: &str = "jsonb_member_names";
/// What the members of an object are.
pub(crate) const JSON_MEMBERS: &str = "json_member_values";
/// The same of jsonb.
pub(crate) const JSONB_MEMBERS: &str = "jsonb_member_values";
/// The same as texts.
pub(crate) const JSON_MEMBERS_TEXT: &str = "json_member_texts";
/// The same of jsonb.
pub(crate) const JSONB_MEMBERS_TEXT: &str = "jsonb_member_texts";
/// The member of a name of an object, or of each object of an array: JSON, a name, whether it is an array, and what a
/// member is written as, `text`, `json`, `array` or `json_array`.
pub(crate) const JSON_COLUMN: &str = "json_column";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let texts = |_: &[ColumnType]| ColumnType::Array(DataType::Text);
    let json = |_: &[ColumnType]| ColumnType::Stored(DataType::Json);
    let jsonb = |_: &[ColumnType]| ColumnType::Stored(DataType::Jsonb);
    let strict = [
        TypedFunction::new(JSON_NAMES, texts, names),
        TypedFunction::new(JSONB_NAMES, texts, |given| of_jsonb(given, names)),
        TypedFunction::new(JSON_MEMBERS, texts, |given| members(given, Form::Json)),
        TypedFunction::new(JSONB_MEMBERS, texts, |given| {
            of_jsonb(given, |given| members(given, Form::Json))
        }),
        TypedFunction::new(JSON_MEMBERS_TEXT, texts, |given| members(given, Form::Text)),
        TypedFunction::new(JSONB_MEMBERS_TEXT, texts, |given| {
            of_jsonb(given, |given| members(given, Form::Text))
        }),
        TypedFunction::new("json_strip_nulls", json, |given| Ok(without_nulls(given)?.into())),
        TypedFunction::new("jsonb_strip_nulls", jsonb, |given| in_one_form(&without_nulls(given)?)),
    ];
    let column = TypedFunction::new(JSON_COLUMN, texts, column);
    strict
        .into_iter()
        .map(|function| function.strict().into_udf())
        .chain([column.into_udf()])
        .collect()
}

/// The members of an object in the order in which they are written, those of one name, too.
pub(super) struct Members<'j>(pub(super) Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Members<'de>, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// How a member is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A text without its quotes; NULL for null.
    Text,
    /// As it stands there.
    Json,
    /// A list as an array of texts; else as a text.
    Array,
    /// A list as an array of JSON.
    JsonArray,
}

impl Form {
    fn named(name: &str) -> Form {
        match name {
            "json" => Form::Json,
            "array" => Form::Array,
            "json_array" => Form::JsonArray,
            _ => Form::Text,
        }
    }

    fn write(self, member: &RawValue) -> Result<Option<String>> {
        let written = member.get();
        let element = if self == Form::JsonArray { Form::Json } else { Form::Text };
        Ok(match self {
            Form::Json => Some(written.to_owned()),
            _ if written == "null" => None,
            Form::Array | Form::JsonArray if written.starts_with('[') => {
                let items: Vec<&RawValue> = read(written)?;
                let items = items.into_iter().map(|item| match item.get() {
                    "null" => Ok(None),
                    _ => element.write(item),
                });
                let items: Vec<Option<String>> = items.collect::<Result<_>>()?;
                Some(write_array(items.iter().map(Option::as_deref)))
            }
            _ if written.starts_with('"') => Some(text_of(written)?),
            _ => Some(written.to_owned()),
        })
    }
}

pub(super) fn read<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T> {
    serde_json::from_str(json).map_err(|_| not_json())
}

/// A string of JSON as a text, which has no zero character.
pub(super) fn text_of(written: &str) -> Result<String> {
    let text: String = read(written)?;
    match text.contains('\0') {
        true => Err(QueryError::refused("22P05", "unsupported Unicode escape sequence")),
        false => Ok(text),
    }
}

fn whole<'g>(given: &'g Given<'_>) -> Result<&'g str> {
    match given.values.first() {
        Some(Value::Text(whole)) => Ok(whole),
        _ => {
            let message = "the function is one of JSON".to_owned();
            Err(QueryError::UnknownFunction { message })
        }
    }
}

fn object<'g>(given: &'g Given<'_>) -> Result<Members<'g>> {
    let whole = whole(given)?;
    serde_json::from_str(whole).map_err(|_| match whole.trim_start().chars().next() {
        Some('[') => refused("cannot deconstruct an array as an object"),
        Some('{') | None => not_json(),
        Some(_) => refused("cannot deconstruct a scalar"),
    })
}

pub(super) fn not_json() -> QueryError {
    QueryError::BadText { message: "invalid input syntax for type json".to_owned() }
}

fn refused(message: &str) -> QueryError {
    QueryError::refused("22023", message)
}

fn names(given: &Given<'_>) -> Result<Value<'static>> {
    let Members(members) = object(given)?;
    Ok(write_array(members.iter().map(|(name, _)| Some(name.as_str()))).into())
}

fn members(given: &Given<'_>, form: Form) -> Result<Value<'static>> {
    let Members(members) = object(given)?;
    let written = members.iter().map(|(_, member)| form.write(member));
    let written: Vec<Option<String>> = written.collect::<Result<_>>()?;
    Ok(write_array(written.iter().map(Option::as_deref)).into())
}

fn column(given: &Given<'_>) -> Result<Value<'static>> {
    let [whole, Value::Text(name), Value::Boolean(is_set), Value::Text(form)] = given.values else {
        return Err(refused("the function takes JSON and the name of a column"));
    };
    let form = Form::named(form);
    let rows: Vec<Option<&RawValue>> = match whole {
        Value::Text(whole) if *is_set => {
            if !whole.trim_start().starts_with('[') {
                return Err(refused("cannot call json_to_recordset on a non-array"));
            }
            read::<Vec<&RawValue>>(whole)?.into_iter().map(Some).collect()
        }
        Value::Text(whole) => vec![Some(read(whole)?)],
        // There is one row all the same.
        _ if !*is_set => vec![None],
        _ => return Ok(Value::Null),
    };
    let member = |row: &Option<&RawValue>| {
        let Some(row) = row else { return Ok(None) };
        let Ok(Members(members)) = serde_json::from_str(row.get()) else {
            return Err(refused(match is_set {
                true => "argument of json_to_recordset must be an array of objects",
                false => "cannot call json_to_record on what is no object",
            }));
        };
        // The last one of a name counts.
        let found = members.iter().rev().find(|(own, _)| own == name);
        match found.filter(|(_, found)| found.get() != "null") {
            Some((_, found)) => form.write(found),
            None => Ok(None),
        }
    };
    let written: Vec<Option<String>> = rows.iter().map(member).collect::<Result<_>>()?;
    Ok(write_array(written.iter().map(Option::as_deref)).into())
}

/// Most arrays and objects inside of each other that are looked through: each is read again for what is in it.
const DEPTH_MAX: usize = 1_000;

/// JSON without the members of objects that are null.
fn without_nulls(given: &Given<'_>) -> Result<String> {
    let mut out = String::new();
    let whole = whole(given)?;
    check_depth(whole)?;
    strip(read(whole)?, &mut out)?;
    Ok(out)
}

fn strip(json: &RawValue, out: &mut String) -> Result<()> {
    let written = json.get();
    let separate = |out: &mut String, is_first: bool| {
        if !is_first {
            out.push(',');
        }
    };
    match written.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = read(written)?;
            out.push('{');
            let kept = members.iter().filter(|(_, member)| member.get() != "null");
            for (at, (name, member)) in kept.enumerate() {
                separate(out, at == 0);
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                strip(member, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = read(written)?;
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(out, at == 0);
                strip(item, out)?;
            }
            out.push(']');
        }
        _ => out.push_str(written),
    }
    Ok(())
}

/// Refuses JSON that is nested too deeply (`54001`).
pub(super) fn check_depth(json: &str) -> Result<()> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let what = "arrays and objects inside of each other";
            return Err(QueryError::refused(
                "54001",
                format!("JSON of more than {DEPTH_MAX} {what}"),
            ));
        }
    }
    Ok(())
}
