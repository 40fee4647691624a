//! Arrays in the text that PostgreSQL writes: `{1,NULL,"a b"}`. On their way between clients and
//! DataFusion they are this text, whatever their elements are. They have one dimension.

use std::borrow::Cow;

use crate::error::{QueryError, Result};

/// Elements of an array, none for NULL.
pub type Elements<'t> = Vec<Option<Cow<'t, str>>>;

/// Reads the elements of an array.
///
/// # Errors
/// Text that is no array, or one of arrays.
pub fn read_array(written: &str) -> Result<Elements<'_>> {
    let malformed = || QueryError::BadText {
        message: format!("malformed array: {}", written.chars().take(80).collect::<String>()),
    };
    let inner = written.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner.ok_or_else(malformed)?.trim_start();
    let mut elements = Elements::new();
    while !rest.is_empty() {
        let (element, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = quoted_element(quoted).ok_or_else(malformed)?;
                (Some(text), after.trim_start())
            }
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                let text = text.trim_end();
                if text.is_empty() || text.contains(['{', '}', '"', '\\']) {
                    return Err(malformed());
                }
                (Some(Cow::Borrowed(text)).filter(|text| !text.eq_ignore_ascii_case("null")), after)
            }
        };
        elements.push(element);
        rest = match after.strip_prefix(',') {
            Some(after) if !after.trim_start().is_empty() => after.trim_start(),
            None if after.is_empty() => after,
            _ => return Err(malformed()),
        };
    }
    Ok(elements)
}

/// An element behind its first quote, and what follows the last.
fn quoted_element(quoted: &str) -> Option<(Cow<'_, str>, &str)> {
    let plain = quoted.find(['"', '\\'])?;
    if quoted[plain..].starts_with('"') {
        return Some((Cow::Borrowed(&quoted[..plain]), &quoted[plain + 1..]));
    }
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(text), &quoted[at + 1..])),
            '\\' => text.push(characters.next()?.1),
            other => text.push(other),
        }
    }
    None
}

/// Writes elements as an array.
pub fn write_array<'e>(elements: impl IntoIterator<Item = Option<&'e str>>) -> String {
    let mut written = String::from("{");
    for element in elements {
        if written.len() > 1 {
            written.push(',');
        }
        match element {
            None => written.push_str("NULL"),
            Some(text) if is_plain(text) => written.push_str(text),
            Some(text) => {
                written.push('"');
                written.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
                written.push('"');
            }
        }
    }
    written.push('}');
    written
}

/// Whether an element needs no quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.contains(|character: char| {
            matches!(character, '{' | '}' | ',' | '"' | '\\') || character.is_whitespace()
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(elements in prop::collection::vec(prop::option::of(".*"), 0..6)) {
            let written = write_array(elements.iter().map(Option::as_deref));
            let read = read_array(&written).expect("it was written here");
            let read: Vec<Option<String>> =
                read.into_iter().map(|element| element.map(Cow::into_owned)).collect();
            prop_assert_eq!(read, elements);
        }
    }

    #[test]
    fn text_that_is_no_array_is_refused() {
        for written in
            ["", "1", "{1", "{1,}", "{,1}", "{1,,2}", "{\"a}", "{\"a\"b}", "{{1}}", "{a\"b}"]
        {
            assert!(read_array(written).is_err(), "{written}");
        }
        assert_eq!(read_array(" { 1 , \"\" , null } ").expect("an array").len(), 3);
    }
}
