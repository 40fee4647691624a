//! `unistr`: characters by their numbers in text, `\0041`, `\+000041`, `\u0041` and `\U00000041`.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::SystemFunction;
use crate::error::{QueryError, Result};

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let unistr = SystemFunction::fallible("unistr", DataType::Text.into(), |given| match given {
        [Value::Text(text)] => Ok(unescaped(text)?.into()),
        _ => Ok(Value::Null),
    });
    vec![unistr.immutable().into_udf()]
}

fn unescaped(text: &str) -> Result<String> {
    let mut made = String::with_capacity(text.len());
    // The first half of a character of two.
    let mut high: Option<u32> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let escape = rest.strip_prefix('\\').filter(|behind| !behind.starts_with('\\'));
        let Some(escape) = escape else {
            if high.is_some() {
                return Err(bad_pair());
            }
            made.push(first);
            let is_doubled = first == '\\';
            rest = &rest[first.len_utf8() + usize::from(is_doubled)..];
            continue;
        };
        let (sign, count) = match escape.chars().next() {
            Some('+') => (1, 6),
            Some('u') => (1, 4),
            Some('U') => (1, 8),
            _ => (0, 4),
        };
        let digits = escape.get(sign..sign + count);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| {
            let hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.";
            QueryError::refused("42601", "invalid Unicode escape").hint(hint)
        })?;
        rest = &escape[sign + count..];
        let whole = match (high.take(), number) {
            (None, 0xD800..=0xDBFF) => {
                high = Some(number);
                continue;
            }
            (Some(high), 0xDC00..=0xDFFF) => 0x10000 + ((high - 0xD800) << 10) + (number - 0xDC00),
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(bad_pair()),
            (None, number) => number,
        };
        let character = char::from_u32(whole).filter(|character| *character != '\0');
        let told = || QueryError::refused("22023", "invalid Unicode escape value");
        made.push(character.ok_or_else(told)?);
    }
    match high {
        None => Ok(made),
        Some(_) => Err(bad_pair()),
    }
}

fn bad_pair() -> QueryError {
    QueryError::refused("42601", "invalid Unicode surrogate pair")
}
