//! Names and constants as they are written in SQL, and texts with places for them.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::SystemFunction;
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::text::written;

/// What one call of format() makes, at most: a width is a few digits, and would be as many blanks.
const FORMATTED_BYTES_MAX: usize = 16 << 20;
/// Words that are no names unless they are quoted.
const KEYWORDS: &str = "
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit
    boolean both case cast char character check coalesce collate collation column concurrently
    constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except
    exists extract false fetch float for foreign freeze from full grant greatest group grouping
    having ilike in initially inner inout int integer intersect interval into is isnull join
    lateral leading least left like limit localtime localtimestamp national natural nchar none
    normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
    placing position precision primary real references returning right row select session_user
    setof similar smallint some substring symmetric table tablesample then time timestamp to
    trailing treat trim true union unique user using values varchar variadic verbose when where
    window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse
    xmlpi xmlroot xmlserialize xmltable";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let text = DataType::Text.into();
    let functions = [
        SystemFunction::new("quote_ident", text, |given| match given {
            [Value::Text(name)] => name_in_sql(name).into_owned().into(),
            _ => Value::Null,
        }),
        SystemFunction::new("quote_literal", text, |given| match given {
            [Value::Null] | [] => Value::Null,
            [value, ..] => constant_in_sql(&written(value)).into(),
        }),
        SystemFunction::new("quote_nullable", text, |given| match given {
            [Value::Null] | [] => "NULL".into(),
            [value, ..] => constant_in_sql(&written(value)).into(),
        }),
        SystemFunction::fallible("format", text, |given| match given {
            [Value::Text(format), rest @ ..] => Ok(filled(format, rest)?.into()),
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible(
            "parse_ident",
            crate::ColumnType::Array(DataType::Text),
            |given| {
                let Some(Value::Text(name)) = given.first() else { return Ok(Value::Null) };
                let is_strict = !matches!(given.get(1), Some(Value::Boolean(false)));
                let parts = parts(name, is_strict)?;
                Ok(write_array(parts.iter().map(|part| Some(part.as_str()))).into())
            },
        ),
    ];
    functions.into_iter().map(|function| function.immutable().into_udf()).collect()
}

/// `name` or `"a name"`.
fn name_in_sql(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !KEYWORDS.split_whitespace().any(|word| word == name);
    match is_plain {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))),
    }
}

/// `'it''s'`; with a backslash in it, `E'C:\\'`.
fn constant_in_sql(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// What stands between `%` and the letter of a place.
#[derive(Default)]
struct Place {
    /// Counted from 1; the next if it is not said.
    position: Option<usize>,
    is_left: bool,
    width: Width,
}

#[derive(Default)]
enum Width {
    #[default]
    None,
    Of(i64),
    /// `*`: the next argument tells it, or the one of this number.
    Given(Option<usize>),
}

/// `format(text, ...)`.
fn filled(format: &str, given: &[Value<'_>]) -> Result<String> {
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let (place, behind) = place(rest)?;
        let Some(letter) = behind.chars().next() else { return Err(ended()) };
        rest = &behind[letter.len_utf8()..];
        let mut take = |position: Option<usize>| {
            let at = position.map_or(next, |position| position - 1);
            next = at + 1;
            given
                .get(at)
                .ok_or_else(|| QueryError::refused("22023", "too few arguments for format()"))
        };
        let (mut is_left, mut width) = (place.is_left, 0);
        match place.width {
            Width::None => {}
            Width::Of(wanted) => width = wanted,
            Width::Given(position) => width = take(position)?.as_i64().unwrap_or(0),
        }
        is_left |= width < 0;
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        let value = take(place.position)?;
        let text = match (letter, value) {
            ('s', Value::Null) => String::new(),
            ('s', value) => written(value),
            ('I', Value::Null) => {
                return Err(QueryError::refused(
                    "22004",
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            ('I', value) => name_in_sql(&written(value)).into_owned(),
            ('L', Value::Null) => "NULL".to_owned(),
            ('L', value) => constant_in_sql(&written(value)),
            (other, _) => {
                let message = format!("unrecognized format() type specifier \"{other}\"");
                return Err(QueryError::refused("22023", message));
            }
        };
        let blanks = width.saturating_sub(text.chars().count());
        if out.len() + text.len() > FORMATTED_BYTES_MAX || blanks > FORMATTED_BYTES_MAX {
            return Err(QueryError::refused(
                "54000",
                "the result of format() is longer than 16 MiB",
            ));
        }
        match is_left {
            true => out.extend(text.chars().chain(std::iter::repeat_n(' ', blanks))),
            false => out.extend(std::iter::repeat_n(' ', blanks).chain(text.chars())),
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn ended() -> QueryError {
    QueryError::refused("22023", "unterminated format() type specifier")
}

/// Reads `1$-10` and the like; returns what is behind it.
fn place(written: &str) -> Result<(Place, &str)> {
    let mut place = Place::default();
    let (number, behind) = digits(written)?;
    let mut rest = written;
    if let Some(behind) = behind.strip_prefix('$') {
        place.position = Some(counted(number)?);
        rest = behind;
    }
    while let Some(behind) = rest.strip_prefix('-') {
        place.is_left = true;
        rest = behind;
    }
    if let Some(behind) = rest.strip_prefix('*') {
        let (number, after) = digits(behind)?;
        (place.width, rest) = match after.strip_prefix('$') {
            Some(after) => (Width::Given(Some(counted(number)?)), after),
            None => (Width::Given(None), behind),
        };
        return Ok((place, rest));
    }
    let (number, behind) = digits(rest)?;
    if let Some(number) = number {
        place.width = Width::Of(number);
    }
    Ok((place, behind))
}

fn digits(text: &str) -> Result<(Option<i64>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Ok((None, text));
    }
    // As wide as PostgreSQL's integer.
    let number = text[..end].parse::<i32>();
    let number = number.map_err(|_| QueryError::refused("22003", "number is out of range"))?;
    Ok((Some(number.into()), &text[end..]))
}

fn counted(number: Option<i64>) -> Result<usize> {
    match number.and_then(|number| usize::try_from(number).ok()) {
        None => Err(QueryError::refused("22023", "format specifies a position without a number")),
        Some(0) => Err(QueryError::refused(
            "22023",
            "format specifies argument 0, but arguments are numbered from 1",
        )),
        Some(number) => Ok(number),
    }
}

/// The parts of a name with dots.
fn parts(name: &str, is_strict: bool) -> Result<Vec<String>> {
    let bad =
        || QueryError::refused("22023", format!("string is not a valid identifier: \"{name}\""));
    let mut parts = Vec::new();
    let mut rest = name.trim_start();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut behind = quoted;
            loop {
                let end = behind.find('"').ok_or_else(bad)?;
                part.push_str(&behind[..end]);
                behind = &behind[end + 1..];
                match behind.strip_prefix('"') {
                    Some(more) => {
                        part.push('"');
                        behind = more;
                    }
                    None => break,
                }
            }
            if part.is_empty() {
                return Err(bad());
            }
            parts.push(part);
            rest = behind;
        } else {
            let is_inner =
                |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric() || c > '\x7f';
            let end = rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len());
            let starts = |c: char| !c.is_ascii_digit() && c != '$';
            if end == 0 || !rest.starts_with(starts) {
                return Err(bad());
            }
            parts.push(rest[..end].to_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() || !is_strict => return Ok(parts),
            None => return Err(bad()),
        }
    }
}
