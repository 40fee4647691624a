//! Numbers that are no floats. While DataFusion reads a statement every `numeric` is one of its decimals; here each
//! gets the type that it has when the query runs: a decimal, where all values certainly have space there and are shown
//! with as many digits, or any `numeric`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Cast, ScalarFunction};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{AggregateUDF, BinaryExpr, Expr, ExprSchemable, Operator};
use onrush::{DataType, Numeric};

use super::call;
use crate::error::QueryError;
use crate::functions::{
    decimal_sum, is_numeric_call, is_numeric_cast, limited, numeric_call, numeric_cast,
    numeric_sum, text_function, to_number,
};
use crate::numeric::{self, is_numeric, of_text};
use crate::types::{ColumnType, STAND_IN, column_type, field, planned_field};

/// Digits that a decimal has space for.
const DIGITS_MAX: i16 = 38;

/// The field of any `numeric`.
pub(super) fn any() -> FieldRef {
    Arc::new(field("", DataType::Numeric(None).into(), true))
}

/// What a field really is that stands for a `numeric` while a statement is read.
pub(super) fn real(planned: &Field) -> Option<FieldRef> {
    if *planned.data_type() != STAND_IN {
        return None;
    }
    Some(Arc::new(field(planned.name(), column_type(planned), planned.is_nullable())))
}

fn is_exact(own: &ArrowType) -> bool {
    own.is_integer() || is_numeric(own)
}

/// Digits in front of the point and behind it that values of a type have.
fn digits(own: &ArrowType) -> Option<(i16, i16)> {
    Some(match own {
        ArrowType::Int8 | ArrowType::UInt8 => (3, 0),
        ArrowType::Int16 | ArrowType::UInt16 => (5, 0),
        ArrowType::Int32 | ArrowType::UInt32 => (10, 0),
        ArrowType::Int64 | ArrowType::UInt64 => (20, 0),
        ArrowType::Decimal128(precision, scale) => {
            (i16::from(*precision) - i16::from(*scale), i16::from(*scale))
        }
        _ => return None,
    })
}

/// Whether values of both types have space in one decimal.
fn have_one_type(left: &ArrowType, right: &ArrowType) -> bool {
    let (Some(left), Some(right)) = (digits(left), digits(right)) else { return false };
    left.0.max(right.0) + left.1.max(right.1) <= DIGITS_MAX
}

/// Whether values of two types are joined by DataFusion, if one of them is a number.
pub(super) fn are_joined(left: &ArrowType, right: &ArrowType) -> bool {
    !(is_numeric(left) || is_numeric(right)) || have_one_type(left, right)
}

