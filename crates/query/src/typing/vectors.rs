//! Vectors of the catalogue and names, whose first element has the number 0.

use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::substring;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess};
use onrush::DataType;

use super::json;
use crate::functions::{FROM_ZERO, named};
use crate::types::{ColumnType, answer_type, column_type};

/// Subscripts of jsonb, of names and of vectors.
#[derive(Debug)]
pub(crate) struct Subscripts;

impl ExprPlanner for Subscripts {
    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if let Some(planned) = json::subscript(&expr, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        Ok(match letter_of_name(&expr, schema)? {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(subscript(&expr, schema).unwrap_or(expr)),
        })
    }
}

/// Whether a value is a vector, which is shown with blanks between its numbers.
pub(super) fn is_vector(value: &Expr, schema: &DFSchema) -> bool {
    let field = value.to_field(schema);
    field.is_ok_and(|(_, field)| matches!(answer_type(&field), ColumnType::Vector(_)))
}

/// Elements of a vector, by the numbers that its array has them under.
pub(super) fn subscript(
    access: &RawFieldAccessExpr,
    schema: &DFSchema,
) -> Option<RawFieldAccessExpr> {
    if !is_vector(&access.expr, schema) {
        return None;
    }
    let field_access = match &access.field_access {
        GetFieldAccess::ListIndex { key } => GetFieldAccess::ListIndex { key: next(key).into() },
        GetFieldAccess::ListRange { start, stop, stride } => GetFieldAccess::ListRange {
            start: next(start).into(),
            stop: next(stop).into(),
            stride: stride.clone(),
        },
        GetFieldAccess::NamedStructField { .. } => return None,
    };
    Some(RawFieldAccessExpr { expr: access.expr.clone(), field_access })
}

/// The number by which an array has what has this one counted from 0.
fn next(number: &Expr) -> Expr {
    number.clone() + one()
}

fn one() -> Expr {
    Expr::Literal(ScalarValue::Int64(Some(1)), None)
}

/// Whether a function tells numbers of elements.
pub(super) fn tells_numbers(name: &str) -> bool {
    FROM_ZERO.iter().any(|(of_array, _)| *of_array == name)
}

/// A call that tells numbers of elements, of a vector.
pub(super) fn numbered(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let Some((_, of_vector)) = FROM_ZERO.iter().find(|(of_array, _)| *of_array == call.func.name())
    else {
        return Ok(Expr::ScalarFunction(call));
    };
    let func = match call.args.first() {
        Some(value) if is_vector(value, schema) => named(of_vector)?,
        _ => call.func,
    };
    Ok(Expr::ScalarFunction(ScalarFunction { func, args: call.args }))
}

/// A letter of a name, the first of which has the number 0: PostgreSQL keeps a name as an array of them.
pub(super) fn letter_of_name(
    access: &RawFieldAccessExpr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let (_, field) = access.expr.to_field(schema)?;
    let is_name = column_type(&field) == ColumnType::Stored(DataType::Name);
    let (true, GetFieldAccess::ListIndex { key }) = (is_name, &access.field_access) else {
        return Ok(None);
    };
    Ok(Some(substring(access.expr.clone(), next(key), one())))
}
