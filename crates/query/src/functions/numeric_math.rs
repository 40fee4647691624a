//! `exp`, `ln`, `log`, `power` and `sqrt` of `numeric`. The digits come from a library; how many of them there are
//! behind the point is PostgreSQL's rule: at least sixteen that count, by an estimate of how large the result is.

use std::f64::consts::LN_10;

use dashu_float::DBig;
use dashu_float::round::mode::HalfAway;
use dashu_int::IBig;
use dashu_int::ops::{SquareRoot, UnsignedAbs};

use crate::error::{QueryError, Result};

type Context = dashu_float::Context<HalfAway>;

/// Digits that results are computed with, at least and at most: what a value has space for on both sides of the point,
/// and what is lost between numbers that are nearly the same.
const PRECISION_MIN: i32 = 30;
const PRECISION_MAX: i32 = 120;
/// Digits more than those that are wanted, as nothing is wrong by half of the last one.
const GUARD_DIGITS: i32 = 15;
/// Digits that count, at least.
const DIGITS_MIN: i32 = 16;
/// Digits that a value has space for.
const DIGITS_MAX: usize = 28;
/// Digits that a column of an answer has space for.
const COLUMN_DIGITS_MAX: usize = 38;
/// Digits in front of the point from which on PostgreSQL has no `numeric`.
const OVERFLOW_DIGITS: f64 = 131_072.0;
/// Exponents of e from which on PostgreSQL takes the result for infinite, or for zero.
const EXPONENT_MAX: f64 = 6000.0;
/// Decimal digits of each digit that PostgreSQL computes with.
const DECIMAL_DIGITS: i32 = 4;
#[expect(clippy::approx_constant, reason = "with the digits that PostgreSQL computes with")]
const LOG10_OF_E: f64 = 0.434_294_481_903_252;

/// A decimal number with so many digits behind the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numeric {
    value: IBig,
    scale: i32,
}

/// What PostgreSQL knows of how large a number is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitude {
    /// The place of the first digit of four decimal ones, counted from the point.
    pub(super) weight: i32,
    pub(super) first: u32,
    second: u32,
    /// The place of the first decimal digit, counted from the point.
    exponent: i32,
}

impl Numeric {
    pub(crate) fn new(value: impl Into<IBig>, scale: i32) -> Numeric {
        Numeric { value: value.into(), scale }
    }

    pub(crate) fn negated(&self) -> Numeric {
        Numeric { value: -self.value.clone(), scale: self.scale }
    }

    pub(super) fn magnitude(&self) -> Magnitude {
        let digits = self.value.to_string();
        let digits = digits.trim_start_matches('-').as_bytes();
        if self.is_zero() {
            return Magnitude { weight: 0, first: 0, second: 0, exponent: 0 };
        }
        let exponent = i32::try_from(digits.len()).unwrap_or(i32::MAX) - self.scale - 1;
        let mut rest =
            digits.iter().map(|digit| u32::from(digit - b'0')).chain(std::iter::repeat(0));
        let mut next =
            |count: i32| (0..count).fold(0, |made, _| made * 10 + rest.next().unwrap_or(0));
        let first = next(exponent.rem_euclid(DECIMAL_DIGITS) + 1);
        let weight = exponent.div_euclid(DECIMAL_DIGITS);
        Magnitude { weight, first, second: next(DECIMAL_DIGITS), exponent }
    }

    fn is_zero(&self) -> bool {
        self.value == IBig::ZERO
    }

    fn is_negative(&self) -> bool {
        self.value < IBig::ZERO
    }

    fn unit(&self) -> IBig {
        power_of_ten(self.scale)
    }

    /// Whether there are only zeros behind the point.
    pub(crate) fn is_whole(&self) -> bool {
        self.value.clone() % self.unit() == IBig::ZERO
    }

    fn float(&self) -> DBig {
        DBig::from_parts(self.value.clone(), exponent_of(self.scale))
    }

    fn approximate(&self) -> f64 {
        self.float().to_f64().value()
    }

