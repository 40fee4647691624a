//! Patterns of SIMILAR TO, and what regular expressions take apart.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use regex::{Regex, RegexBuilder};

use super::SystemFunction;
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// The regular expression of a pattern of SIMILAR TO.
pub(crate) const SIMILAR_PATTERN: &str = "similar_pattern";
/// What a regular expression finds first, or its first group where it has one.
pub(crate) const PART_BY_PATTERN: &str = "part_by_pattern";
/// The parts of a text between what a regular expression finds.
pub(crate) const SPLIT_BY_PATTERN: &str = "regexp_split_to_array";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let text: ColumnType = DataType::Text.into();
    let functions = [
        SystemFunction::fallible(SIMILAR_PATTERN, text, |given| match given {
            [Value::Text(pattern)] => Ok(similar(pattern, Some('\\')).into()),
            [Value::Text(pattern), Value::Text(escape)] => {
                let mut characters = escape.chars();
                let escape = characters.next();
                if characters.next().is_some() {
                    return Err(QueryError::refused("22025", "invalid escape string"));
                }
                Ok(similar(pattern, escape).into())
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible(SPLIT_BY_PATTERN, ColumnType::Array(DataType::Text), |given| {
            let (text, pattern, flags) = match given {
                [Value::Text(text), Value::Text(pattern)] => (text, pattern, ""),
                [Value::Text(text), Value::Text(pattern), Value::Text(flags)] => {
                    (text, pattern, &**flags)
                }
                _ => return Ok(Value::Null),
            };
            Ok(write_array(split(text, &regex(pattern, flags)?).into_iter().map(Some)).into())
        }),
        SystemFunction::fallible("regexp_substr", text, substr),
        SystemFunction::fallible(PART_BY_PATTERN, text, |given| match given {
            [Value::Text(text), Value::Text(pattern)] => {
                let found = regex(pattern, "")?.captures(text).and_then(|found| {
                    let part = found.get(usize::from(found.len() > 1))?;
                    Some(part.as_str().to_owned())
                });
                Ok(found.map_or(Value::Null, Value::from))
            }
            _ => Ok(Value::Null),
        }),
    ];
    functions.into_iter().map(|function| function.immutable().into_udf()).collect()
}

/// A regular expression whose dot stands for the end of a line, too.
fn regex(pattern: &str, flags: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'm' | 'n' => builder.multi_line(true).dot_matches_new_line(false),
            's' => builder.multi_line(false).dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(QueryError::refused("22023", message));
            }
        };
    }
    builder.build().map_err(|error| {
        QueryError::refused("2201B", format!("invalid regular expression: {error}"))
    })
}

/// What lies between the matches. One of nothing counts neither at the ends of the text nor right
/// behind another.
fn split<'t>(text: &'t str, regex: &Regex) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for found in regex.find_iter(text) {
        if found.is_empty() && (found.start() == start || found.end() == text.len()) {
            continue;
        }
        parts.push(&text[start..found.start()]);
        start = found.end();
    }
    parts.push(&text[start..]);
    parts
}

/// `regexp_substr(text, pattern, start, number, flags, group)`.
fn substr(given: &[Value<'_>]) -> Result<Value<'static>> {
    let [Value::Text(text), Value::Text(pattern), rest @ ..] = given else {
        return Ok(Value::Null);
    };
    if rest.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let number = |at: usize, least: i64, other: i64, name: &str| {
        let number = rest.get(at).and_then(Value::as_i64).unwrap_or(other);
        let known = usize::try_from(number).ok().filter(|_| number >= least);
        let bad = || format!("invalid value for parameter \"{name}\": {number}");
        known.ok_or_else(|| QueryError::refused("22023", bad()))
    };
    let (start, wanted) = (number(0, 1, 1, "start")?, number(1, 1, 1, "n")?);
    let group = number(3, 0, 0, "subexpr")?;
    let flags = match rest.get(2) {
        Some(Value::Text(flags)) => &**flags,
        _ => "",
    };
    let regex = regex(pattern, flags)?;
    let Some((start, _)) = text.char_indices().nth(start - 1) else { return Ok(Value::Null) };
    let found = regex.captures_iter(&text[start..]).nth(wanted - 1);
    let part = found.and_then(|found| found.get(group).map(|part| part.as_str().to_owned()));
    Ok(part.map_or(Value::Null, Value::from))
}

/// A pattern of SIMILAR TO as a regular expression that must fit all of a text.
fn similar(pattern: &str, escape: Option<char>) -> String {
    let mut written = String::from("(?s)^(?:");
    let mut is_in_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => {
                if let Some(literal) = characters.next() {
                    written.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
                }
            }
            ']' if is_in_class => {
                written.push(']');
                is_in_class = false;
            }
            // The name of a class, [:alpha:].
            '[' if is_in_class && characters.peek() == Some(&':') => {
                written.push('[');
                for named in characters.by_ref() {
                    written.push(named);
                    if named == ']' {
                        break;
                    }
                }
            }
            // What regular expressions here know beside ranges.
            '[' | '\\' | '&' | '~' if is_in_class => written.extend(['\\', character]),
            other if is_in_class => written.push(other),
            '[' => {
                written.push('[');
                is_in_class = true;
            }
            '%' => written.push_str(".*"),
            '_' => written.push('.'),
            '(' => written.push_str("(?:"),
            '\\' | '.' | '^' | '$' => written.extend(['\\', character]),
            other => written.push(other),
        }
    }
    written.push_str(")$");
    written
}
