//! Arrays in the text that PostgreSQL writes: `{1,NULL,"a b"}`. A value is this text, whatever its elements are. It has
//! one dimension.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::{DataType, Value, text};

/// Elements of an array, none for NULL.
pub type Elements<'t> = Vec<Option<Cow<'t, str>>>;

/// What is wrong with a text that is no array, or one of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed array literal: one is written as {{1,NULL,\"a b\"}}")]
pub struct MalformedArray;

/// Types of elements, each kept once for the whole process: a type of arrays is copied everywhere.
static ELEMENTS: LazyLock<RwLock<HashSet<&'static DataType>>> = LazyLock::new(RwLock::default);

impl DataType {
    /// The type of arrays whose elements are of this type. None for arrays, and for types that
    /// someone made, which may get other names.
    #[must_use]
    pub fn array(self) -> Option<DataType> {
        if matches!(self, DataType::Array(_) | DataType::Enum(_) | DataType::Composite(_)) {
            return None;
        }
        let mut elements = ELEMENTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = elements.get(&self) {
            return Some(DataType::Array(known));
        }
        let made: &'static DataType = Box::leak(Box::new(self));
        elements.insert(made);
        Some(DataType::Array(made))
    }
}

/// Whether a text is an array of elements of a type; else why it is not.
pub(crate) fn check(element: DataType, written: &str) -> Result<(), Box<str>> {
    for element_text in read_array(written).map_err(|fault| fault.to_string())?.iter().flatten() {
        let read = text::parse(element, element_text).map_err(|fault| fault.to_string())?;
        // An array is kept as it is written, so nothing is left out of its elements.
        if let (DataType::Varchar(limit), Value::Text(read)) = (element, read)
            && read.len() < element_text.len()
        {
            return Err(format!("{element_text:?} has more than {limit} characters").into());
        }
    }
    Ok(())
}

/// Reads the elements of an array.
///
/// # Errors
/// Text that is no array, or one of arrays.
pub fn read_array(written: &str) -> Result<Elements<'_>, MalformedArray> {
    let malformed = || MalformedArray;
    let written = without_bounds(written.trim_matches(is_space)).ok_or_else(malformed)?;
    let inner = written.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner.ok_or_else(malformed)?.trim_start_matches(is_space);
    let mut elements = Elements::new();
    while !rest.is_empty() {
        let (element, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = quoted_element(quoted).ok_or_else(malformed)?;
                (Some(text), after.trim_start_matches(is_space))
            }
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                let text = text.trim_end_matches(is_space);
                if text.is_empty() || text.contains(['{', '}', '"', '\\']) {
                    return Err(malformed());
                }
                (Some(Cow::Borrowed(text)).filter(|text| !text.eq_ignore_ascii_case("null")), after)
            }
        };
        elements.push(element);
        rest = match after.strip_prefix(',') {
            Some(after) if !after.trim_start_matches(is_space).is_empty() => {
                after.trim_start_matches(is_space)
            }
            None if after.is_empty() => after,
            _ => return Err(malformed()),
        };
    }
    Ok(elements)
}

/// What PostgreSQL passes over around elements, and writes in quotes.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// An array behind the bounds that may be written in front of it, `[1:2]=`. Elements are counted from 1 here, so no
/// other first bound is taken.
fn without_bounds(written: &str) -> Option<&str> {
    let Some(bounds) = written.strip_prefix('[') else { return Some(written) };
    let (bounds, array) = bounds.split_once(']')?;
    let array = array.trim_start_matches(is_space).strip_prefix('=')?.trim_start_matches(is_space);
    let (first, last) = bounds.split_once(':').unwrap_or(("1", bounds));
    let (first, last): (i64, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let count = read_array(array).ok()?.len();
    (first == 1 && count == last && count > 0).then_some(array)
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
            matches!(character, '{' | '}' | ',' | '"' | '\\') || is_space(character)
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

    #[test]
    fn a_type_of_elements_has_one_type_of_arrays() {
        let numbers = DataType::Int32.array().expect("a type");
        assert_eq!(Some(numbers), DataType::Int32.array());
        assert_ne!(Some(numbers), DataType::Int64.array());
        assert_eq!(numbers.array(), None);
        assert_eq!("int[]".parse(), Ok(numbers));
        assert_eq!("int[3][]".parse(), Ok(numbers));
        assert!("int[x]".parse::<DataType>().is_err());
        assert_eq!(numbers.to_string().parse(), Ok(numbers));
    }

    #[test]
    fn elements_are_of_their_type() {
        assert!(check(DataType::Int16, "{1,null,-7}").is_ok());
        assert!(check(DataType::Int16, "{1,40000}").is_err());
        assert!(check(DataType::Varchar(2), "{ab,abc}").is_err());
    }
}
