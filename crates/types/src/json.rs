//! JSON as columns keep it: `json` as it was written, `jsonb` in one form for all ways of writing.
//!
//! That form is PostgreSQL's: the keys of an object by length, then by their bytes, the last of those
//! that are there twice; a blank behind each colon and comma; numbers without exponent, their digits as
//! they are.

use std::fmt::Write;

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};

/// Most zeros that an exponent may stand for; a row has not as many bytes.
const ZEROS_MAX: i64 = 10_000;

/// Whether text is JSON.
pub(crate) fn check(text: &str) -> Result<(), Box<str>> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| error.to_string().into())
}

/// The one form for JSON that says the same.
pub(crate) fn normalised(text: &str) -> Result<String, Box<str>> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut out = String::with_capacity(text.len());
    write(&value, &mut out)?;
    Ok(out)
}

fn write(value: &Value, out: &mut String) -> Result<(), Box<str>> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => return write_number(number, out),
        Value::String(text) => return write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(object) => return write_object(object, out),
    }
    Ok(())
}

fn write_object(object: &Map<String, Value>, out: &mut String) -> Result<(), Box<str>> {
    let mut entries: Vec<(&String, &Value)> = object.iter().collect();
    entries.sort_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
    out.push('{');
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        write_text(key, out)?;
        out.push_str(": ");
        write(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_text(text: &str, out: &mut String) -> Result<(), Box<str>> {
    if text.contains('\0') {
        return Err(r"\u0000 cannot be converted to text".into());
    }
    let quoted = serde_json::to_string(text).map_err(|error| error.to_string())?;
    out.push_str(&quoted);
    Ok(())
}

/// Without exponent, and without the sign of a zero.
fn write_number(number: &Number, out: &mut String) -> Result<(), Box<str>> {
    let written = number.to_string();
    let (digits, exponent) = match written.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            let exponent = exponent.parse::<i64>().ok().filter(|zeros| zeros.abs() <= ZEROS_MAX);
            (digits, exponent.ok_or("a number is too large")?)
        }
        None => (written.as_str(), 0),
    };
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut all = format!("{whole}{fraction}");
    // Digits behind the point; there cannot be 2^63 of them.
    let mut behind = i64::try_from(fraction.len()).unwrap_or(i64::MAX) - exponent;
    while behind < 0 {
        all.push('0');
        behind += 1;
    }
    let behind = usize::try_from(behind).unwrap_or(0);
    if all.len() <= behind {
        all.insert_str(0, &"0".repeat(behind + 1 - all.len()));
    }
    let (whole, fraction) = all.split_at(all.len() - behind);
    let whole = whole.trim_start_matches('0');
    if is_negative && all.contains(|digit| digit != '0') {
        out.push('-');
    }
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        // A string takes what there is.
        let _ = write!(out, ".{fraction}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_the_same_has_one_form() {
        let cases = [
            (r#" {"bb":1, "a" : [1,2 ,{}],"a":[ ] } "#, r#"{"a": [], "bb": 1}"#),
            (r#"{"b":1,"aa":2,"a":3}"#, r#"{"a": 3, "b": 1, "aa": 2}"#),
            (r#""\u00e9\n\u0001\/""#, "\"\u{e9}\\n\\u0001/\""),
            ("1.50", "1.50"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("1e3", "1000"),
            ("1.5E+1", "15"),
            ("1.50e1", "15.0"),
            ("-12.5e-3", "-0.0125"),
            ("0.5e1", "5"),
            ("0e5", "0"),
            ("12345678901234567890.1", "12345678901234567890.1"),
            ("null", "null"),
        ];
        for (written, form) in cases {
            assert_eq!(normalised(written).as_deref(), Ok(form), "{written}");
            assert_eq!(normalised(form).as_deref(), Ok(form), "{form}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused() {
        for text in ["", "{", "{a: 1}", "'a'", "01", "1 2", "[1,]", "{\"a\"}", "\"\n\"", "nul"] {
            assert!(check(text).is_err(), "{text}");
            assert!(normalised(text).is_err(), "{text}");
        }
        assert!(normalised("1e999999999").is_err());
        assert!(normalised(r#""\u0000""#).is_err());
        assert!(check(r#""\u0000""#).is_ok());
    }
}