/// As any `numeric`; whether it can be one.
pub(super) fn widen(number: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let own = number.get_type(schema)?;
    match (&*number, &own) {
        (_, ArrowType::LargeBinary) => Ok(true),
        (_, ArrowType::Null) => {
            *number = Expr::Literal(ScalarValue::LargeBinary(None), None);
            Ok(true)
        }
        (Expr::Literal(ScalarValue::Utf8(Some(written)), _), _) => {
            *number = Expr::Literal(numeric::scalar(&of_text(written)?), None);
            Ok(true)
        }
        _ if is_exact(&own) => {
            *number = cast(std::mem::take(number), &own, any())?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A value of some type as the type of a field, which is a number or is made of one.
pub(super) fn cast(value: Expr, from: &ArrowType, to: FieldRef) -> Result<Expr> {
    if let (Expr::Literal(constant, _), ColumnType::Stored(DataType::Numeric(limits))) =
        (&value, column_type(&to))
        && let Some(number) = constant_number(constant)?
    {
        return Ok(Expr::Literal(numeric::scalar(&limited(number, limits)?), None));
    }
    Ok(match is_numeric_cast(from, to.data_type()) || limits_of(&to).is_some() {
        true => numeric_cast(value, to),
        false => Expr::Cast(Cast { expr: Box::new(value), field: to }),
    })
}

fn limits_of(to: &Field) -> Option<(u16, i16)> {
    match column_type(to) {
        ColumnType::Stored(DataType::Numeric(limits)) => limits,
        _ => None,
    }
}

fn constant_number(constant: &ScalarValue) -> Result<Option<Numeric>> {
    match constant {
        ScalarValue::Int16(Some(_))
        | ScalarValue::Int32(Some(_))
        | ScalarValue::Int64(Some(_))
        | ScalarValue::Decimal128(Some(_), ..)
        | ScalarValue::LargeBinary(Some(_))
        | ScalarValue::Utf8(Some(_)) => Ok(numeric::number_at(&constant.to_array()?, 0)?),
        _ => Ok(None),
    }
}

/// A constant that is compared with a decimal, as a decimal of its own digits.
pub(super) fn narrowed(constant: &Expr, other: &ArrowType) -> Option<Expr> {
    let ArrowType::Decimal128(..) = other else { return None };
    let Expr::Literal(ScalarValue::LargeBinary(Some(bytes)), _) = constant else { return None };
    let value = as_decimal(&numeric::of_bytes(bytes).ok()?)?;
    have_one_type(&value.data_type(), other).then(|| Expr::Literal(value, None))
}

/// A number as a decimal of its own digits.
pub(crate) fn as_decimal(number: &Numeric) -> Option<ScalarValue> {
    let trimmed = number.trimmed();
    let Numeric::Finite(digits, scale) = &trimmed else { return None };
    let scale = i8::try_from(*scale).ok().filter(|scale| *scale <= 38)?;
    let count = onrush_types::numeric::digits_of(digits).max(i32::from(scale)).max(1);
    let precision = u8::try_from(count).ok().filter(|precision| *precision <= 38)?;
    Some(ScalarValue::Decimal128(Some(i128::try_from(digits.clone()).ok()?), precision, scale))
}

/// An operator of exact numbers.
pub(super) fn binary(mut binary: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let types = (binary.left.get_type(schema), binary.right.get_type(schema));
    let (Ok(left), Ok(right)) = types else { return Ok(Expr::BinaryExpr(binary)) };
    if binary.op == Operator::StringConcat {
        for (side, own) in [(&mut binary.left, &left), (&mut binary.right, &right)] {
            if is_numeric(own) {
                **side = call(text_function(), vec![std::mem::take(&mut **side)]);
            }
        }
        return Ok(Expr::BinaryExpr(binary));
    }
    if !is_numeric(&left) && !is_numeric(&right) {
        return Ok(Expr::BinaryExpr(binary));
    }
    let arithmetic = match binary.op {
        Operator::Plus => Some("+"),
        Operator::Minus => Some("-"),
        Operator::Multiply => Some("*"),
        Operator::Divide => Some("/"),
        Operator::Modulo => Some("%"),
        op if op.supports_propagation()
            || matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) =>
        {
            None
        }
        _ => return Ok(Expr::BinaryExpr(binary)),
    };
    if arithmetic.is_none() {
        for (side, other) in [(&mut binary.left, &right), (&mut binary.right, &left)] {
            if let Some(decimal) = narrowed(side, other) {
                **side = decimal;
            }
        }
    }
    let types = (binary.left.get_type(schema)?, binary.right.get_type(schema)?);
    if let (Some(left), Some(right)) = (digits(&types.0), digits(&types.1))
        && has_space(binary.op, left, right)
    {
        return Ok(Expr::BinaryExpr(binary));
    }
    let (mut left, mut right) = (*binary.left.clone(), *binary.right.clone());
    if !widen(&mut left, schema)? || !widen(&mut right, schema)? {
        return Ok(Expr::BinaryExpr(binary));
    }
    let made = arithmetic.and_then(|name| numeric_call(name, vec![left.clone(), right.clone()]));
    Ok(made.unwrap_or_else(|| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(left), right: Box::new(right), ..binary })
    }))
}

/// Refuses arrays of numbers that would be joined as numbers of one scale: PostgreSQL's keep their digits.
fn check_elements(left: &ArrowType, right: &ArrowType) -> Result<()> {
    let element = |own: &ArrowType| match own {
        ArrowType::List(element) => element.data_type().clone(),
        other => other.clone(),
    };
    let types = [element(left), element(right)];
    if needs_widening(&types) && types[0] != types[1] {
        let message = "joining arrays of numerics with other digits is not supported".to_owned();
        return Err(QueryError::NotSupported { message }.into());
    }
    Ok(())
}

