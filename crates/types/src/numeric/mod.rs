//! Decimal numbers of any size, as PostgreSQL's `numeric`: up to 131072 digits before the point and 16383 after it,
//! NaN and both infinities. Each value keeps how many digits it is shown with after the point: 1.10 stays 1.10, and
//! equals 1.1.

mod arithmetic;
mod code;
mod text;

use std::cmp::Ordering;
use std::fmt;

use dashu_int::IBig;
use dashu_int::ops::{BitTest, UnsignedAbs};
use rust_decimal::Decimal;

pub use arithmetic::Divided;
pub use code::{check_code, comparable, key_length};
pub use text::NumericFault;

/// Most digits after the point.
pub const NUMERIC_SCALE_MAX: i32 = 16_383;
/// Most digits before the point.
pub const NUMERIC_DIGITS_MAX: i32 = 131_072;
/// Most digits that a column can declare, and most digits after the point, or zeros in front of it.
pub const NUMERIC_PRECISION_MAX: u16 = 1000;

/// A `numeric` value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// Below all numbers.
    NegativeInfinity,
    /// A number: its digits without the point, and how many of them stand behind it.
    Finite(IBig, u16),
    /// Above all numbers.
    Infinity,
    /// No number; equal to itself, and above infinity.
    NaN,
}

/// 10^`digits`.
#[must_use]
pub fn power_of_ten(digits: i32) -> IBig {
    let digits = u32::try_from(digits).unwrap_or(0);
    match 10u128.checked_pow(digits) {
        Some(small) => IBig::from(small),
        None => IBig::from(10).pow(usize::try_from(digits).unwrap_or(0)),
    }
}

/// How many decimal digits a number has; none for zero.
#[must_use]
pub fn digits_of(number: &IBig) -> i32 {
    if let Ok(small) = u128::try_from(number.clone().unsigned_abs()) {
        return small.checked_ilog10().map_or(0, |digits| digits.cast_signed() + 1);
    }
    i32::try_from(number.clone().unsigned_abs().to_string().len()).unwrap_or(i32::MAX)
}

impl Numeric {
    /// Zero, without digits after the point.
    pub const ZERO: Numeric = Numeric::Finite(IBig::ZERO, 0);

    /// The number `digits` times 10^-`scale`, if it is not too large.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn new(digits: impl Into<IBig>, scale: i32) -> Result<Numeric, NumericFault> {
        let digits = digits.into();
        let (digits, scale) = match scale < 0 {
            true => (digits * power_of_ten(-scale), 0),
            false => (digits, scale),
        };
        let shown = u16::try_from(scale).ok().filter(|_| scale <= NUMERIC_SCALE_MAX);
        // Digits are counted only where there may be too many.
        let is_short = digits.bit_len() < 400_000;
        match shown {
            Some(scale)
                if is_short || digits_of(&digits) - i32::from(scale) <= NUMERIC_DIGITS_MAX =>
            {
                Ok(Numeric::Finite(digits, scale))
            }
            _ => Err(NumericFault::Overflow),
        }
    }

    /// Digits shown after the point; none where there are no digits at all.
    #[must_use]
    pub fn scale(&self) -> Option<u16> {
        match self {
            Numeric::Finite(_, scale) => Some(*scale),
            _ => None,
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Finite(digits, _) if *digits == IBig::ZERO)
    }

    /// Less than zero, zero, or more; none of NaN.
    #[must_use]
    pub fn sign(&self) -> Option<Ordering> {
        match self {
            Numeric::NegativeInfinity => Some(Ordering::Less),
            Numeric::Finite(digits, _) => Some(digits.cmp(&IBig::ZERO)),
            Numeric::Infinity => Some(Ordering::Greater),
            Numeric::NaN => None,
        }
    }

    /// Whether there is nothing but zeros after the point.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Numeric::Finite(_, 0) => true,
            Numeric::Finite(digits, scale) => {
                digits.clone() % power_of_ten(i32::from(*scale)) == IBig::ZERO
            }
            _ => false,
        }
    }

    /// The number as a value of the small type, where it has space there; digits shown stay as many.
    #[must_use]
    pub fn to_decimal(&self) -> Option<Decimal> {
        let Numeric::Finite(digits, scale) = self else { return None };
        let digits = i128::try_from(digits.clone()).ok()?;
        Decimal::try_from_i128_with_scale(digits, u32::from(*scale)).ok()
    }

    /// The whole number, if it is one that has space; digits after the point are rounded, half away from zero.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        match self.rounded(0) {
            Numeric::Finite(digits, _) => i128::try_from(digits).ok(),
            _ => None,
        }
    }

    /// The nearest floating-point number; infinite where there is none.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NegativeInfinity => f64::NEG_INFINITY,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NaN => f64::NAN,
            Numeric::Finite(digits, scale) => {
                format!("{digits}e-{scale}").parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// The digits that a floating-point number is written with, fifteen that count.
    #[must_use]
    pub fn from_f64(number: f64) -> Numeric {
        Numeric::of_written(number, format!("{number:.14e}"))
    }

    /// The digits that a floating-point number of single precision is written with, six that count.
    #[must_use]
    pub fn from_f32(number: f32) -> Numeric {
        Numeric::of_written(f64::from(number), format!("{number:.5e}"))
    }

    fn of_written(number: f64, written: String) -> Numeric {
        if number.is_infinite() {
            return if number > 0.0 { Numeric::Infinity } else { Numeric::NegativeInfinity };
        }
        let read = written.parse::<Numeric>().map(|read| read.trimmed());
        read.unwrap_or(Numeric::NaN)
    }
}

