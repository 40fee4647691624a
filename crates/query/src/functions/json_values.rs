//! Values as JSON, and JSON made of them: `to_json`, `json_build_object`, `json_agg` and the like.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{CompositeType, DataType, Value};
use onrush_types::text::parse;

use super::type_name;
use super::typed::{Given, TypedFunction};
use crate::array::read_array;
use crate::error::{QueryError, Result};
use crate::style::{by_default, current, write_offset};
use crate::text::{write_text_of, written, written_plainly};
use crate::timestamp::is_infinite_timestamp;
use crate::types::ColumnType;

/// The array of JSON values in one array: what `json_agg` is made of.
pub(crate) const JSON_OF_ELEMENTS: &str = "json_of_elements";
/// The same, as `jsonb`.
pub(crate) const JSONB_OF_ELEMENTS: &str = "jsonb_of_elements";
/// As [`JSON_OF_ELEMENTS`], with each value in a line of its own.
pub(crate) const JSON_OF_ROWS: &str = "json_of_rows";
/// The object of keys and values in one array: what `json_object_agg` is made of.
pub(crate) const JSON_OF_PAIRS: &str = "json_of_pairs";
/// The same, as `jsonb`.
pub(crate) const JSONB_OF_PAIRS: &str = "jsonb_of_pairs";
/// Values as the elements of one array: what `array_to_json` of an array of JSON is.
pub(crate) const JSON_LIST: &str = "json_list";
/// The same, as `jsonb`.
pub(crate) const JSONB_LIST: &str = "jsonb_list";
/// A key and its value as JSON.
pub(crate) const JSON_PAIR: &str = "json_pair";
/// A row as JSON, of its names and values in turn.
pub(crate) const JSON_ROW: &str = "json_row";
/// The same, as `jsonb`.
pub(crate) const JSONB_ROW: &str = "jsonb_row";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let json = |name, call| TypedFunction::new(name, |_| DataType::Json.into(), call);
    let jsonb = |name, call| TypedFunction::new(name, |_| DataType::Jsonb.into(), call);
    let functions = [
        json("to_json", |given| one(given).map(Value::from)).strict(),
        json("row_to_json", row).strict(),
        json("array_to_json", |given| one(given).map(Value::from)).strict(),
        jsonb("to_jsonb", |given| in_one_form(&one(given)?)).strict(),
        json("json_build_object", |given| object(given, &BUILT).map(Value::from)),
        jsonb("jsonb_build_object", |given| in_one_form(&object(given, &BUILT)?)),
        json("json_build_array", |given| array(given, ", ").map(Value::from)),
        jsonb("jsonb_build_array", |given| in_one_form(&array(given, ", ")?)),
        json(JSON_LIST, |given| array(given, ",").map(Value::from)),
        jsonb(JSONB_LIST, |given| in_one_form(&array(given, ",")?)),
        json(JSON_ROW, |given| object(given, &ROW).map(Value::from)),
        jsonb(JSONB_ROW, |given| in_one_form(&object(given, &ROW)?)),
        json(JSON_OF_ELEMENTS, |given| gathered(given, "[", ", ", "]").map(Value::from)).strict(),
        json(JSON_OF_ROWS, |given| gathered(given, "[", ", \n ", "]").map(Value::from)).strict(),
        jsonb(JSONB_OF_ELEMENTS, |given| in_one_form(&gathered(given, "[", ",", "]")?)).strict(),
        json(JSON_OF_PAIRS, |given| gathered(given, "{ ", ", ", " }").map(Value::from)).strict(),
        jsonb(JSONB_OF_PAIRS, |given| in_one_form(&gathered(given, "{", ",", "}")?)).strict(),
        TypedFunction::new(
            JSON_PAIR,
            |_| DataType::Text.into(),
            |given| {
                let [key, value] = given.values else { return Ok(Value::Null) };
                if key.is_null() {
                    return Err(QueryError::refused("22004", "field name must not be null"));
                }
                let mut out = String::new();
                quoted(&written(key), &mut out);
                out.push_str(" : ");
                write_json(value, given.types[1], &mut out)?;
                Ok(out.into())
            },
        ),
    ];
    functions.into_iter().map(TypedFunction::into_udf).collect()
}

/// A record as JSON; nothing else is one.
fn row(given: &Given<'_>) -> Result<Value<'static>> {
    match given.types {
        [ColumnType::Stored(DataType::Composite(_)), ..] => one(given).map(Value::from),
        given => {
            let types: Vec<String> = given.iter().map(|own| type_name(*own)).collect();
            let message = format!("function row_to_json({}) does not exist", types.join(", "));
            Err(QueryError::UnknownFunction { message })
        }
    }
}

/// How the parts of an object are written.
struct Form {
    between: &'static str,
    after_key: &'static str,
}

const BUILT: Form = Form { between: ", ", after_key: " : " };
const ROW: Form = Form { between: ",", after_key: ":" };

/// JSON as `jsonb` keeps it.
pub(super) fn in_one_form(json: &str) -> Result<Value<'static>> {
    Ok(parse(DataType::Jsonb, json)?.into_owned())
}

fn one(given: &Given<'_>) -> Result<String> {
    let ([value], [column]) = (given.values, given.types) else {
        let message = "the function takes one value".to_owned();
        return Err(QueryError::UnknownFunction { message });
    };
    let mut out = String::new();
    write_json(value, *column, &mut out)?;
    Ok(out)
}