/// Whether a decimal has space for whatever an operator makes of values of so many digits.
fn has_space(operator: Operator, left: (i16, i16), right: (i16, i16)) -> bool {
    let both = left.0.max(right.0) + left.1.max(right.1);
    match operator {
        Operator::Plus | Operator::Minus => both < DIGITS_MAX,
        Operator::Multiply => left.0 + left.1 + right.0 + right.1 < DIGITS_MAX,
        Operator::Divide => false,
        _ => both <= DIGITS_MAX,
    }
}

/// Several values that become one, or are compared with one: all any `numeric`, unless they are shown alike.
pub(super) fn together<'e>(
    several: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let mut several: Vec<&mut Expr> = several.into_iter().collect();
    let types = several.iter().map(|one| one.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return Ok(()) };
    if needs_widening(&types) {
        for one in &mut several {
            widen(one, schema)?;
        }
    }
    Ok(())
}

/// Whether values of these types become any `numeric`.
pub(super) fn needs_widening(types: &[ArrowType]) -> bool {
    let is_other =
        |own: &ArrowType| !own.is_null() && !is_exact(own) && !matches!(own, ArrowType::Utf8);
    if !types.iter().any(is_numeric) || types.iter().any(is_other) {
        return false;
    }
    let mut scales = types.iter().filter(|own| !own.is_null()).map(|own| match own {
        ArrowType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    });
    let first = scales.next().flatten();
    first.is_none() || scales.any(|scale| scale != first)
}

/// The same of what is compared with each other, and not shown.
pub(super) fn comparable<'e>(
    several: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<()> {
    let mut several: Vec<&mut Expr> = several.into_iter().collect();
    let types = several.iter().map(|one| one.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return Ok(()) };
    let numbers: Vec<(i16, i16)> = types.iter().filter_map(digits).collect();
    let (front, behind) =
        numbers.iter().fold((0, 0), |all, own| (all.0.max(own.0), all.1.max(own.1)));
    let is_wide = types.contains(&ArrowType::LargeBinary) || front + behind > DIGITS_MAX;
    if needs_widening(&types) && is_wide {
        for one in &mut several {
            widen(one, schema)?;
        }
    }
    Ok(())
}

