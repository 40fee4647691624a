//! What CASE, coalesce, greatest, least, nullif and ARRAY[...] come to has the type of their branches, also where
//! DataFusion knows only how values of the type are kept: JSON is text to it, and a label of an enumerated type some
//! bytes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable};
use onrush::DataType;

use super::field_of;
use crate::text::read_text;
use crate::types::{ColumnType, column_type, field};
use crate::values::scalar;

/// The expression, noted with the type of its branches; constants in quotes among them are read as of that.
pub(super) fn typed(mut expression: Expr, schema: &DFSchema) -> Result<Expr> {
    let mut branches = branches(&mut expression);
    read_arrays(&mut branches, schema)?;
    let Some(common) = common(&branches, schema) else { return Ok(expression) };
    for branch in &mut branches {
        if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &**branch
            && let ColumnType::Stored(data_type) = common
        {
            **branch = Expr::Literal(scalar(&read_text(data_type, written)?, common)?, None);
        }
    }
    let noted = match (&expression, common) {
        (Expr::ScalarFunction(call), ColumnType::Stored(element)) if is_array(call) => {
            ColumnType::Array(element)
        }
        _ => common,
    };
    let noted: FieldRef = Arc::new(field("", noted, true));
    Ok(Expr::Cast(Cast::new_from_field(Box::new(expression), noted)))
}

/// Constants in quotes beside an array are arrays.
fn read_arrays(branches: &mut [&mut Expr], schema: &DFSchema) -> Result<()> {
    let is_array = |branch: &&&mut Expr| matches!(branch.get_type(schema), Ok(ArrowType::List(_)));
    let Some(array) = branches.iter().find(is_array).map(|branch| (**branch).clone()) else {
        return Ok(());
    };
    for branch in branches {
        if matches!(**branch, Expr::Literal(ScalarValue::Utf8(Some(_)), _)) {
            super::adopt_type(branch, &array, schema)?;
        }
    }
    Ok(())
}

/// `ARRAY[...]`, whose elements are of one type, too.
fn is_array(call: &ScalarFunction) -> bool {
    call.func.name() == "make_array"
}

fn branches(expression: &mut Expr) -> Vec<&mut Expr> {
    match expression {
        Expr::Case(case) => {
            let then = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            then.chain(case.else_expr.as_deref_mut()).collect()
        }
        Expr::ScalarFunction(call) => match call.func.name() {
            "coalesce" | "greatest" | "least" => call.args.iter_mut().collect(),
            _ if is_array(call) => call.args.iter_mut().collect(),
            "nullif" => call.args.iter_mut().take(1).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The type of all branches that are no constants; none where there are several, or that tells itself.
fn common(branches: &[&mut Expr], schema: &DFSchema) -> Option<ColumnType> {
    let is_constant = |branch: &&&mut Expr| {
        let Expr::Literal(value, _) = &***branch else { return false };
        value.is_null() || matches!(value, ScalarValue::Utf8(_))
    };
    let mut types = branches
        .iter()
        .filter(|branch| !is_constant(branch))
        .map(|branch| field_of(branch, schema).map(|field| column_type(&field)));
    let first = types.next()??;
    let is_told = match first {
        ColumnType::Stored(data_type) => matches!(
            data_type,
            DataType::Json
                | DataType::Jsonb
                | DataType::Name
                | DataType::Oid
                | DataType::Enum(_)
                | DataType::Composite(_)
        ),
        ColumnType::Char | ColumnType::Array(_) | ColumnType::Vector(_) => false,
    };
    (is_told && types.all(|other| other == Some(first))).then_some(first)
}