fn object(given: &Given<'_>, form: &Form) -> Result<String> {
    if given.values.len() % 2 == 1 {
        return Err(QueryError::refused(
            "22023",
            "argument list must have even number of elements",
        ));
    }
    let mut out = String::from("{");
    let pairs = given.values.chunks_exact(2).zip(given.types.chunks_exact(2));
    for (number, (pair, types)) in pairs.enumerate() {
        if number > 0 {
            out.push_str(form.between);
        }
        if pair[0].is_null() {
            let message = format!("argument {} cannot be null", 2 * number + 1);
            return Err(QueryError::refused("22023", message));
        }
        let is_scalar = !matches!(
            types[0],
            ColumnType::Array(_)
                | ColumnType::Stored(DataType::Json | DataType::Jsonb | DataType::Composite(_))
        );
        if !is_scalar {
            let message = "key value must be scalar, not array, composite, or json";
            return Err(QueryError::refused("22023", message));
        }
        quoted(&written(&pair[0]), &mut out);
        out.push_str(form.after_key);
        write_json(&pair[1], types[1], &mut out)?;
    }
    out.push('}');
    Ok(out)
}

fn array(given: &Given<'_>, between: &str) -> Result<String> {
    let mut out = String::from("[");
    for (number, (value, column)) in given.values.iter().zip(given.types).enumerate() {
        if number > 0 {
            out.push_str(between);
        }
        write_json(value, *column, &mut out)?;
    }
    out.push(']');
    Ok(out)
}

/// Texts of an array that are JSON already, between brackets.
fn gathered(given: &Given<'_>, open: &str, between: &str, close: &str) -> Result<String> {
    let [Value::Text(elements)] = given.values else { return Ok("null".to_owned()) };
    let elements = read_array(elements)?;
    let elements: Vec<&str> =
        elements.iter().map(|element| element.as_deref().unwrap_or("null")).collect();
    Ok(format!("{open}{}{close}", elements.join(between)))
}

fn write_json(value: &Value<'_>, column: ColumnType, out: &mut String) -> Result<()> {
    match (value, column) {
        (Value::Null, _) => out.push_str("null"),
        (Value::Boolean(value), _) => out.push_str(if *value { "true" } else { "false" }),
        (Value::Float32(number), _) if !number.is_finite() => quoted(&written(value), out),
        (Value::Float64(number), _) if !number.is_finite() => quoted(&written(value), out),
        (Value::Numeric(number), _) if number.scale().is_none() => quoted(&written(value), out),
        (
            Value::Int16(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Float32(_)
            | Value::Float64(_)
            | Value::Decimal(_)
            | Value::Numeric(_),
            _,
        ) => out.push_str(&written(value)),
        (Value::Text(json), ColumnType::Stored(DataType::Json | DataType::Jsonb)) => {
            out.push_str(json);
        }
        (Value::Text(record), ColumnType::Stored(DataType::Composite(of))) => {
            write_record_json(record, of, out)?;
        }
        (Value::Text(elements), ColumnType::Array(element)) => {
            out.push('[');
            for (number, item) in read_array(elements)?.into_iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                let item = match &item {
                    Some(written) => by_default(|| crate::text::read_text(element, written))?,
                    None => Value::Null,
                };
                write_json(&item, element.into(), out)?;
            }
            out.push(']');
        }
        (Value::Date(_), _) => quoted(&written_plainly(value), out),
        (Value::Timestamp(_), _) => {
            quoted(&written_plainly(value).replacen(' ', "T", 1), out);
        }
        (Value::TimestampTz(micros), _) if is_infinite_timestamp(*micros) => {
            quoted(&written_plainly(value), out);
        }
        (Value::TimestampTz(micros), _) => {
            let seconds = current().zone.offsets(*micros)?.seconds;
            let local = Value::Timestamp(micros + i64::from(seconds) * 1_000_000);
            let text = written_plainly(&local).replacen(' ', "T", 1);
            let (time, era) = text.split_at(text.find(" BC").unwrap_or(text.len()));
            let mut text = time.to_owned();
            // Memory takes what there is.
            let _ = write_offset(seconds, true, &mut text);
            text.push_str(era);
            quoted(&text, out);
        }
        (other, column) => {
            let mut text = String::new();
            write_text_of(other, column, &mut text)?;
            quoted(&text, out);
        }
    }
    Ok(())
}

/// Text as JSON.
pub(super) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A record as an object of its fields.
fn write_record_json(record: &str, of: CompositeType, out: &mut String) -> Result<()> {
    let none = |_| QueryError::Internal { message: "a record is none of its type".to_owned() };
    let fields = of.read(record).map_err(none)?;
    out.push('{');
    for (number, ((name, data_type), field)) in of.fields().iter().zip(&fields).enumerate() {
        if number > 0 {
            out.push(',');
        }
        quoted(name, out);
        out.push(':');
        let value = match field {
            Some(written) => {
                by_default(|| crate::text::read_text(*data_type, written).map(Value::into_owned))?
            }
            None => Value::Null,
        };
        write_json(&value, (*data_type).into(), out)?;
    }
    out.push('}');
    Ok(())
}