/// A call of a function, one of whose arguments is an exact number.
pub(super) fn function(mut known: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let types = known.args.iter().map(|given| given.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else {
        return Ok(Expr::ScalarFunction(known));
    };
    let name = known.func.name().to_owned();
    if let ("array_concat" | "array_append" | "array_prepend", [left, right]) =
        (name.as_str(), types.as_slice())
    {
        check_elements(left, right)?;
    }
    // What PostgreSQL has of numerics alone.
    let is_of_numerics = matches!(
        (name.as_str(), types.len()),
        ("div", 2) | ("log", 2) | ("factorial", 1) | ("scale" | "min_scale" | "trim_scale", 1)
    );
    let has_numeric = types.iter().any(is_numeric);
    let is_number =
        |own: &ArrowType| is_exact(own) || own.is_null() || matches!(own, ArrowType::Utf8);
    let are_exact = (has_numeric || is_of_numerics) && types.iter().all(is_number);
    // As a decimal it keeps its digits.
    let stays = matches!((name.as_str(), types.as_slice()), ("abs", [ArrowType::Decimal128(..)]));
    if are_exact && is_numeric_call(&name, types.len()) && !stays {
        for given in &mut known.args {
            if !widen_argument(given, schema)? {
                return Ok(Expr::ScalarFunction(known));
            }
        }
        let made = numeric_call(&name, known.args.clone());
        return Ok(made.unwrap_or(Expr::ScalarFunction(known)));
    }
    if name == "numeric_series" {
        for given in &mut known.args {
            widen(given, schema)?;
        }
        return Ok(Expr::ScalarFunction(known));
    }
    if name == "to_number" {
        return Ok(call(to_number(), known.args));
    }
    if !types.contains(&ArrowType::LargeBinary) {
        return Ok(Expr::ScalarFunction(known));
    }
    if is_taken(&known, schema) {
        return Ok(Expr::ScalarFunction(known));
    }
    // Beside others all of them become numbers of one type; else each becomes a floating-point number.
    let mut beside = known.clone();
    together(&mut beside.args, schema)?;
    if is_taken(&beside, schema) {
        return Ok(Expr::ScalarFunction(beside));
    }
    for (given, own) in known.args.iter_mut().zip(&types) {
        if *own == numeric::ANY {
            *given = as_float(std::mem::take(given));
        }
    }
    Ok(Expr::ScalarFunction(known))
}

/// Any `numeric` as a floating-point number.
pub(super) fn as_float(number: Expr) -> Expr {
    numeric_cast(number, Arc::new(Field::new("", ArrowType::Float64, true)))
}

/// Whether a function takes what it is given.
fn is_taken(known: &ScalarFunction, schema: &DFSchema) -> bool {
    let fields = known.args.iter().map(|given| given.to_field(schema).map(|(_, field)| field));
    let fields = fields.collect::<Result<Vec<FieldRef>>>();
    fields.is_ok_and(|fields| fields_with_udf(&fields, known.func.as_ref()).is_ok())
}

/// Constants as numbers with their digits; columns are read as they are.
fn widen_argument(given: &mut Expr, schema: &DFSchema) -> Result<bool> {
    match given {
        Expr::Literal(..) => widen(given, schema),
        _ => Ok(given.get_type(schema).is_ok_and(|own| is_exact(&own) || own.is_null())),
    }
}

/// A sum, average or deviation of any `numeric`.
pub(super) fn aggregate(
    mut known: AggregateFunction,
    schema: &DFSchema,
) -> Result<AggregateFunction> {
    let params = &mut known.params;
    if let Some(own) = sum_of(known.func.name(), &params.args, params.distinct, schema)? {
        params.distinct = false;
        known.func = own;
        return Ok(known);
    }
    let fields = params.args.iter().map(|given| given.to_field(schema).map(|(_, field)| field));
    let is_taken = fields
        .collect::<Result<Vec<FieldRef>>>()
        .is_ok_and(|fields| fields_with_udf(&fields, known.func.as_ref()).is_ok());
    for given in params.args.iter_mut().filter(|_| !is_taken) {
        if given.get_type(schema)? == numeric::ANY {
            *given = as_float(std::mem::take(given));
        }
    }
    Ok(known)
}

/// The aggregate of this name for any `numeric`; none where DataFusion's, or the one for decimals, will do.
pub(super) fn sum_of(
    name: &str,
    arguments: &[Expr],
    is_distinct: bool,
    schema: &DFSchema,
) -> Result<Option<Arc<AggregateUDF>>> {
    let [number] = arguments else { return Ok(None) };
    let own = number.get_type(schema)?;
    Ok(match &own {
        ArrowType::LargeBinary => numeric_sum(name, is_distinct),
        ArrowType::Decimal128(29.., _) if name == "sum" && !is_distinct => Some(decimal_sum()),
        ArrowType::Decimal128(precision, _)
            if *precision > 28 || (is_distinct && name != "sum") =>
        {
            numeric_sum(name, is_distinct)
        }
        own if own.is_integer() && is_distinct && name != "sum" => numeric_sum(name, is_distinct),
        _ => None,
    })
}

/// A cast to an exact number, or of one to another number.
pub(super) fn cast_to_number(known: &Cast, from: &ArrowType) -> Result<Option<Expr>> {
    let to = real(&known.field).unwrap_or_else(|| Arc::clone(&known.field));
    let is_wanted = *to.data_type() == numeric::ANY
        || (to.data_type().is_numeric() && is_numeric_cast(from, to.data_type()));
    if !is_wanted {
        return Ok(None);
    }
    if from.is_null() {
        return Ok(Some(Expr::Literal(ScalarValue::try_from(to.data_type())?, None)));
    }
    cast(known.expr.as_ref().clone(), from, to).map(Some)
}

/// A constant in quotes that stands beside a number, as a number.
pub(super) fn adopt_constant(constant: &mut Expr, other: &Expr, schema: &DFSchema) {
    if let Expr::Literal(ScalarValue::Utf8(Some(_)), _) = &*constant
        && matches!(other.get_type(schema), Ok(ArrowType::Decimal128(..)))
    {
        let field = Arc::new(planned_field("", DataType::Numeric(None).into(), true));
        *constant = Expr::Cast(Cast { expr: Box::new(std::mem::take(constant)), field });
    }
}
