//! The two sides of an operator, where DataFusion would make them one type that PostgreSQL would not.

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use onrush::DataType;

use super::call;
use crate::functions::{
    ARRAY_CONTAINS, ARRAYS_OVERLAP, FOUND_BY_PATTERN, LIBRARY_PATTERN, SIMILAR_PATTERN,
    date_plus_days, goes_back, library_pattern, named, read_interval,
};
use crate::numeric::is_numeric;
use crate::types::field;

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
    let (left, right) = (binary.left.clone(), binary.right.clone());
    float_beside(&mut binary.left, &right, schema)?;
    float_beside(&mut binary.right, &left, schema)?;
    integer_beside_real(&mut binary.left, &right, schema);
    integer_beside_real(&mut binary.right, &left, schema);
    if binary.op.supports_propagation() {
        timestamps_together(&mut [&mut *binary.left, &mut *binary.right], schema);
    }
    if matches!(binary.op, Operator::Plus | Operator::Minus) {
        timestamp_beside_interval(&mut binary.left, &right, schema);
        timestamp_beside_interval(&mut binary.right, &left, schema);
    }
    Ok(())
}

/// An operator whose regular expression goes back, which is written out, as a function that follows it; none of
/// any other.
pub(super) fn by_way(binary: &BinaryExpr) -> Result<Option<Expr>> {
    let (is_negated, letters) = match binary.op {
        Operator::RegexMatch => (false, ""),
        Operator::RegexIMatch => (false, "i"),
        Operator::RegexNotMatch => (true, ""),
        Operator::RegexNotIMatch => (true, "i"),
        _ => return Ok(None),
    };
    let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*binary.right else {
        return Ok(None);
    };
    if !goes_back(written)? {
        return Ok(None);
    }
    let letters = Expr::Literal(ScalarValue::from(letters), None);
    let given = vec![(*binary.left).clone(), (*binary.right).clone(), letters];
    let found = call(named(FOUND_BY_PATTERN)?, given);
    Ok(Some(if is_negated { Expr::Not(Box::new(found)) } else { found }))
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

/// A `numeric` beside a `double precision` or a `real` is a `double precision`; as a numeric of both
/// their digits, a float would lose what makes it small or large.
pub(super) fn float_beside(numeric: &mut Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    let is_float = other.get_type(schema).is_ok_and(|other| other.is_floating());
    if !is_float || !numeric.get_type(schema).is_ok_and(|own| is_numeric(&own)) {
        return Ok(());
    }
    if numeric.get_type(schema)? == crate::numeric::ANY {
        *numeric = super::numerics::as_float(std::mem::take(numeric));
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

/// There is no operator of a `real` and a whole number: both are `double precision`.
pub(super) fn integer_beside_real(number: &mut Expr, other: &Expr, schema: &DFSchema) {
    if other.get_type(schema).is_ok_and(|other| other == ArrowType::Float32)
        && number.get_type(schema).is_ok_and(|own| own.is_integer())
    {
        let given = Box::new(std::mem::take(number));
        *number = Expr::Cast(Cast::new(given, ArrowType::Float64));
    }
}

/// Gives a constant in quotes the type by which an operator takes it beside the other side. Comparisons give it theirs.
pub(super) fn adopt_constants(expr: &mut RawBinaryExpr, schema: &DFSchema) -> Result<()> {
    use BinaryOperator as Op;
    let (left, right) = (expr.left.clone(), expr.right.clone());
    for (constant, other) in [(&mut expr.left, &right), (&mut expr.right, &left)] {
        let Ok(own) = other.get_type(schema) else { continue };
        match (&expr.op, own) {
            (
                Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo,
                ArrowType::Int16
                | ArrowType::Int32
                | ArrowType::Int64
                | ArrowType::Float32
                | ArrowType::Float64,
            )
            | (
                Op::BitwiseAnd | Op::BitwiseOr | Op::PGBitwiseXor,
                ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64,
            )
            | (Op::Minus, ArrowType::Date32 | ArrowType::Timestamp(..))
            | (Op::AtArrow | Op::ArrowAt | Op::PGOverlap, ArrowType::List(_)) => {
                super::adopt_type(constant, other, schema)?;
            }
            // No two timestamps are added.
            (Op::Plus, ArrowType::Timestamp(..)) if is_in_quotes(constant) => {
                *constant = call(read_interval(), vec![std::mem::take(constant)]);
            }
            (Op::Plus, ArrowType::Timestamp(..)) if is_null(constant) => {
                *constant = Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None);
            }
            _ => {}
        }
    }
    Ok(())
}

/// `||` joins as texts what DataFusion knows as bytes.
pub(super) fn join_as_text(expr: &mut RawBinaryExpr, schema: &DFSchema) -> Result<()> {
    if expr.op != BinaryOperator::StringConcat {
        return Ok(());
    }
    for side in [&mut expr.left, &mut expr.right] {
        if matches!(side.get_type(schema), Ok(ArrowType::FixedSizeBinary(_))) {
            let text = field("", DataType::Text.into(), true).into();
            *side =
                super::cast(Cast { expr: Box::new(std::mem::take(side)), field: text }, schema)?;
        }
    }
    Ok(())
}

/// What two arrays have in common; none of anything else.
pub(super) fn of_arrays(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let RawBinaryExpr { op, left, right } = expr;
    let is_array = |side: &Expr| matches!(side.get_type(schema), Ok(ArrowType::List(_)));
    let are_arrays = is_array(left) && is_array(right);
    let (left, right) = (left.clone(), right.clone());
    let (function, given) = match op {
        BinaryOperator::PGOverlap => (ARRAYS_OVERLAP, vec![left, right]),
        BinaryOperator::AtArrow if are_arrays => (ARRAY_CONTAINS, vec![left, right]),
        BinaryOperator::ArrowAt if are_arrays => (ARRAY_CONTAINS, vec![right, left]),
        _ => return Ok(None),
    };
    Ok(Some(call(named(function)?, given)))
}

fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Null, _))
}

