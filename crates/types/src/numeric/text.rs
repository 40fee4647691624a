//! Numbers as text.

use std::str::FromStr;

use dashu_int::IBig;

use super::Numeric;

/// Why a number cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumericFault {
    /// The text is no number.
    Syntax,
    /// It has more digits than any number may have.
    Overflow,
    /// It has more digits before the point than its column.
    Field {
        /// Digits in all.
        precision: u16,
        /// Digits after the point.
        scale: i16,
        /// Whether it has no digits at all.
        is_infinite: bool,
    },
}

impl NumericFault {
    /// What PostgreSQL says; of text that is no number it says more.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            NumericFault::Syntax => "invalid input syntax for type numeric",
            NumericFault::Overflow => "value overflows numeric format",
            NumericFault::Field { .. } => "numeric field overflow",
        }
    }

    /// What PostgreSQL says further.
    #[must_use]
    pub fn detail(self) -> Option<String> {
        let NumericFault::Field { precision, scale, is_infinite } = self else { return None };
        let field = format!("A field with precision {precision}, scale {scale}");
        Some(match (is_infinite, i32::from(precision) - i32::from(scale)) {
            (true, _) => format!("{field} cannot hold an infinite value."),
            (false, 0) => format!("{field} must round to an absolute value less than 1."),
            (false, digits) => {
                format!("{field} must round to an absolute value less than 10^{digits}.")
            }
        })
    }
}

/// Exponents from which on PostgreSQL takes a text for none that is a number.
const EXPONENT_MAX: i64 = (i32::MAX / 2) as i64;

impl FromStr for Numeric {
    type Err = NumericFault;

    fn from_str(text: &str) -> Result<Numeric, NumericFault> {
        let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let (is_negative, size) = match text.strip_prefix(['+', '-']) {
            Some(size) => (text.starts_with('-'), size),
            None => (false, text),
        };
        if !size.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            return match size.to_ascii_lowercase().as_str() {
                "nan" if size.len() == text.len() => Ok(Numeric::NaN),
                "infinity" | "inf" if is_negative => Ok(Numeric::NegativeInfinity),
                "infinity" | "inf" => Ok(Numeric::Infinity),
                _ => Err(NumericFault::Syntax),
            };
        }
        let (digits, exponent) = match size.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, Some(exponent)),
            None => (size, None),
        };
        let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.len() + behind.len() == 0 || !are_digits(whole) || !are_digits(behind) {
            return Err(NumericFault::Syntax);
        }
        let exponent = exponent.map_or(Ok(0), read_exponent)?;
        let scale = i64::try_from(behind.len()).map_err(|_| NumericFault::Overflow)? - exponent;
        let scale = i32::try_from(scale).map_err(|_| NumericFault::Overflow)?;
        let written = format!("{whole}{behind}");
        let significant = written.trim_start_matches('0');
        if significant.is_empty() {
            return Numeric::new(0, scale.max(0));
        }
        // What is too large is not computed first.
        let in_front = i32::try_from(significant.len()).unwrap_or(i32::MAX).saturating_sub(scale);
        if in_front > super::NUMERIC_DIGITS_MAX || scale > super::NUMERIC_SCALE_MAX {
            return Err(NumericFault::Overflow);
        }
        let number = match significant.parse::<u128>() {
            Ok(small) => IBig::from(small),
            Err(_) => significant.parse::<IBig>().map_err(|_| NumericFault::Syntax)?,
        };
        Numeric::new(if is_negative { -number } else { number }, scale)
    }
}

fn read_exponent(written: &str) -> Result<i64, NumericFault> {
    let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(NumericFault::Syntax);
    }
    let exponent: i64 = written.parse().map_err(|_| NumericFault::Overflow)?;
    match exponent.abs() < EXPONENT_MAX {
        true => Ok(exponent),
        false => Err(NumericFault::Overflow),
    }
}
