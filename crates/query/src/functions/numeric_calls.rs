//! Operators and functions of `numeric`, a row at a time.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Builder, LargeBinaryBuilder};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Numeric;
use onrush_types::numeric::{NUMERIC_DIGITS_MAX, NUMERIC_SCALE_MAX};

use super::numeric_math::{
    exponential, logarithm, natural_logarithm, power, quotient, square_root,
};
use crate::error::QueryError;
use crate::numeric::{self, append, number_at};

type Made<T> = crate::Result<T>;

/// What is computed of numbers none of which is NULL.
#[derive(Clone, Copy, Debug)]
enum Compute {
    Number(fn(&[Numeric]) -> Made<Numeric>),
    Whole(fn(&[Numeric]) -> Made<Option<i32>>),
}

/// A function of numbers of any exact types.
#[derive(Clone, Debug)]
struct NumericCall {
    name: &'static str,
    compute: Compute,
    signature: Signature,
}

impl PartialEq for NumericCall {
    fn eq(&self, other: &NumericCall) -> bool {
        self.name == other.name
    }
}

impl Eq for NumericCall {}

impl Hash for NumericCall {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
    }
}

impl ScalarUDFImpl for NumericCall {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.compute {
            Compute::Number(_) => numeric::ANY,
            Compute::Whole(_) => ArrowType::Int32,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns: Vec<ArrayRef> = args
            .args
            .iter()
            .map(|given| given.to_array(args.number_rows))
            .collect::<Result<_>>()?;
        let mut given = Vec::with_capacity(columns.len());
        let mut row_of = |row: usize| -> Made<Option<Vec<Numeric>>> {
            given.clear();
            for column in &columns {
                match number_at(column, row)? {
                    Some(number) => given.push(number),
                    None => return Ok(None),
                }
            }
            Ok(Some(std::mem::take(&mut given)))
        };
        Ok(ColumnarValue::Array(match self.compute {
            Compute::Number(compute) => {
                let mut made =
                    LargeBinaryBuilder::with_capacity(args.number_rows, args.number_rows * 12);
                let mut buffer = Vec::new();
                for row in 0..args.number_rows {
                    let number = row_of(row)?.map(|given| compute(&given)).transpose()?;
                    append(&mut made, number.as_ref(), &mut buffer);
                }
                Arc::new(made.finish())
            }
            Compute::Whole(compute) => {
                let mut made = Int32Builder::with_capacity(args.number_rows);
                for row in 0..args.number_rows {
                    let number = row_of(row)?.map(|given| compute(&given)).transpose()?;
                    made.append_option(number.flatten());
                }
                Arc::new(made.finish())
            }
        }))
    }
}

/// The call of the function of this name; none if there is none with so many arguments.
pub(crate) fn numeric_call(name: &str, arguments: Vec<Expr>) -> Option<Expr> {
    let (name, compute) = known(name, arguments.len())?;
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(NumericCall { name, compute, signature });
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), arguments)))
}

/// Whether there is a function of this name that makes a number of so many.
pub(crate) fn is_numeric_call(name: &str, arguments: usize) -> bool {
    known(name, arguments).is_some()
}

/// By name and arguments; the name that it has in plans tells it apart from that of other types.
fn known(name: &str, arguments: usize) -> Option<(&'static str, Compute)> {
    use Compute::{Number, Whole};
    Some(match (name, arguments) {
        ("+", 2) => ("numeric_add", Number(|of| Ok(of[0].plus(&of[1])?))),
        ("-", 2) => ("numeric_sub", Number(|of| Ok(of[0].minus(&of[1])?))),
        ("*", 2) => ("numeric_mul", Number(|of| Ok(of[0].times(&of[1])?))),
        ("/", 2) => ("numeric_div", Number(|of| quotient(&of[0], &of[1]))),
        ("%" | "mod", 2) => {
            ("numeric_mod", Number(|of| numeric::quotient(of[0].remainder(&of[1]))))
        }
        ("-", 1) => ("numeric_uminus", Number(|of| Ok(of[0].negated()))),
        ("abs", 1) => ("numeric_abs", Number(|of| Ok(of[0].size()))),
        ("sign" | "signum", 1) => ("numeric_sign", Number(|of| Ok(sign(&of[0])))),
        ("ceil" | "ceiling", 1) => ("numeric_ceil", Number(|of| Ok(of[0].whole(true)?))),
        ("floor", 1) => ("numeric_floor", Number(|of| Ok(of[0].whole(false)?))),
        ("round", 1) => ("numeric_round", Number(|of| checked(of[0].rounded(0)))),
        ("round", 2) => ("numeric_round_to", Number(|of| checked(of[0].rounded(places(&of[1])?)))),
        ("trunc", 1) => ("numeric_trunc", Number(|of| Ok(of[0].cut(0)))),
        ("trunc", 2) => ("numeric_trunc_to", Number(|of| Ok(of[0].cut(places(&of[1])?)))),
        ("sqrt", 1) => ("numeric_sqrt", Number(|of| square_root(&of[0]))),
        ("exp", 1) => ("numeric_exp", Number(|of| exponential(&of[0]))),
        ("ln", 1) => ("numeric_ln", Number(|of| natural_logarithm(&of[0]))),
        ("log" | "log10", 1) => {
            ("numeric_log10", Number(|of| logarithm(&Numeric::from(10i64), &of[0])))
        }
        ("log", 2) => ("numeric_log", Number(|of| logarithm(&of[0], &of[1]))),
        ("power" | "pow", 2) => ("numeric_power", Number(|of| power(&of[0], &of[1]))),
        ("div", 2) => {
            ("numeric_div_trunc", Number(|of| numeric::quotient(of[0].whole_quotient(&of[1])?)))
        }
        ("gcd", 2) => ("numeric_gcd", Number(|of| divisor(&of[0], &of[1]))),
        ("lcm", 2) => ("numeric_lcm", Number(|of| multiple(&of[0], &of[1]))),
        ("factorial", 1) => ("numeric_fac", Number(|of| factorial(&of[0]))),
        ("trim_scale", 1) => ("numeric_trim_scale", Number(|of| Ok(of[0].trimmed()))),
        ("scale", 1) => ("numeric_scale", Whole(|of| Ok(of[0].scale().map(i32::from)))),
        ("min_scale", 1) => {
            ("numeric_min_scale", Whole(|of| Ok(of[0].least_scale().map(i32::from))))
        }
        ("width_bucket", 4) => ("numeric_width_bucket", Whole(bucket)),
        _ => return None,
    })
}

