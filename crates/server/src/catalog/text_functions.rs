//! Functions that tools have values written by: as JSON, and as sizes.

use std::fmt::Write;

use onrush::Value;
use onrush_query::{SystemFunction, write_text};

use super::kinds::TEXT;

pub(super) fn functions() -> Vec<SystemFunction> {
    let object = |given: &[Value<'_>]| json_object(given).into();
    vec![
        SystemFunction::new("json_build_object", TEXT, object),
        SystemFunction::new("jsonb_build_object", TEXT, object),
        SystemFunction::new("pg_size_pretty", TEXT, |given| {
            given.first().and_then(Value::as_i64).map_or(Value::Null, |bytes| size(bytes).into())
        }),
    ]
}

/// Keys and values in turn.
fn json_object(given: &[Value<'_>]) -> String {
    let mut written = String::from("{");
    for pair in given.chunks(2) {
        if written.len() > 1 {
            written.push_str(", ");
        }
        quoted(&text(&pair[0]), &mut written);
        written.push_str(" : ");
        match pair.get(1) {
            None | Some(Value::Null) => written.push_str("null"),
            Some(Value::Boolean(value)) => written.push_str(if *value { "true" } else { "false" }),
            Some(
                number @ (Value::Int16(_)
                | Value::Int32(_)
                | Value::Int64(_)
                | Value::Float32(_)
                | Value::Float64(_)
                | Value::Decimal(_)),
            ) => written.push_str(&text(number)),
            Some(other) => quoted(&text(other), &mut written),
        }
    }
    written.push('}');
    written
}

fn text(value: &Value<'_>) -> String {
    let mut text = String::new();
    // Memory takes what there is.
    let _ = write_text(value, &mut text);
    text
}

/// Text as JSON.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// As PostgreSQL: the largest unit of which there are ten at least, rounded.
fn size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut unit = 0;
    let mut size = i128::from(bytes);
    while size.abs() >= 10_240 && unit + 1 < UNITS.len() {
        size = (size + 512 * size.signum()) / 1024;
        unit += 1;
    }
    format!("{size} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_valid_json() {
        let given = ["a\"b".into(), Value::Null, "n".into(), 1i64.into(), "t".into(), "\n".into()];
        assert_eq!(json_object(&given), r#"{"a\"b" : null, "n" : 1, "t" : "\u000a"}"#);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(10_239), "10239 bytes");
        assert_eq!(size(10_240), "10 kB");
        assert_eq!(size(3 << 30), "3072 MB");
    }
}