impl From<Decimal> for Numeric {
    fn from(number: Decimal) -> Numeric {
        let scale = u16::try_from(number.scale()).unwrap_or(0);
        Numeric::Finite(IBig::from(number.mantissa()), scale)
    }
}

impl From<i64> for Numeric {
    fn from(number: i64) -> Numeric {
        Numeric::Finite(IBig::from(number), 0)
    }
}

impl From<i128> for Numeric {
    fn from(number: i128) -> Numeric {
        Numeric::Finite(IBig::from(number), 0)
    }
}

impl Numeric {
    fn rank(&self) -> u8 {
        match self {
            Numeric::NegativeInfinity => 0,
            Numeric::Finite(..) => 1,
            Numeric::Infinity => 2,
            Numeric::NaN => 3,
        }
    }

    /// The order of values, in which 1.10 equals 1.1. It is not that of `==`, which tells them apart.
    #[must_use]
    pub fn compare(&self, other: &Numeric) -> Ordering {
        match (self, other) {
            (Numeric::Finite(own, scale), Numeric::Finite(others, others_scale)) => {
                let (scale, others_scale) = (i32::from(*scale), i32::from(*others_scale));
                match scale.cmp(&others_scale) {
                    Ordering::Equal => own.cmp(others),
                    Ordering::Less => {
                        (own.clone() * power_of_ten(others_scale - scale)).cmp(others)
                    }
                    Ordering::Greater => {
                        own.cmp(&(others.clone() * power_of_ten(scale - others_scale)))
                    }
                }
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, scale) = match self {
            Numeric::NegativeInfinity => return formatter.write_str("-Infinity"),
            Numeric::Infinity => return formatter.write_str("Infinity"),
            Numeric::NaN => return formatter.write_str("NaN"),
            Numeric::Finite(digits, 0) => return write!(formatter, "{digits}"),
            Numeric::Finite(digits, scale) => (digits, usize::from(*scale)),
        };
        let written = digits.clone().unsigned_abs().to_string();
        let sign = if *digits < IBig::ZERO { "-" } else { "" };
        match written.len().checked_sub(scale).filter(|whole| *whole > 0) {
            Some(whole) => {
                write!(formatter, "{sign}{}.{}", &written[..whole], &written[whole..])
            }
            None => write!(formatter, "{sign}0.{written:0>scale$}"),
        }
    }
}

#[cfg(test)]
mod tests;