/// What is rounded may get one digit too many.
fn checked(number: Numeric) -> Made<Numeric> {
    Ok(match number {
        Numeric::Finite(digits, scale) => Numeric::new(digits, i32::from(scale))?,
        other => other,
    })
}

/// How many digits behind the point are asked for; more or fewer than any number has are as many.
fn places(wanted: &Numeric) -> Made<i32> {
    let wanted = wanted.to_i128().ok_or_else(|| out_of_range("integer"))?;
    let (fewest, most) = (-i128::from(NUMERIC_DIGITS_MAX) - 1, i128::from(NUMERIC_SCALE_MAX));
    Ok(i32::try_from(wanted.clamp(fewest, most)).unwrap_or(0))
}

fn out_of_range(name: &str) -> QueryError {
    QueryError::refused("22003", format!("{name} out of range"))
}

fn sign(number: &Numeric) -> Numeric {
    match number.sign() {
        None => Numeric::NaN,
        Some(Ordering::Less) => Numeric::from(-1i64),
        Some(Ordering::Equal) => Numeric::ZERO,
        Some(Ordering::Greater) => Numeric::from(1i64),
    }
}

fn is_finite(number: &Numeric) -> bool {
    matches!(number, Numeric::Finite(..))
}

/// The greatest common divisor.
fn divisor(one: &Numeric, other: &Numeric) -> Made<Numeric> {
    if !is_finite(one) || !is_finite(other) {
        return Ok(Numeric::NaN);
    }
    let scale = i32::from(one.scale().max(other.scale()).unwrap_or(0));
    let (mut one, mut other) = (one.size(), other.size());
    while !other.is_zero() {
        let rest = numeric::quotient(one.remainder(&other))?;
        (one, other) = (other, rest);
    }
    Ok(one.rounded(scale))
}

/// The least common multiple.
fn multiple(one: &Numeric, other: &Numeric) -> Made<Numeric> {
    if !is_finite(one) || !is_finite(other) {
        return Ok(Numeric::NaN);
    }
    let scale = i32::from(one.scale().max(other.scale()).unwrap_or(0));
    if one.is_zero() || other.is_zero() {
        return Ok(Numeric::ZERO.rounded(scale));
    }
    let part = numeric::quotient(one.whole_quotient(&divisor(one, other)?)?)?;
    Ok(part.times(other)?.size().rounded(scale))
}

/// The largest number whose factorial has space.
const FACTORIAL_MAX: i128 = 32_177;

fn factorial(number: &Numeric) -> Made<Numeric> {
    let overflow = || QueryError::refused("22003", "value overflows numeric format");
    match number.to_i128() {
        Some(..0) => {
            let message = "factorial of a negative number is undefined";
            Err(QueryError::refused("22003", message))
        }
        Some(number @ ..=FACTORIAL_MAX) => {
            let mut made = Numeric::from(1i64);
            for factor in 2..=number {
                made = made.times(&Numeric::from(factor))?;
            }
            Ok(made)
        }
        _ => Err(overflow()),
    }
}

/// The number of the part between `low` and `high`, from 1; 0 before them, and one more behind.
fn bucket(of: &[Numeric]) -> Made<Option<i32>> {
    let [number, low, high, count] = of else { return Ok(None) };
    let refused = |message| Err(QueryError::refused("2201G", message));
    let count = count.to_i128().ok_or_else(|| out_of_range("integer"))?;
    let count = i32::try_from(count).map_err(|_| out_of_range("integer"))?;
    if count <= 0 {
        return refused("count must be greater than zero");
    }
    if [number, low, high].contains(&&Numeric::NaN) {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    if !is_finite(low) || !is_finite(high) {
        return refused("lower and upper bounds must be finite");
    }
    let behind = || count.checked_add(1).ok_or_else(|| out_of_range("integer"));
    let (is_before, is_behind) = match low.compare(high) {
        Ordering::Equal => return refused("lower bound cannot equal upper bound"),
        Ordering::Less => (number.compare(low).is_lt(), number.compare(high).is_ge()),
        Ordering::Greater => (number.compare(low).is_gt(), number.compare(high).is_le()),
    };
    if is_before {
        return Ok(Some(0));
    }
    if is_behind {
        return behind().map(Some);
    }
    let place = number.minus(low)?.times(&Numeric::from(i64::from(count)))?;
    let place = numeric::quotient(place.whole_quotient(&high.minus(low)?)?)?;
    let place = place.to_i128().and_then(|place| i32::try_from(place + 1).ok());
    Ok(Some(place.ok_or_else(|| out_of_range("integer"))?.min(count)))
}
