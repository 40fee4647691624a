//! Operators that mean something else where one side is `jsonb`.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::planner::{RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use onrush::DataType;

use super::call;
use crate::error::QueryError;
use crate::functions::{
    JSON_CONTAINS, JSON_JOINED, JSON_LIST, JSON_SUBSCRIPT, JSON_WITHOUT, JSONB_LIST, named,
    type_name,
};
use crate::types::{ColumnType, column_type, plain_type};

/// `to_json(ARRAY[...])` of JSON, which an array does not know of its elements.
pub(super) fn of_array(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let is_json = |element: &Expr| {
        let column = element.to_field(schema).map(|(_, field)| column_type(&field));
        matches!(column, Ok(ColumnType::Stored(DataType::Json | DataType::Jsonb)))
    };
    // The type of its elements is noted around it.
    let given = match call.args.as_slice() {
        [Expr::Cast(Cast { expr, .. })] => Some(&**expr),
        [given] => Some(given),
        _ => None,
    };
    match given {
        Some(Expr::ScalarFunction(array))
            if array.func.name() == "make_array" && array.args.iter().any(is_json) =>
        {
            let function = if call.func.name() == "to_jsonb" { JSONB_LIST } else { JSON_LIST };
            Ok(super::call(named(function)?, array.args.clone()))
        }
        _ => Ok(Expr::ScalarFunction(call)),
    }
}

/// A part of jsonb; none of what is something else.
pub(super) fn subscript(access: &RawFieldAccessExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (_, field) = access.expr.to_field(schema)?;
    if column_type(&field) != ColumnType::Stored(DataType::Jsonb) {
        return Ok(None);
    }
    let step = match &access.field_access {
        GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
        GetFieldAccess::ListIndex { key } => (**key).clone(),
        GetFieldAccess::ListRange { .. } => {
            let message = "jsonb subscript does not support slices";
            return Err(QueryError::refused("42804", message).into());
        }
    };
    let own = step.get_type(schema)?;
    let is_constant = matches!(&step, Expr::Literal(ScalarValue::Int64(Some(number)), _)
        if i32::try_from(*number).is_ok());
    let is_integer = is_constant || matches!(own, ArrowType::Int32 | ArrowType::Int16);
    if !is_integer && !matches!(own, ArrowType::Utf8 | ArrowType::Null) {
        let own = type_name(ColumnType::Stored(plain_type(&own)));
        let hint = "jsonb subscript must be coercible to either integer or text.";
        let error = QueryError::refused("42804", format!("subscript type {own} is not supported"));
        return Err(error.hint(hint).into());
    }
    Ok(Some(call(named(JSON_SUBSCRIPT)?, vec![access.expr.clone(), step])))
}

/// The call of the function that the operator stands for.
pub(super) fn planned(binary: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    use BinaryOperator as Op;
    let is_jsonb = |side: &Expr| {
        let field = side.to_field(schema);
        field.is_ok_and(|(_, field)| column_type(&field) == ColumnType::Stored(DataType::Jsonb))
    };
    let (left, right) = (&binary.left, &binary.right);
    let function = match &binary.op {
        Op::AtArrow | Op::ArrowAt if is_jsonb(left) || is_jsonb(right) => JSON_CONTAINS,
        // A constant in quotes is of the other side's type; text beside jsonb is joined as text.
        Op::StringConcat
            if (is_jsonb(left) && (is_jsonb(right) || matches!(right, Expr::Literal(..))))
                || (is_jsonb(right) && matches!(left, Expr::Literal(..))) =>
        {
            JSON_JOINED
        }
        Op::Minus if is_jsonb(left) => JSON_WITHOUT,
        _ => return Ok(None),
    };
    let given = match binary.op {
        Op::ArrowAt => vec![right.clone(), left.clone()],
        _ => vec![left.clone(), right.clone()],
    };
    Ok(Some(call(named(function)?, given)))
}
