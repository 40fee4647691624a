//! The two sides of an operator, where DataFusion would make them one type that PostgreSQL would not.

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::{call, narrow};
use crate::functions::{
    LIBRARY_PATTERN, SIMILAR_PATTERN, library_pattern, named, product, quotient, quotient_of_scale,
};

/// Gives both sides the types that they have in PostgreSQL.
pub(super) fn suit(binary: &mut BinaryExpr, schema: &DFSchema) -> Result<()> {
    if matches!(
        binary.op,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    ) {
        return in_library_s_words(&mut binary.right);
    }
    narrow_operand(binary, schema);
    let (left, right) = (binary.left.clone(), binary.right.clone());
    float_beside(&mut binary.left, &right, schema)?;
    float_beside(&mut binary.right, &left, schema)?;
    if matches!(binary.op, Operator::Plus | Operator::Minus) {
        timestamp_beside_interval(&mut binary.left, &right, schema);
        timestamp_beside_interval(&mut binary.right, &left, schema);
    }
    Ok(())
}

/// A regular expression as the library has it. One of SIMILAR TO is so already.
fn in_library_s_words(pattern: &mut Expr) -> Result<()> {
    *pattern = match std::mem::take(pattern) {
        Expr::Literal(ScalarValue::Utf8(Some(written)), metadata) => {
            Expr::Literal(ScalarValue::Utf8(Some(library_pattern(&written)?)), metadata)
        }
        Expr::ScalarFunction(known)
            if matches!(known.func.name(), SIMILAR_PATTERN | LIBRARY_PATTERN) =>
        {
            Expr::ScalarFunction(known)
        }
        other => call(named(LIBRARY_PATTERN)?, vec![other]),
    };
    Ok(())
}

/// `n + 1` of an `integer` is an `integer`.
fn narrow_operand(binary: &mut BinaryExpr, schema: &DFSchema) {
    if !binary.op.is_numerical_operators() {
        return;
    }
    let is_small = |expression: &Expr| {
        matches!(expression.get_type(schema), Ok(ArrowType::Int32 | ArrowType::Int16))
    };
    let (left_is_small, right_is_small) = (is_small(&binary.left), is_small(&binary.right));
    for (operand, other_is_small) in
        [(&mut binary.left, right_is_small), (&mut binary.right, left_is_small)]
    {
        if let Expr::Literal(ScalarValue::Int64(Some(number)), metadata) = &**operand
            && other_is_small
        {
            **operand = Expr::Literal(narrow(*number), metadata.clone());
        }
    }
}

/// A `numeric` beside a `double precision` or a `real` is a `double precision`; as a numeric of both
/// their digits, a float would lose what makes it small or large.
pub(super) fn float_beside(numeric: &mut Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    let is_float = other.get_type(schema).is_ok_and(|other| other.is_floating());
    if !is_float || !numeric.get_type(schema).is_ok_and(|own| own.is_decimal()) {
        return Ok(());
    }
    *numeric = match &*numeric {
        // By way of its digits, which is exact.
        Expr::Literal(value, metadata) => {
            let digits = value.cast_to(&ArrowType::Utf8)?;
            Expr::Literal(digits.cast_to(&ArrowType::Float64)?, metadata.clone())
        }
        other => Expr::Cast(Cast::new(Box::new(other.clone()), ArrowType::Float64)),
    };
    Ok(())
}

/// Of several expressions that become one value: beside a `double precision` all are.
pub(super) fn floats_together<'e>(
    several: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let mut several: Vec<&mut Expr> = several.into_iter().collect();
    let is_float = |one: &&mut Expr| one.get_type(schema).is_ok_and(|own| own.is_floating());
    let Some(float) = several.iter().find(|one| is_float(one)).map(|one| (**one).clone()) else {
        return Ok(());
    };
    several.iter_mut().try_for_each(|one| float_beside(one, &float, schema))
}

