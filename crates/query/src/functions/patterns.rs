//! Patterns of SIMILAR TO, and what regular expressions take apart.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::SystemFunction;
use super::all_matches::AllMatches;
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::pattern::{Flags, Found, Pattern, behind, in_library};
use crate::types::ColumnType;

/// What stands between the marks of a pattern of SIMILAR TO: a text, the pattern and its escape character.
pub const SIMILAR_PART: &str = "similar_substring";
/// The regular expression of a pattern of SIMILAR TO.
pub(crate) const SIMILAR_PATTERN: &str = "similar_pattern";
/// A regular expression in the words of the library.
pub(crate) const LIBRARY_PATTERN: &str = "library_pattern";
/// What a regular expression finds first, or its first group where it has one.
pub(crate) const PART_BY_PATTERN: &str = "part_by_pattern";
/// The parts of a text between what a regular expression finds.
pub(crate) const SPLIT_BY_PATTERN: &str = "regexp_split_to_array";
/// The groups of the matches, an array of each.
pub(crate) const ALL_BY_PATTERN: &str = "all_by_pattern";
/// Whether a regular expression finds something.
pub(crate) const FOUND_BY_PATTERN: &str = "regexp_like";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let (text, texts): (ColumnType, _) = (DataType::Text.into(), ColumnType::Array(DataType::Text));
    let (number, truth) = (DataType::Int32.into(), DataType::Boolean.into());
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
        SystemFunction::fallible(SIMILAR_PART, text, |given| match given {
            [Value::Text(text), Value::Text(pattern), Value::Text(escape)] => {
                similar_substring(text, pattern, escape)
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible(LIBRARY_PATTERN, text, |given| match given {
            [Value::Text(pattern)] => Ok(library_pattern(pattern)?.into()),
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible(SPLIT_BY_PATTERN, texts, |given| strict(given, split)),
        SystemFunction::fallible("regexp_match", texts, |given| strict(given, matched)),
        SystemFunction::fallible(FOUND_BY_PATTERN, truth, |given| strict(given, like)),
        SystemFunction::fallible("regexp_count", number, |given| strict(given, count)),
        SystemFunction::fallible("regexp_instr", number, |given| strict(given, position)),
        SystemFunction::fallible("regexp_substr", text, |given| strict(given, substr)),
        SystemFunction::fallible("regexp_replace", text, |given| strict(given, replaced)),
        SystemFunction::fallible(PART_BY_PATTERN, text, |given| {
            strict(given, |call| {
                let found = call.pattern("")?.first(call.text, 0)?;
                let part =
                    found.as_ref().and_then(|found| found[usize::from(found.len() > 1)].clone());
                Ok(part.map_or(Value::Null, |part| call.text[part].to_owned().into()))
            })
        }),
    ];
    let mut all: Vec<Arc<ScalarUDF>> =
        functions.into_iter().map(|function| function.immutable().into_udf()).collect();
    all.push(Arc::new(ScalarUDF::new_from_impl(AllMatches::new())));
    all
}

/// A pattern for the operators, which the library is asked directly.
pub(crate) fn library_pattern(pattern: &str) -> Result<String> {
    let written = in_library(pattern, Flags::default())?;
    if written.goes_back {
        let message = "looking around, or what was found, in a regular expression that is computed is not supported";
        return Err(QueryError::refused("0A000", message));
    }
    Ok(written.pattern)
}

/// Whether no automaton can follow a pattern.
pub(crate) fn goes_back(pattern: &str) -> Result<bool> {
    Ok(in_library(pattern, Flags::default())?.goes_back)
}

/// A call with a text and a pattern.
struct Call<'g> {
    text: &'g str,
    pattern: &'g str,
    rest: &'g [Value<'g>],
}

/// NULL of NULL, and else what is made of a text and a pattern.
fn strict(
    given: &[Value<'_>],
    make: fn(&Call<'_>) -> Result<Value<'static>>,
) -> Result<Value<'static>> {
    match given {
        _ if given.iter().any(Value::is_null) => Ok(Value::Null),
        [Value::Text(text), Value::Text(pattern), rest @ ..] => make(&Call { text, pattern, rest }),
        _ => Err(no_such_function()),
    }
}

fn no_such_function() -> QueryError {
    let message =
        "there is no function of regular expressions with arguments of these types".to_owned();
    QueryError::UnknownFunction { message }
}

impl<'g> Call<'g> {
    fn pattern(&self, letters: &str) -> Result<std::rc::Rc<Pattern>> {
        Pattern::new(self.pattern, letters)
    }

    /// The letters of options at a place behind the pattern.
    fn letters(&self, at: usize) -> Result<&'g str> {
        match self.rest.get(at) {
            None => Ok(""),
            Some(Value::Text(letters)) => Ok(letters),
            Some(_) => Err(no_such_function()),
        }
    }

    /// A number at a place behind the pattern.
    fn number(&self, at: usize, least: i64, other: i64, name: &str) -> Result<usize> {
        let Some(given) = self.rest.get(at) else { return Ok(usize::try_from(other).unwrap_or(0)) };
        let number = given.as_i64().ok_or_else(no_such_function)?;
        let known = usize::try_from(number).ok().filter(|_| number >= least);
        let bad = || format!("invalid value for parameter \"{name}\": {number}");
        known.ok_or_else(|| QueryError::refused("22023", bad()))
    }

    /// The byte of the character of this number; none behind the end of the text.
    fn byte(&self, start: usize) -> Option<usize> {
        let ends = std::iter::once(self.text.len());
        self.text.char_indices().map(|(at, _)| at).chain(ends).nth(start - 1)
    }

    /// The range of a group of the match of this number, counted from 1.
    fn part(
        &self,
        start: usize,
        wanted: usize,
        letters: &str,
        group: usize,
    ) -> Result<Option<std::ops::Range<usize>>> {
        let pattern = self.pattern(letters)?;
        not_global(&pattern, "this function")?;
        let Some(from) = self.byte(start) else { return Ok(None) };
        let found = pattern.all(self.text, from)?.into_iter().nth(wanted - 1);
        Ok(found.and_then(|found| found.get(group).cloned().flatten()))
    }
}

fn not_global(pattern: &Pattern, function: &str) -> Result<()> {
    match pattern.flags.is_global {
        false => Ok(()),
        true => {
            let message = format!("{function} does not support the \"global\" option");
            Err(QueryError::refused("22023", message))
        }
    }
}

/// What lies between the matches. One of nothing counts neither at the ends of the text nor right behind another.
fn split(call: &Call<'_>) -> Result<Value<'static>> {
    let (text, pattern) = (call.text, call.pattern(call.letters(0)?)?);
    not_global(&pattern, "regexp_split_to_array()")?;
    let (mut parts, mut start) = (Vec::new(), 0);
    for found in pattern.all(text, 0)? {
        let Some(Some(whole)) = found.first() else { continue };
        if whole.start >= text.len() || whole.end <= start {
            continue;
        }
        parts.push(&text[start..whole.start]);
        start = whole.end;
    }
    parts.push(&text[start..]);
    Ok(write_array(parts.into_iter().map(Some)).into())
}

/// The groups of the first match, or all of it where there are none.
fn matched(call: &Call<'_>) -> Result<Value<'static>> {
    let pattern = call.pattern(call.letters(0)?)?;
    not_global(&pattern, "regexp_match()")?;
    let Some(found) = pattern.first(call.text, 0)? else { return Ok(Value::Null) };
    Ok(write_array(groups(call.text, &found)).into())
}

/// The groups of a match, or all of it where there are none.
pub(super) fn groups<'t>(text: &'t str, found: &Found) -> impl Iterator<Item = Option<&'t str>> {
    let groups = &found[usize::from(found.len() > 1)..];
    groups.iter().map(|range| range.clone().map(|range| &text[range]))
}

fn like(call: &Call<'_>) -> Result<Value<'static>> {
    let pattern = call.pattern(call.letters(0)?)?;
    not_global(&pattern, "regexp_like()")?;
    Ok(Value::Boolean(pattern.is_match(call.text)?))
}

/// `regexp_count(text, pattern, start, flags)`.
fn count(call: &Call<'_>) -> Result<Value<'static>> {
    let start = call.number(0, 1, 1, "start")?;
    let pattern = call.pattern(call.letters(1)?)?;
    not_global(&pattern, "regexp_count()")?;
    let Some(from) = call.byte(start) else { return Ok(Value::Int32(0)) };
    let count = pattern.all(call.text, from)?.len();
    Ok(i32::try_from(count).map_or(Value::Null, Value::Int32))
}

/// `regexp_instr(text, pattern, start, number, end, flags, group)`.
fn position(call: &Call<'_>) -> Result<Value<'static>> {
    let (start, wanted) = (call.number(0, 1, 1, "start")?, call.number(1, 1, 1, "n")?);
    let is_end = match call.number(2, 0, 0, "endoption")? {
        0 => false,
        1 => true,
        other => {
            let message = format!("invalid value for parameter \"endoption\": {other}");
            return Err(QueryError::refused("22023", message));
        }
    };
    let group = call.number(4, 0, 0, "subexpr")?;
    let part = call.part(start, wanted, call.letters(3)?, group)?;
    let at = part
        .map(|part| call.text[..if is_end { part.end } else { part.start }].chars().count() + 1);
    Ok(i32::try_from(at.unwrap_or(0)).map_or(Value::Null, Value::Int32))
}

/// `regexp_substr(text, pattern, start, number, flags, group)`.
fn substr(call: &Call<'_>) -> Result<Value<'static>> {
    let (start, wanted) = (call.number(0, 1, 1, "start")?, call.number(1, 1, 1, "n")?);
    let group = call.number(3, 0, 0, "subexpr")?;
    let part = call.part(start, wanted, call.letters(2)?, group)?;
    Ok(part.map_or(Value::Null, |part| call.text[part].to_owned().into()))
}

/// `regexp_replace(text, pattern, other, flags)` and `regexp_replace(text, pattern, other, start, number, flags)`.
fn replaced(call: &Call<'_>) -> Result<Value<'static>> {
    let Some(Value::Text(other)) = call.rest.first() else { return Err(no_such_function()) };
    let has_flags = matches!(call.rest.get(1), Some(Value::Text(_)));
    let (start, number) = match has_flags {
        true => (1, 1),
        false => (call.number(1, 1, 1, "start")?, call.number(2, 0, 1, "n")?),
    };
    let pattern = call.pattern(call.letters(if has_flags { 1 } else { 3 })?)?;
    // Unless a number is told.
    let number = if pattern.flags.is_global && call.rest.len() < 3 { 0 } else { number };
    let text = call.text;
    let Some(from) = call.byte(start) else { return Ok(text.to_owned().into()) };
    let (mut made, mut kept, mut count, mut next) = (String::new(), 0, 0, Some(from));
    while let Some(from) = next
        && let Some(found) = pattern.first(text, from)?
        && let Some(Some(whole)) = found.first()
    {
        count += 1;
        next = behind(text, whole);
        if number > 0 && count < number {
            continue;
        }
        made.push_str(&text[kept..whole.start]);
        fill(&mut made, other, text, &found);
        kept = whole.end;
        if number > 0 {
            break;
        }
    }
    made.push_str(&text[kept..]);
    Ok(made.into())
}

/// What comes in the place of a match: `\1` is its first group, `\&` all of it.
fn fill(made: &mut String, other: &str, text: &str, found: &Found) {
    let mut characters = other.chars().peekable();
    while let Some(character) = characters.next() {
        let group = match (character, characters.peek()) {
            ('\\', Some('&')) => 0,
            ('\\', Some(digit @ '1'..='9')) => digit.to_digit(10).map_or(0, |digit| digit as usize),
            ('\\', Some('\\')) => {
                characters.next();
                made.push('\\');
                continue;
            }
            _ => {
                made.push(character);
                continue;
            }
        };
        characters.next();
        if let Some(Some(range)) = found.get(group) {
            made.push_str(&text[range.clone()]);
        }
    }
}

/// A pattern of SIMILAR TO as a regular expression that must fit all of a text.
fn similar(pattern: &str, escape: Option<char>) -> String {
    format!("(?s)^(?:{})$", similar_part(pattern, escape, false))
}

/// A pattern of SIMILAR TO with up to two marks, the escape character and a double quote, as a regular expression whose
/// group is what stands between them; the part in front fits as little as it can.
fn similar_parts(pattern: &str, escape: Option<char>) -> Result<String> {
    let Some(mark) = escape else { return Ok(similar(pattern, escape)) };
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != mark {
            part.push(character);
            continue;
        }
        match characters.next() {
            Some('"') => parts.push(std::mem::take(&mut part)),
            escaped => part.extend([Some(character), escaped].into_iter().flatten()),
        }
    }
    parts.push(part);
    let plain = |part: &str| similar_part(part, escape, false);
    Ok(match parts.as_slice() {
        [whole] => format!("(?s)^(?:{})$", plain(whole)),
        [front, rest @ ..] if rest.len() <= 2 => {
            let front = similar_part(front, escape, true);
            let behind = rest.get(1).map(|part| plain(part)).unwrap_or_default();
            format!("(?s)^(?:{front})({})(?:{behind})$", plain(&rest[0]))
        }
        _ => {
            let message = "SQL regular expression may not contain more than two escape-double-quote separators";
            return Err(QueryError::refused("2200C", message));
        }
    })
}

/// A part of a pattern, that fits as much as it can or, where it `is_lazy`, as little.
fn similar_part(pattern: &str, escape: Option<char>, is_lazy: bool) -> String {
    let mut written = String::new();
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
            '%' => written.push_str(if is_lazy { ".*?" } else { ".*" }),
            '*' | '+' | '?' | '}' if is_lazy => written.extend([character, '?']),
            '_' => written.push('.'),
            '(' => written.push_str("(?:"),
            '\\' | '.' | '^' | '$' => written.extend(['\\', character]),
            other => written.push(other),
        }
    }
    written
}

/// What stands between the marks of a pattern of SIMILAR TO that fits a text, or all of it.
fn similar_substring(text: &str, pattern: &str, escape: &str) -> Result<Value<'static>> {
    let mut characters = escape.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(QueryError::refused("22025", "invalid escape string"));
    }
    let pattern = similar_parts(pattern, escape)?;
    let pattern = regex::Regex::new(&pattern).map_err(|error| {
        let message = format!("invalid regular expression: {error}");
        QueryError::refused("2201B", message)
    })?;
    let found = pattern.captures(text).and_then(|found| found.get(1).or_else(|| found.get(0)));
    Ok(found.map_or(Value::Null, |part| part.as_str().to_owned().into()))
}
