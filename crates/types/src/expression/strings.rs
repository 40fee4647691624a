//! Functions of texts. Positions and lengths count characters.

use std::borrow::Cow;

use super::evaluate::EvaluationError;

/// What is trimmed: at the start, at the end.
pub(super) fn trimmed<'t>(
    text: Cow<'t, str>,
    of: &str,
    at_start: bool,
    at_end: bool,
) -> Cow<'t, str> {
    let is_trimmed = |character: char| of.contains(character);
    let cut = |text: &str| -> (usize, usize) {
        let start = match at_start {
            true => text.len() - text.trim_start_matches(is_trimmed).len(),
            false => 0,
        };
        let end = match at_end {
            true => text.trim_end_matches(is_trimmed).len(),
            false => text.len(),
        };
        (start, end.max(start))
    };
    let (start, end) = cut(&text);
    part(text, start, end)
}

fn part(text: Cow<'_, str>, start: usize, end: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}

/// Where the character of this number begins, from 0; the end for one that is not there.
fn place(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// How many characters from the start; counted from the end if below zero.
fn counted(text: &str, count: i32) -> usize {
    let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    match count {
        0.. => magnitude,
        _ => text.chars().count().saturating_sub(magnitude),
    }
}

pub(super) fn left(text: Cow<'_, str>, count: i32) -> Cow<'_, str> {
    let end = place(&text, counted(&text, count));
    part(text, 0, end)
}

pub(super) fn right(text: Cow<'_, str>, count: i32) -> Cow<'_, str> {
    let kept = counted(&text, count);
    let start = place(&text, text.chars().count().saturating_sub(kept));
    let end = text.len();
    part(text, start, end)
}

pub(super) fn substring(
    text: Cow<'_, str>,
    start: i32,
    length: Option<i32>,
) -> Result<Cow<'_, str>, EvaluationError> {
    let first = i64::from(start) - 1;
    let end = match length {
        Some(length @ ..0) => return Err(EvaluationError::NegativeLength(length)),
        Some(length) => first + i64::from(length),
        None => i64::MAX,
    };
    let at = |character: i64| place(&text, usize::try_from(character).unwrap_or(0));
    let (start, end) = (at(first), at(end));
    Ok(part(text, start.min(end), end))
}

/// From 1 on; 0 where it is not there.
pub(super) fn position(text: &str, sought: &str) -> i32 {
    let found = text.find(sought).map_or(0, |at| text[..at].chars().count() + 1);
    i32::try_from(found).unwrap_or(i32::MAX)
}

/// `%` is anything, `_` one character, and `\` stands in front of what is meant literally. Goes back only to the
/// last `%`, so it takes at most the product of the lengths.
pub(super) fn is_like(text: &str, pattern: &str) -> Result<bool, EvaluationError> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut last = None;
    loop {
        let mut rest = pattern.clone();
        let matches = match rest.next() {
            Some('%') => {
                pattern = rest.clone();
                last = Some((text.clone(), rest));
                continue;
            }
            Some('_') => text.next().is_some(),
            Some('\\') => match rest.next() {
                Some(wanted) => text.next() == Some(wanted),
                None if text.as_str().is_empty() => false,
                None => return Err(EvaluationError::BadPattern),
            },
            Some(wanted) => text.next() == Some(wanted),
            None if text.as_str().is_empty() => return Ok(true),
            None => false,
        };
        if matches {
            pattern = rest;
            continue;
        }
        let Some((from, after)) = &mut last else { return Ok(false) };
        if from.next().is_none() {
            return Ok(false);
        }
        (text, pattern) = (from.clone(), after.clone());
    }
}
