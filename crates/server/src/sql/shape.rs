//! The shape of a statement: its text with parameters in place of constants. A client that writes the constants of
//! each call into the text sends one shape again and again, and its plan is made once.
//!
//! Only what is surely a constant by itself becomes a parameter: digits, or a text in plain quotes, behind `=`, `<`,
//! `>`, `(`, a comma, AND, BETWEEN or LIMIT, and before a comma, `)`, a word or the end. Everything else stays as it is
//! written, and is a part of the shape. Texts with comments, parameters, several statements, or constants of other
//! forms have no shape.
//!
//! Whether a plan of the shape means the same as one of the text is not decided here: see
//! [`Plan::operands`](crate::execute::plan::Plan::operands).

use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;

/// Longer texts have no shape: they are seldom sent twice, and what is kept of them would be large.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Longer shapes are none.
const SHAPE_BYTES_MAX: usize = 2048;
/// Digits of a number, at most: more may be no 64-bit number.
const DIGITS_MAX: usize = 18;

/// A statement with parameters in place of its constants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// With `$1` and so on.
    pub(crate) text: String,
    pub(crate) constants: Vec<Constant>,
    /// The constants one behind the other, without quotes.
    pub(crate) values: Bytes,
}

/// A constant that became a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    /// Where it is among the values.
    pub(crate) place: Range<usize>,
    /// Whether it was written without quotes.
    pub(crate) is_number: bool,
}

/// What may stand in front of a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Something behind which a constant is one by itself.
    Opening,
    /// The same, and a minus sign.
    Minus,
    Other,
}

/// The shape of a text; none if it has none, or no constants.
pub(crate) fn of(text: &str) -> Option<Shape> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let text = text.trim_end_matches([' ', '\t', '\r', '\n', ';']);
    let bytes = text.as_bytes();
    let (mut shape, mut values) = (String::with_capacity(text.len()), Vec::new());
    let mut constants = Vec::new();
    let (mut at, mut copied, mut before) = (0, 0, Before::Other);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                // A minus sign belongs to the digits right behind it alone.
                if before == Before::Minus {
                    before = Before::Other;
                }
            }
            b'\'' => {
                let first = values.len();
                at = quoted(bytes, at, &mut values)?;
                // A text that goes on behind a line break.
                if next_of(bytes, at) == Some(b'\'') {
                    return None;
                }
                match before == Before::Opening && is_closed(bytes, at) {
                    true => {
                        let place = first..values.len();
                        constants.push(Constant { place, is_number: false });
                        put(&mut shape, &text[copied..start], constants.len());
                        copied = at;
                    }
                    false => values.truncate(first),
                }
                before = Before::Other;
            }
            b'0'..=b'9' => {
                at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let is_short = at - start <= DIGITS_MAX;
                if before != Before::Other && is_short && is_closed(bytes, at) {
                    // The sign stands right before.
                    let from = start - usize::from(before == Before::Minus);
                    let first = values.len();
                    values.extend_from_slice(&bytes[from..at]);
                    constants.push(Constant { place: first..values.len(), is_number: true });
                    put(&mut shape, &text[copied..from], constants.len());
                    copied = at;
                } else {
                    // The rest of a number, or of something that begins like one.
                    at += word(&bytes[at..]);
                }
                before = Before::Other;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
            b'$' | b';' | b'\\' => return None,
            b'-' => {
                at += 1;
                let is_sign = before == Before::Opening;
                before = if is_sign { Before::Minus } else { Before::Other };
            }
            b'"' => {
                at = quoted(bytes, at, &mut Vec::new())?;
                before = Before::Other;
            }
            b'=' | b'<' | b'>' | b'(' | b',' => {
                at += 1;
                before = Before::Opening;
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii() => {
                at += word(&bytes[at..]);
                let written = &text[start..at];
                // E'', U&'', B'', X'' and N''.
                if matches!(bytes.get(at), Some(b'\'' | b'&')) {
                    return None;
                }
                let opens = ["and", "between", "limit"];
                let is_opening = opens.iter().any(|word| written.eq_ignore_ascii_case(word));
                before = if is_opening { Before::Opening } else { Before::Other };
            }
            _ => {
                at += 1;
                before = Before::Other;
            }
        }
    }
    if constants.is_empty() {
        return None;
    }
    shape.push_str(&text[copied..]);
    let shape = Shape { text: shape, constants, values: values.into() };
    (shape.text.len() <= SHAPE_BYTES_MAX).then_some(shape)
}

