//! Bytes as PostgreSQL reads them: in hexadecimal digits behind `\\x`, or as text with octal numbers.

use crate::error::{QueryError, Result};

/// The bytes that a text stands for.
///
/// # Errors
/// What is no digit, half a byte (`22023`), and a backslash in front of anything else (`22P02`).
pub(crate) fn bytes_of(written: &str) -> Result<Vec<u8>> {
    match written.strip_prefix("\\x") {
        Some(digits) => of_digits(digits),
        None => of_escapes(written),
    }
}

/// Blanks may stand between two bytes.
pub(super) fn of_digits(digits: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.chars();
    while let Some(first) = rest.next() {
        if first.is_ascii_whitespace() {
            continue;
        }
        let high = digit(first)?;
        let odd = || refused("invalid hexadecimal data: odd number of digits".to_owned());
        let low = digit(rest.next().ok_or_else(odd)?)?;
        bytes.push(high << 4 | low);
    }
    Ok(bytes)
}

fn digit(letter: char) -> Result<u8> {
    let value = letter.to_digit(16).and_then(|value| u8::try_from(value).ok());
    value.ok_or_else(|| refused(format!("invalid hexadecimal digit: \"{letter}\"")))
}

fn refused(message: String) -> QueryError {
    QueryError::refused("22023", message)
}

pub(super) fn of_escapes(written: &str) -> Result<Vec<u8>> {
    let bad = || QueryError::refused("22P02", "invalid input syntax for type bytea");
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        if let Some(behind) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = behind;
            continue;
        }
        let [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', behind @ ..] = rest
        else {
            return Err(bad());
        };
        bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
        rest = behind;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::bytes::{escaped, shown_escaped};

    proptest! {
        #[test]
        fn bytes_are_read_as_they_are_written(bytes in any::<Vec<u8>>()) {
            prop_assert_eq!(bytes_of(&escaped(&bytes)).unwrap(), bytes.clone());
            prop_assert_eq!(bytes_of(&shown_escaped(&bytes)).unwrap(), bytes.clone());
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X} ")).collect();
            prop_assert_eq!(bytes_of(&format!("\\x{digits}")).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_no_byte_is_an_error() {
        for (written, state) in [
            ("\\xabc", "22023"),
            ("\\xag", "22023"),
            ("\\xa b", "22023"),
            ("a\\", "22P02"),
            ("\\400", "22P02"),
            ("\\x1é", "22023"),
        ] {
            let error = bytes_of(written).unwrap_err();
            assert!(format!("{error:?}").contains(state), "{written}: {error:?}");
        }
    }
}