    /// A column's value with so many digits behind the point, and those that the number has.
    ///
    /// # Errors
    /// More digits than there is space for are not left out (`0A000`).
    pub(crate) fn with_scale(&self, scale: i8) -> Result<i128> {
        let mut value = self.value.clone();
        if self.scale > scale.into() {
            let unit = power_of_ten(self.scale - i32::from(scale));
            if value.clone() % &unit != IBig::ZERO {
                return Err(too_many_digits());
            }
            value /= unit;
        } else {
            value *= power_of_ten(i32::from(scale) - self.scale);
        }
        let digits = value.to_string();
        let digits = digits.trim_start_matches('-');
        if digits.len() > COLUMN_DIGITS_MAX || digits.trim_end_matches('0').len() > DIGITS_MAX {
            return Err(too_many_digits());
        }
        i128::try_from(value).map_err(|_| too_many_digits())
    }

    /// The number as a constant: its value and its digits behind the point.
    ///
    /// # Errors
    /// More digits than there is space for (`0A000`).
    pub(crate) fn constant(&self) -> Result<(i128, i8)> {
        let scale = i8::try_from(self.scale).map_err(|_| too_many_digits())?;
        if usize::try_from(scale).is_ok_and(|scale| scale > DIGITS_MAX) {
            return Err(too_many_digits());
        }
        // Zeros at the end make space for digits in front.
        let mut kept = (0..=scale).rev().map(|scale| (self.with_scale(scale), scale));
        kept.find_map(|(value, scale)| Some((value.ok()?, scale))).ok_or_else(too_many_digits)
    }
}

fn too_many_digits() -> QueryError {
    let message = "a numeric result has more digits than are supported: cast to double precision";
    QueryError::NotSupported { message: message.to_owned() }
}

fn overflow() -> QueryError {
    QueryError::OutOfRange { message: "value overflows numeric format".to_owned() }
}

fn power_of_ten(digits: i32) -> IBig {
    IBig::from(10).pow(usize::try_from(digits).unwrap_or(0))
}

fn exponent_of(scale: i32) -> isize {
    isize::try_from(-scale).unwrap_or(isize::MIN)
}

/// Computes with so many digits that count, and some more.
fn context(digits: i32) -> Context {
    let digits = digits.saturating_add(GUARD_DIGITS).clamp(PRECISION_MIN, PRECISION_MAX);
    Context::new(usize::try_from(digits).unwrap_or(0))
}

/// Rounded half away from zero.
fn rounded(number: &DBig, scale: i32) -> Numeric {
    let rounded = number.quantize(exponent_of(scale)).value();
    let (value, exponent) = rounded.into_repr().into_parts();
    let zeros = i32::try_from(exponent).unwrap_or(i32::MAX).saturating_add(scale);
    Numeric { value: value * power_of_ten(zeros), scale }
}

/// As C casts to `int`: cut off.
#[expect(clippy::cast_possible_truncation, reason = "what is too large is bounded")]
fn cut(number: f64) -> i32 {
    number as i32
}

/// The square root.
pub(crate) fn square_root(number: &Numeric) -> Result<Numeric> {
    let weight = (number.magnitude().weight + 1) * DECIMAL_DIGITS / 2 - 1;
    let scale = (DIGITS_MIN - weight).max(number.scale).max(0);
    square_root_of_scale(number, scale)
}

pub(super) fn square_root_of_scale(number: &Numeric, scale: i32) -> Result<Numeric> {
    if number.is_negative() {
        return Err(QueryError::refused("2201F", "cannot take square root of a negative number"));
    }
    // Half of the last digit is found in whole numbers: a result that is nearly half of it is not rounded twice.
    let shift = 2 * scale - number.scale;
    let four = IBig::from(4) * &number.value;
    let square = match shift < 0 {
        true => four / power_of_ten(-shift),
        false => four * power_of_ten(shift),
    };
    let twice = IBig::from(square.unsigned_abs().sqrt());
    Ok(Numeric::new((twice + IBig::ONE) / IBig::from(2), scale))
}

/// e to the power of a number.
pub(crate) fn exponential(number: &Numeric) -> Result<Numeric> {
    let digits = number.approximate() * LOG10_OF_E;
    let scale = (DIGITS_MIN - cut(digits)).max(number.scale).max(0);
    exponential_of_scale(&number.float(), scale)
}

fn exponential_of_scale(number: &DBig, scale: i32) -> Result<Numeric> {
    let approximate = number.to_f64().value();
    if approximate >= EXPONENT_MAX {
        return Err(overflow());
    }
    let in_front = approximate * LOG10_OF_E;
    check_digits(in_front, scale)?;
    Ok(rounded(&context(cut(in_front) + scale + 1).exp(number.repr()).value(), scale))
}