fn put(shape: &mut String, before: &str, number: usize) {
    shape.push_str(before);
    // A text takes everything.
    let _ = write!(shape, "${number}");
}

/// Reads what stands in quotes from `at` on; where it ends. None if it does not.
fn quoted(bytes: &[u8], at: usize, value: &mut Vec<u8>) -> Option<usize> {
    let quote = bytes[at];
    let mut rest = at + 1;
    loop {
        let length = bytes[rest..].iter().position(|byte| *byte == quote)?;
        value.extend_from_slice(&bytes[rest..rest + length]);
        rest += length + 1;
        if bytes.get(rest) != Some(&quote) {
            return Some(rest);
        }
        value.push(quote);
        rest += 1;
    }
}

/// The bytes of a name, a word or a number from the beginning on.
fn word(bytes: &[u8]) -> usize {
    let is_of_word = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || **byte == b'_' || **byte == b'.' || !byte.is_ascii()
    };
    bytes.iter().take_while(is_of_word).count()
}

/// The next byte that is no blank.
fn next_of(bytes: &[u8], at: usize) -> Option<u8> {
    bytes[at..].iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Whether a constant that ends here is one by itself.
fn is_closed(bytes: &[u8], at: usize) -> bool {
    // A letter right behind digits belongs to them.
    let is_apart = bytes
        .get(at)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_' && *byte != b'.');
    let next = next_of(bytes, at);
    is_apart && next.is_none_or(|byte| matches!(byte, b',' | b')') || byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape and its constants, numbers as they are and texts in quotes.
    fn shape(text: &str) -> Option<(String, Vec<String>)> {
        let shape = of(text)?;
        let shown = |constant: &Constant| {
            let value = std::str::from_utf8(&shape.values[constant.place.clone()]).unwrap();
            if constant.is_number { value.to_owned() } else { format!("'{value}'") }
        };
        let constants = shape.constants.iter().map(shown).collect();
        Some((shape.text, constants))
    }

    #[test]
    fn constants_by_themselves_become_parameters() {
        for (text, wanted, constants) in [
            (
                "INSERT INTO t (a, b) VALUES (1, 'x'), (-2, 'it''s') ;",
                "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)",
                ["1", "'x'", "-2", "'it's'"].as_slice(),
            ),
            ("SELECT a FROM t WHERE id=17", "SELECT a FROM t WHERE id=$1", &["17"]),
            (
                "SELECT a FROM t WHERE id BETWEEN 1 AND 9 ORDER BY a LIMIT 5",
                "SELECT a FROM t WHERE id BETWEEN $1 AND $2 ORDER BY a LIMIT $3",
                &["1", "9", "5"],
            ),
            ("UPDATE t SET k=k+1 WHERE id=7", "UPDATE t SET k=k+1 WHERE id=$1", &["7"]),
            (
                "SELECT \"a\"\"1\" FROM t1 WHERE b IN ('ü',2)",
                "SELECT \"a\"\"1\" FROM t1 WHERE b IN ($1,$2)",
                &["'ü'", "2"],
            ),
            ("SELECT a FROM t WHERE x >= -3", "SELECT a FROM t WHERE x >= $1", &["-3"]),
        ] {
            let constants = constants.iter().map(|&it| it.to_owned()).collect();
            assert_eq!(shape(text), Some((wanted.to_owned(), constants)), "{text}");
        }
    }

    #[test]
    fn what_is_more_than_a_constant_stays_as_it_is_written() {
        for (text, wanted) in [
            ("SELECT a + 1 FROM t WHERE id = 1", "SELECT a + 1 FROM t WHERE id = $1"),
            ("UPDATE t SET a = 1 + a WHERE id = 1", "UPDATE t SET a = 1 + a WHERE id = $1"),
            ("UPDATE t SET a = 1.5 WHERE id = 1", "UPDATE t SET a = 1.5 WHERE id = $1"),
            (
                "UPDATE t SET a = 1e5, b = .5 WHERE id = 1",
                "UPDATE t SET a = 1e5, b = .5 WHERE id = $1",
            ),
            (
                "UPDATE t SET a = '1'::jsonb WHERE id = 1",
                "UPDATE t SET a = '1'::jsonb WHERE id = $1",
            ),
            (
                "UPDATE t SET a = date '2020-01-01' WHERE id = 1",
                "UPDATE t SET a = date '2020-01-01' WHERE id = $1",
            ),
            ("UPDATE t SET a = - 5 WHERE id = 1", "UPDATE t SET a = - 5 WHERE id = $1"),
            ("UPDATE t SET a = 0x1F WHERE id = 1", "UPDATE t SET a = 0x1F WHERE id = $1"),
            (
                "UPDATE t SET a = 1234567890123456789 WHERE id = 1",
                "UPDATE t SET a = 1234567890123456789 WHERE id = $1",
            ),
        ] {
            assert_eq!(shape(text), Some((wanted.to_owned(), vec!["1".to_owned()])), "{text}");
        }
    }

    #[test]
    fn other_texts_have_no_shape() {
        let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(TEXT_BYTES_MAX));
        for text in [
            "",
            "BEGIN",
            "SELECT a FROM t",
            "SELECT a FROM t WHERE id = $1 AND b = 5",
            "SELECT a FROM t WHERE id = 1; SELECT 2",
            "SELECT a FROM t WHERE id = 1 -- one",
            "SELECT a /* one */ FROM t WHERE id = 1",
            "SELECT a FROM t WHERE b = E'x' AND id = 1",
            "SELECT a FROM t WHERE b = U&'x' AND id = 1",
            "SELECT a FROM t WHERE b = $$x$$ AND id = 1",
            "SELECT a FROM t WHERE b = 'x'\n'y' AND id = 1",
            "SELECT a FROM t WHERE b = 'x",
            "SELECT a FROM t WHERE \"b = 1",
            long.as_str(),
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    fn constants() -> impl Strategy<Value = Vec<String>> {
        let number =
            (-999_999_999_999_999_999..=999_999_999_999_999_999_i64).prop_map(|it| it.to_string());
        let text = "[^\\\\]{0,12}".prop_map(|it| format!("'{}'", it.replace('\'', "''")));
        prop::collection::vec(prop_oneof![number, text], 1..8)
    }

    proptest! {
        #[test]
        fn values_of_an_insert_are_its_constants(written in constants()) {
            let text = format!("INSERT INTO t VALUES ({})", written.join(", "));
            let (shape, found) = shape(&text).unwrap();
            let parameters: Vec<String> = (1..=written.len()).map(|n| format!("${n}")).collect();
            prop_assert_eq!(shape, format!("INSERT INTO t VALUES ({})", parameters.join(", ")));
            let wanted: Vec<String> = written.iter().map(|it| it.replace("''", "'")).collect();
            let unquoted: Vec<String> =
                wanted.iter().zip(&written).map(|(it, whole)| match whole.as_str() {
                    "''" => whole.clone(),
                    _ if whole.starts_with('\'') => format!("'{}'", whole[1..whole.len() - 1].replace("''", "'")),
                    _ => it.clone(),
                }).collect();
            prop_assert_eq!(found, unquoted);
        }

        #[test]
        fn no_text_is_more_than_without_a_shape(text in any::<String>()) {
            let _ = of(&text);
        }

        /// With its constants back in their places the shape is the text again.
        #[test]
        fn a_shape_and_its_constants_are_the_text(text in "[a-z=<>(), '0-9-]{0,60}") {
            if let Some(shape) = of(&text) {
                let mut back = shape.text.clone();
                for (number, constant) in shape.constants.iter().enumerate().rev() {
                    let value = std::str::from_utf8(&shape.values[constant.place.clone()]).unwrap();
                    let written = match constant.is_number {
                        true => value.to_owned(),
                        false => format!("'{}'", value.replace('\'', "''")),
                    };
                    back = back.replace(&format!("${}", number + 1), &written);
                }
                prop_assert_eq!(back, text.trim_end_matches([' ', ';']));
            }
        }
    }
}