fn is_in_quotes(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// Days between two dates are an `integer`, and are added to dates and taken from them.
pub(super) fn days(binary: BinaryExpr, schema: &DFSchema) -> Expr {
    let is_date = |side: &Expr| side.get_type(schema).is_ok_and(|own| own == ArrowType::Date32);
    let is_whole = |side: &Expr| side.get_type(schema).is_ok_and(|own| own.is_integer());
    let BinaryExpr { left, op, right } = &binary;
    let (date, days) = match op {
        Operator::Plus if is_date(left) && is_whole(right) => (left, (**right).clone()),
        Operator::Plus if is_whole(left) && is_date(right) => (right, (**left).clone()),
        Operator::Minus if is_date(left) && is_whole(right) => {
            let wide = Cast::new(right.clone(), ArrowType::Int64);
            (left, Expr::Negative(Box::new(Expr::Cast(wide))))
        }
        _ => return difference(binary, is_date),
    };
    call(date_plus_days(), vec![(**date).clone(), days])
}

fn difference(binary: BinaryExpr, is_date: impl Fn(&Expr) -> bool) -> Expr {
    let are_days = binary.op == Operator::Minus && is_date(&binary.left) && is_date(&binary.right);
    let binary = Expr::BinaryExpr(binary);
    match are_days {
        true => Expr::Cast(Cast::new(Box::new(binary), ArrowType::Int32)),
        false => binary,
    }
}

/// Of several expressions that become one value: beside a `double precision` all are.
pub(super) fn floats_together<'e>(
    several: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let mut several: Vec<&mut Expr> = several.into_iter().collect();
    timestamps_together(&mut several, schema);
    let is_float = |one: &&mut Expr| one.get_type(schema).is_ok_and(|own| own.is_floating());
    let Some(float) = several.iter().find(|one| is_float(one)).map(|one| (**one).clone()) else {
        return Ok(());
    };
    several.iter_mut().try_for_each(|one| float_beside(one, &float, schema))
}

/// Dates beside timestamps are timestamps. DataFusion would make all of them some of nanoseconds.
fn timestamps_together(several: &mut [&mut Expr], schema: &DFSchema) {
    let types = several.iter().map(|one| one.get_type(schema).ok());
    let timestamp = |own: &ArrowType| matches!(own, ArrowType::Timestamp(..));
    let with_zone = |own: &ArrowType| matches!(own, ArrowType::Timestamp(_, Some(_)));
    let types: Vec<ArrowType> = types.flatten().collect();
    let wanted = types.iter().find(|own| with_zone(own));
    let Some(wanted) = wanted.or_else(|| types.iter().find(|own| timestamp(own))) else { return };
    for one in several {
        if one.get_type(schema).is_ok_and(|own| own == ArrowType::Date32) {
            let date = Box::new(std::mem::take(*one));
            **one = Expr::Cast(Cast::new(date, wanted.clone()));
        }
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