/// Whether so many digits in front of the point, and behind it, are worth to be computed.
fn check_digits(in_front: f64, behind: i32) -> Result<()> {
    match in_front > 38.0 || behind > 38 {
        true => Err(too_many_digits()),
        false => Ok(()),
    }
}

/// The estimated place of the first decimal digit of the natural logarithm.
fn logarithm_exponent(number: &Numeric) -> i32 {
    let unit = number.unit();
    let ten_times = number.value.clone() * IBig::from(10);
    if (unit.clone() * IBig::from(9)..=unit.clone() * IBig::from(11)).contains(&ten_times) {
        // It is nearly what the number is above 1.
        return Numeric::new(number.value.clone() - unit, number.scale).magnitude().exponent;
    }
    let Magnitude { weight, first, second, .. } = number.magnitude();
    let digits = f64::from(first * 10_000 + second);
    let logarithm = digits.ln() + f64::from((weight - 1) * DECIMAL_DIGITS) * LN_10;
    cut(logarithm.abs().log10())
}

fn check_positive(number: &Numeric) -> Result<()> {
    if number.is_zero() {
        return Err(QueryError::refused("2201E", "cannot take logarithm of zero"));
    }
    if number.is_negative() {
        return Err(QueryError::refused("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(())
}

/// The natural logarithm of a positive number, with so many digits that count.
fn natural(number: &Numeric, digits: i32) -> DBig {
    // Of a number close to 1 its first digits cancel out.
    let digits = digits + (-logarithm_exponent(number)).max(0);
    context(digits).ln(number.float().repr()).value()
}

/// The natural logarithm.
pub(crate) fn natural_logarithm(number: &Numeric) -> Result<Numeric> {
    check_positive(number)?;
    let exponent = logarithm_exponent(number);
    let scale = (DIGITS_MIN - exponent).max(number.scale).max(0);
    Ok(rounded(&natural(number, exponent + scale + 1), scale))
}

/// The logarithm to a base.
pub(crate) fn logarithm(base: &Numeric, number: &Numeric) -> Result<Numeric> {
    check_positive(base)?;
    check_positive(number)?;
    let exponent = logarithm_exponent(number) - logarithm_exponent(base);
    let scale = (DIGITS_MIN - exponent).max(base.scale).max(number.scale).max(0);
    let digits = exponent + scale + 1;
    let (of_base, of_number) = (natural(base, digits), natural(number, digits));
    if of_base == DBig::ZERO {
        return Err(QueryError::DivisionByZero);
    }
    Ok(rounded(&context(digits).div(of_number.repr(), of_base.repr()).value(), scale))
}

/// A number to the power of another.
pub(crate) fn power(base: &Numeric, exponent: &Numeric) -> Result<Numeric> {
    if base.is_zero() && exponent.is_negative() {
        let message = "zero raised to a negative power is undefined";
        return Err(QueryError::refused("2201F", message));
    }
    let whole = exponent.value.clone() / exponent.unit();
    if exponent.is_whole()
        && let Ok(whole) = i32::try_from(whole.clone())
    {
        return whole_power(base, whole);
    }
    if base.is_zero() {
        return Ok(Numeric::new(0, DIGITS_MIN));
    }
    if base.is_negative() && !exponent.is_whole() {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(QueryError::refused("2201F", message));
    }
    let is_odd = base.is_negative() && whole % IBig::from(2) != IBig::ZERO;
    let size = Numeric::new(base.value.clone() * base.value.sign(), base.scale);
    let of_base = natural(&size, DIGITS_MIN);
    // PostgreSQL's estimate has eight digits of the logarithm, and tells of which scale the result is.
    let estimate_scale = (8 - logarithm_exponent(&size)).max(0);
    let estimate = rounded(&of_base, estimate_scale).float();
    let estimate = context(DIGITS_MIN).mul(estimate.repr(), exponent.float().repr()).value();
    let estimate = rounded(&estimate, estimate_scale).approximate();
    if estimate > EXPONENT_MAX * 1.01 {
        return Err(overflow());
    }
    let in_front = estimate * LOG10_OF_E;
    let scale = (DIGITS_MIN - cut(in_front)).max(base.scale).max(exponent.scale).max(0);
    check_digits(in_front, scale)?;
    // The digits of the product that are in front of the point do not count for the result.
    let digits = cut(in_front) + scale + cut(estimate.abs().log10()).max(0) + 2;
    let of_base = natural(&size, digits);
    let by = context(digits).mul(of_base.repr(), exponent.float().repr()).value();
    let made = exponential_of_scale(&by, scale)?;
    Ok(Numeric { value: if is_odd { -made.value } else { made.value }, scale })
}

fn whole_power(base: &Numeric, exponent: i32) -> Result<Numeric> {
    let scale = DIGITS_MIN.max(base.scale);
    if exponent == 0 {
        return Ok(Numeric::new(power_of_ten(scale), scale));
    }
    if base.is_zero() {
        return Ok(Numeric::new(0, scale));
    }
    let digits = base.approximate().abs().log10() * f64::from(exponent);
    if digits > OVERFLOW_DIGITS {
        return Err(overflow());
    }
    if digits + 1.0 < f64::from(-scale) {
        return Ok(Numeric::new(0, scale));
    }
    check_digits(digits, scale)?;
    let float = base.float();
    let context = context(cut(digits) + scale + 10);
    let made = context.powi(float.repr(), IBig::from(exponent.unsigned_abs())).value();
    let made = match exponent < 0 {
        true => context.div(DBig::ONE.repr(), made.repr()).value(),
        false => made,
    };
    Ok(rounded(&made, scale))
}

/// The variance of numbers by their count, their sum and the sum of their squares, which has twice as many digits
/// behind the point; or its square root.
pub(super) fn deviation(
    count: i64,
    sum: &Numeric,
    squares: &Numeric,
    is_sample: bool,
    is_root: bool,
) -> Result<Numeric> {
    let scale = squares.scale;
    let count = IBig::from(count);
    let of = count.clone() * &squares.value - &sum.value * &sum.value;
    if of <= IBig::ZERO {
        return Ok(Numeric::new(0, 0));
    }
    let by = if is_sample { count.clone() * (count - IBig::ONE) } else { count.clone() * count };
    let (of, by) = (Numeric::new(of, scale), Numeric::new(by, 0));
    let (of_size, by_size) = (of.magnitude(), by.magnitude());
    let weight = of_size.weight - by_size.weight - i32::from(of_size.first <= by_size.first);
    let scale = (DIGITS_MIN - weight * DECIMAL_DIGITS).max(scale).max(0);
    let digits = of_size.exponent - by_size.exponent + scale + 1;
    let variance = context(digits).div(of.float().repr(), by.float().repr()).value();
    let variance = rounded(&variance, scale);
    if is_root { square_root_of_scale(&variance, scale) } else { Ok(variance) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as it is written.
    fn number(written: &str) -> Numeric {
        let (whole, behind) = written.split_once('.').unwrap_or((written, ""));
        let value: IBig = format!("{whole}{behind}").parse().expect("digits");
        Numeric::new(value, i32::try_from(behind.len()).expect("few digits"))
    }

    #[test]
    fn the_digits_behind_the_point_are_as_many_as_postgresql_gives() {
        for (made, wanted) in [
            (exponential(&number("3.7")), "40.447304360067391"),
            (natural_logarithm(&number("1.0000001")), "0.00000009999999500000033"),
            (logarithm(&number("1.1"), &number("12345.678")), "98.846328279241536"),
            (power(&number("123.456"), &number("7.89")), "31771028258180977.309"),
            (power(&number("0.1"), &number("10")), "0.0000000001000000"),
            (square_root(&number("12345678901234567890")), "3513641828.8201443"),
        ] {
            assert_eq!(made.expect("a number"), number(wanted));
        }
    }

    #[test]
    fn a_deviation_is_the_root_of_the_rounded_variance() {
        let deviation =
            |is_root| deviation(3, &number("7"), &number("21"), true, is_root).expect("a number");
        assert_eq!(deviation(false), number("2.3333333333333333"));
        assert_eq!(deviation(true), number("1.5275252316519467"));
    }

    #[test]
    fn digits_that_there_is_no_space_for_are_not_left_out() {
        let is_refused = |made: Result<i128>| matches!(made, Err(QueryError::NotSupported { .. }));
        assert_eq!(number("1.5000").with_scale(1).expect("a number"), 15);
        assert!(is_refused(number("1.25").with_scale(1)));
        assert!(is_refused(number("12345678901234567890123456789").with_scale(0)));
    }

    #[test]
    fn a_constant_of_many_digits_has_fewer_zeros_behind_the_point() {
        let large = power(&number("10.0"), &number("25")).expect("a number");
        assert_eq!(large.constant().expect("a number"), (10i128.pow(37), 12));
    }
}
