//! `exp`, `ln`, `log`, `power` and `sqrt` of `numeric`, and quotients. The digits come from a library; how many of them
//! there are behind the point is PostgreSQL's rule: at least sixteen that count, by an estimate of how large the
//! result is.

use std::cmp::Ordering;
use std::f64::consts::LN_10;

use dashu_float::DBig;
use dashu_float::round::mode::HalfAway;
use dashu_int::IBig;
use dashu_int::ops::{SquareRoot, UnsignedAbs};
use onrush::Numeric;
use onrush_types::numeric::power_of_ten;

use crate::error::{QueryError, Result};
use crate::numeric::{self, DISPLAY_SCALE_MAX};

type Context = dashu_float::Context<HalfAway>;

/// Digits that results are computed with at least.
const PRECISION_MIN: i32 = 30;
/// Digits more than those that are wanted, as nothing is wrong by half of the last one.
const GUARD_DIGITS: i32 = 15;
/// Digits that count, at least.
const DIGITS_MIN: i32 = 16;
/// Digits in front of the point from which on PostgreSQL has no `numeric`.
const OVERFLOW_DIGITS: f64 = 131_072.0;
/// Exponents of e from which on PostgreSQL takes the result for infinite, or for zero.
const EXPONENT_MAX: f64 = 6000.0;
/// Exponents of ten that its estimates end at.
const ESTIMATE_MAX: f64 = 2000.0;
/// Decimal digits of each digit that PostgreSQL computes with.
const DECIMAL_DIGITS: i32 = 4;
#[expect(clippy::approx_constant, reason = "with the digits that PostgreSQL computes with")]
const LOG10_OF_E: f64 = 0.434_294_481_903_252;

/// A decimal number with so many digits behind the point.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exact {
    value: IBig,
    scale: i32,
}

/// What PostgreSQL knows of how large a number is.
#[derive(Clone, Copy, Debug)]
struct Magnitude {
    /// The place of the first digit of four decimal ones, counted from the point.
    weight: i32,
    first: u32,
    second: u32,
    /// The place of the first decimal digit, counted from the point.
    exponent: i32,
}

/// The number, where it has digits.
fn exact(number: &Numeric) -> Option<Exact> {
    match number {
        Numeric::Finite(value, scale) => {
            Some(Exact { value: value.clone(), scale: i32::from(*scale) })
        }
        _ => None,
    }
}

impl Exact {
    fn new(value: impl Into<IBig>, scale: i32) -> Exact {
        Exact { value: value.into(), scale }
    }

    fn number(self) -> Result<Numeric> {
        Ok(Numeric::new(self.value, self.scale)?)
    }