/// Digits behind the point up to which a product is exact.
const PRODUCT_SCALE_MAX: i16 = 20;

/// A division of numerics, or of one and a whole number; a product of numerics with many digits.
pub(super) fn rounded(binary: BinaryExpr, schema: &DFSchema) -> Expr {
    let types = (binary.left.get_type(schema), binary.right.get_type(schema));
    let (Ok(left), Ok(right)) = types else { return Expr::BinaryExpr(binary) };
    let scale = |of: &ArrowType| match of {
        ArrowType::Decimal128(_, scale) => i16::from(*scale),
        _ => 0,
    };
    let function = match binary.op {
        Operator::Divide if left.is_decimal() || right.is_decimal() => {
            match quotient_scale(&binary.left, &binary.right) {
                Some(scale) => quotient_of_scale(scale),
                None => quotient(),
            }
        }
        Operator::Multiply if scale(&left) + scale(&right) > PRODUCT_SCALE_MAX => product(),
        _ => return Expr::BinaryExpr(binary),
    };
    match (as_decimal(&binary.left, &left), as_decimal(&binary.right, &right)) {
        (Some(left), Some(right)) => call(function, vec![left, right]),
        _ => Expr::BinaryExpr(binary),
    }
}

/// What a constant is, and how many of its digits stand behind the point.
fn constant(expression: &Expr) -> Option<(i128, i8)> {
    match expression {
        Expr::Literal(ScalarValue::Decimal128(Some(value), _, scale), _) => Some((*value, *scale)),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => Some(((*value).into(), 0)),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => Some(((*value).into(), 0)),
        Expr::Cast(cast) => constant(&cast.expr)
            .filter(|_| matches!(cast.field.data_type(), ArrowType::Decimal128(_, 0))),
        _ => None,
    }
}

/// The place of the first of the digits that PostgreSQL computes with, each of four decimal ones, counted from the
/// point, and the digit.
fn first_digit((value, scale): (i128, i8)) -> Option<(i32, u128)> {
    let behind = u32::try_from(scale).ok()?.div_ceil(4);
    let zeros = behind * 4 - u32::try_from(scale).ok()?;
    let mut rest = value.unsigned_abs().checked_mul(10u128.checked_pow(zeros)?)?;
    let mut place = -i32::try_from(behind).ok()?;
    if rest == 0 {
        return Some((0, 0));
    }
    while rest >= 10_000 {
        rest /= 10_000;
        place += 1;
    }
    Some((place, rest))
}

/// The digits behind the point of a quotient of constants.
fn quotient_scale(of: &Expr, by: &Expr) -> Option<i8> {
    let (of, by) = (constant(of)?, constant(by)?);
    let ((of_place, of_digit), (by_place, by_digit)) = (first_digit(of)?, first_digit(by)?);
    let place = of_place - by_place - i32::from(of_digit <= by_digit);
    let scale = (16 - place * 4).max(of.1.into()).max(by.1.into()).clamp(0, 28);
    i8::try_from(scale).ok()
}

pub(super) fn as_decimal(number: &Expr, own: &ArrowType) -> Option<Expr> {
    match own {
        ArrowType::Decimal128(..) => Some(number.clone()),
        whole if whole.is_integer() => {
            let decimal = ArrowType::Decimal128(19, 0);
            Some(Expr::Cast(Cast::new(Box::new(number.clone()), decimal)))
        }
        _ => None,
    }
}

/// A date with an interval is a moment: the interval may have hours.
fn timestamp_beside_interval(date: &mut Expr, other: &Expr, schema: &DFSchema) {
    let is_interval = matches!(other.get_type(schema), Ok(ArrowType::Interval(_)));
    if is_interval && date.get_type(schema).is_ok_and(|own| own == ArrowType::Date32) {
        let timestamp = ArrowType::Timestamp(TimeUnit::Microsecond, None);
        *date = Expr::Cast(Cast::new(Box::new(date.clone()), timestamp));
    }
}