    fn magnitude(&self) -> Magnitude {
        let digits = self.value.clone().unsigned_abs().to_string();
        let digits = digits.as_bytes();
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
    fn is_whole(&self) -> bool {
        self.value.clone() % self.unit() == IBig::ZERO
    }

    fn float(&self) -> DBig {
        DBig::from_parts(self.value.clone(), exponent_of(self.scale))
    }

    fn approximate(&self) -> f64 {
        self.float().to_f64().value()
    }
}

fn overflow() -> QueryError {
    QueryError::OutOfRange { message: "value overflows numeric format".to_owned() }
}

fn exponent_of(scale: i32) -> isize {
    isize::try_from(-scale).unwrap_or(isize::MIN)
}

/// Computes with so many digits that count, and some more.
fn context(digits: i32) -> Context {
    let digits = digits.saturating_add(GUARD_DIGITS).max(PRECISION_MIN);
    Context::new(usize::try_from(digits).unwrap_or(0))
}

/// Rounded half away from zero.
fn rounded(number: &DBig, scale: i32) -> Exact {
    let rounded = number.quantize(exponent_of(scale)).value();
    let (value, exponent) = rounded.into_repr().into_parts();
    let zeros = i32::try_from(exponent).unwrap_or(i32::MAX).saturating_add(scale);
    Exact { value: value * power_of_ten(zeros), scale }
}

/// As C casts to `int`: cut off.
#[expect(clippy::cast_possible_truncation, reason = "what is too large is bounded")]
fn cut(number: f64) -> i32 {
    number as i32
}

/// Digits behind the point that a result has.
fn shown(scale: i32, given: &[i32]) -> i32 {
    given.iter().copied().fold(scale.max(0), i32::max).min(DISPLAY_SCALE_MAX)
}

/// Digits behind the point of a quotient.
pub(super) fn quotient_scale(of: &Numeric, by: &Numeric) -> i32 {
    let (Some(of), Some(by)) = (exact(of), exact(by)) else { return 0 };
    let (of_size, by_size) = (of.magnitude(), by.magnitude());
    let weight = of_size.weight - by_size.weight - i32::from(of_size.first <= by_size.first);
    shown(DIGITS_MIN - weight * DECIMAL_DIGITS, &[of.scale, by.scale])
}

/// The quotient, with the digits that PostgreSQL gives it.
pub(crate) fn quotient(of: &Numeric, by: &Numeric) -> Result<Numeric> {
    numeric::quotient(of.divided(by, quotient_scale(of, by))?)
}

/// The square root.
pub(super) fn square_root(number: &Numeric) -> Result<Numeric> {
    if number.sign() == Some(Ordering::Less) {
        return Err(QueryError::refused("2201F", "cannot take square root of a negative number"));
    }
    let Some(number) = exact(number) else { return Ok(number.clone()) };
    let weight = (number.magnitude().weight + 1) * DECIMAL_DIGITS / 2 - 1;
    let scale = shown(DIGITS_MIN - weight, &[number.scale]);
    square_root_of_scale(&number, scale).number()
}

fn square_root_of_scale(number: &Exact, scale: i32) -> Exact {
    // Half of the last digit is found in whole numbers: a result that is nearly half of it is not rounded twice.
    let shift = 2 * scale - number.scale;
    let four = IBig::from(4) * &number.value;
    let square = match shift < 0 {
        true => four / power_of_ten(-shift),
        false => four * power_of_ten(shift),
    };
    let twice = IBig::from(square.unsigned_abs().sqrt());
    Exact::new((twice + IBig::ONE) / IBig::from(2), scale)
}

/// e to the power of a number.
pub(super) fn exponential(number: &Numeric) -> Result<Numeric> {
    let Some(number) = exact(number) else {
        let is_negative = *number == Numeric::NegativeInfinity;
        return Ok(if is_negative { Numeric::ZERO } else { number.clone() });
    };
    let digits = (number.approximate() * LOG10_OF_E).clamp(-ESTIMATE_MAX, ESTIMATE_MAX);
    let scale = shown(DIGITS_MIN - cut(digits), &[number.scale]);
    exponential_of_scale(&number.float(), scale)?.number()
}

fn exponential_of_scale(number: &DBig, scale: i32) -> Result<Exact> {
    let approximate = number.to_f64().value();
    if approximate.abs() >= EXPONENT_MAX {
        return if approximate > 0.0 { Err(overflow()) } else { Ok(Exact::new(0, scale)) };
    }
    let digits = cut(approximate * LOG10_OF_E) + scale + 1;
    if digits < -GUARD_DIGITS {
        return Ok(Exact::new(0, scale));
    }
    Ok(rounded(&context(digits).exp(number.repr()).value(), scale))
}

/// The estimated place of the first decimal digit of the natural logarithm.
fn logarithm_exponent(number: &Exact) -> i32 {
    let unit = number.unit();
    let ten_times = number.value.clone() * IBig::from(10);
    if (unit.clone() * IBig::from(9)..=unit.clone() * IBig::from(11)).contains(&ten_times) {
        // It is nearly what the number is above 1.
        return Exact::new(number.value.clone() - unit, number.scale).magnitude().exponent;
    }
    let Magnitude { weight, first, second, .. } = number.magnitude();
    let digits = f64::from(first * 10_000 + second);
    let logarithm = digits.ln() + f64::from((weight - 1) * DECIMAL_DIGITS) * LN_10;
    cut(logarithm.abs().log10())
}

fn check_positive(number: &Numeric) -> Result<()> {
    match number.sign() {
        Some(Ordering::Equal) => Err(QueryError::refused("2201E", "cannot take logarithm of zero")),
        Some(Ordering::Less) => {
            Err(QueryError::refused("2201E", "cannot take logarithm of a negative number"))
        }
        _ => Ok(()),
    }
}

/// The natural logarithm of a positive number, with so many digits that count.
fn natural(number: &Exact, digits: i32) -> DBig {
    // Of a number close to 1 its first digits cancel out.
    let digits = digits + (-logarithm_exponent(number)).max(0);
    context(digits).ln(number.float().repr()).value()
}

/// The natural logarithm.
pub(super) fn natural_logarithm(number: &Numeric) -> Result<Numeric> {
    check_positive(number)?;
    let Some(number) = exact(number) else { return Ok(number.clone()) };
    let exponent = logarithm_exponent(&number);
    let scale = shown(DIGITS_MIN - exponent, &[number.scale]);
    rounded(&natural(&number, exponent + scale + 1), scale).number()
}

/// The logarithm to a base.
pub(super) fn logarithm(base: &Numeric, number: &Numeric) -> Result<Numeric> {
    if *base == Numeric::NaN || *number == Numeric::NaN {
        return Ok(Numeric::NaN);
    }
    check_positive(base)?;
    check_positive(number)?;
    let (Some(base), Some(number)) = (exact(base), exact(number)) else {
        return Ok(match (base, number) {
            (Numeric::Infinity, Numeric::Infinity) => Numeric::NaN,
            (Numeric::Infinity, _) => Numeric::ZERO,
            _ => Numeric::Infinity,
        });
    };
    let exponent = logarithm_exponent(&number) - logarithm_exponent(&base);
    let scale = shown(DIGITS_MIN - exponent, &[base.scale, number.scale]);
    let digits = exponent + scale + 1;
    let (of_base, of_number) = (natural(&base, digits), natural(&number, digits));
    if of_base == DBig::ZERO {
        return Err(QueryError::DivisionByZero);
    }
    rounded(&context(digits).div(of_number.repr(), of_base.repr()).value(), scale).number()
}

/// A number to the power of another.
pub(super) fn power(base: &Numeric, exponent: &Numeric) -> Result<Numeric> {
    let (Some(known), Some(wanted)) = (exact(base), exact(exponent)) else {
        return power_without_digits(base, exponent);
    };
    check_power(base, exponent)?;
    let whole = wanted.value.clone() / wanted.unit();
    if wanted.is_whole()
        && let Ok(whole) = i32::try_from(whole.clone())
    {
        return whole_power(&known, whole)?.number();
    }
    if known.is_zero() {
        return Exact::new(0, DIGITS_MIN).number();
    }
    let is_odd = known.is_negative() && whole % IBig::from(2) != IBig::ZERO;
    let size = Exact::new(known.value.clone() * known.value.sign(), known.scale);
    let of_base = natural(&size, DIGITS_MIN);
    // PostgreSQL's estimate has eight digits of the logarithm, and tells of which scale the result is.
    let estimate_scale = (8 - logarithm_exponent(&size)).max(0);
    let estimate = rounded(&of_base, estimate_scale).float();
    let estimate = context(DIGITS_MIN).mul(estimate.repr(), wanted.float().repr()).value();
    let estimate = rounded(&estimate, estimate_scale).approximate();
    if estimate.abs() > EXPONENT_MAX * 1.003_4 {
        return match estimate > 0.0 {
            true => Err(overflow()),
            false => Exact::new(0, DISPLAY_SCALE_MAX).number(),
        };
    }
    let in_front = estimate * LOG10_OF_E;
    let scale = shown(DIGITS_MIN - cut(in_front), &[known.scale, wanted.scale]);
    // The digits of the product that are in front of the point do not count for the result.
    let digits = cut(in_front) + scale + cut(estimate.abs().log10()).max(0) + 2;
    let of_base = natural(&size, digits);
    let by = context(digits).mul(of_base.repr(), wanted.float().repr()).value();
    let made = exponential_of_scale(&by, scale)?;
    Exact::new(if is_odd { -made.value } else { made.value }, scale).number()
}

fn check_power(base: &Numeric, exponent: &Numeric) -> Result<()> {
    if base.is_zero() && exponent.sign() == Some(Ordering::Less) {
        let message = "zero raised to a negative power is undefined";
        return Err(QueryError::refused("2201F", message));
    }
    let is_whole = exact(exponent).is_none_or(|exponent| exponent.is_whole());
    if base.sign() == Some(Ordering::Less) && !is_whole {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(QueryError::refused("2201F", message));
    }
    Ok(())
}

/// A power where base or exponent has no digits.
fn power_without_digits(base: &Numeric, exponent: &Numeric) -> Result<Numeric> {
    let one = Numeric::from(1i64);
    let is_one = base.compare(&one) == Ordering::Equal;
    if *base == Numeric::NaN || *exponent == Numeric::NaN {
        return Ok(if is_one || exponent.is_zero() { one } else { Numeric::NaN });
    }
    check_power(base, exponent)?;
    if is_one || exponent.is_zero() {
        return Ok(one);
    }
    if base.is_zero() {
        return Ok(Numeric::ZERO);
    }
    let is_upwards = exponent.sign() == Some(Ordering::Greater);
    let Some(exponent) = exact(exponent) else {
        let size = base.size().compare(&one);
        return Ok(match (size, is_upwards) {
            (Ordering::Equal, _) => one,
            (Ordering::Greater, true) | (Ordering::Less, false) => Numeric::Infinity,
            _ => Numeric::ZERO,
        });
    };
    let is_odd = exponent.value.clone() / exponent.unit() % IBig::from(2) != IBig::ZERO;
    Ok(match is_upwards {
        false => Numeric::ZERO,
        true if *base == Numeric::NegativeInfinity && is_odd => Numeric::NegativeInfinity,
        true => Numeric::Infinity,
    })
}

fn whole_power(base: &Exact, exponent: i32) -> Result<Exact> {
    let scale = shown(DIGITS_MIN, &[base.scale]);
    if exponent == 0 {
        return Ok(Exact::new(power_of_ten(scale), scale));
    }
    if base.is_zero() {
        return Ok(Exact::new(0, scale));
    }
    let size = base.magnitude();
    let leading = f64::from(size.first * 10_000 + size.second).log10();
    let base_digits = leading + f64::from((size.weight - 1) * DECIMAL_DIGITS);
    let digits = base_digits * f64::from(exponent);
    if digits > OVERFLOW_DIGITS {
        return Err(overflow());
    }
    if digits + 1.0 < f64::from(-scale) {
        return Ok(Exact::new(0, scale));
    }
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
    sum: &IBig,
    squares: &IBig,
    scale: i32,
    is_sample: bool,
    is_root: bool,
) -> Result<Numeric> {
    let count = IBig::from(count);
    let of = count.clone() * squares - sum * sum;
    if of <= IBig::ZERO {
        return Ok(Numeric::ZERO);
    }
    let by = if is_sample { count.clone() * (count - IBig::ONE) } else { count.clone() * count };
    let (of, by) = (Numeric::new(of, 2 * scale)?, Numeric::new(by, 0)?);
    let scale = quotient_scale(&of, &by);
    let variance = numeric::quotient(of.divided(&by, scale)?)?;
    match (is_root, exact(&variance)) {
        (true, Some(variance)) => square_root_of_scale(&variance, scale).number(),
        _ => Ok(variance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as it is written.
    fn number(written: &str) -> Numeric {
        written.parse().expect("a number")
    }

    #[test]
    fn the_digits_behind_the_point_are_as_many_as_postgresql_gives() {
        for (made, wanted) in [
            (exponential(&number("3.7")), "40.447304360067391"),
            (natural_logarithm(&number("1.0000001")), "0.00000009999999500000033"),
            (logarithm(&number("1.1"), &number("12345.678")), "98.846328279241536"),
            (power(&number("123.456"), &number("7.89")), "31771028258180977.309"),
            (power(&number("0.1"), &number("10")), "0.0000000001000000"),
            (power(&number("-inf"), &number("3")), "-Infinity"),
            (power(&number("nan"), &number("0")), "1"),
            (square_root(&number("12345678901234567890")), "3513641828.8201443"),
            (quotient(&number("10"), &number("3")), "3.3333333333333333"),
            (quotient(&number("1"), &number("7e20")), "0.0000000000000000000014285714285714285714"),
        ] {
            assert_eq!(made.expect("a number").to_string(), wanted);
        }
    }

    #[test]
    fn a_deviation_is_the_root_of_the_rounded_variance() {
        let (sum, squares) = (IBig::from(7), IBig::from(21));
        let deviation = |is_root| deviation(3, &sum, &squares, 0, true, is_root).expect("a number");
        assert_eq!(deviation(false), number("2.3333333333333333"));
        assert_eq!(deviation(true), number("1.5275252316519467"));
    }
}
