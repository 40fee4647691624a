//! What the places where parameters stand tell about their types.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

use super::schema_below;

/// Types of parameters by their names, `$1` and on.
pub(super) type Told = HashMap<String, FieldRef>;

/// The types that are known from any place of a plan: a comparison, a cast, an array that something
/// is looked for in.
pub(super) fn told(plan: &LogicalPlan) -> Result<Told> {
    let mut told = Told::new();
    plan.apply_with_subqueries(|node| {
        let schema = schema_below(node)?;
        let type_of = |expression: &Expr| match expression {
            // It has none of its own.
            Expr::Placeholder(_) => None,
            other => other.get_type(&schema).ok(),
        };
        let array_of = |element: ArrowType| {
            let element = Field::new_list_field(element, true);
            Arc::new(Field::new("", ArrowType::List(Arc::new(element)), true))
        };
        node.apply_expressions(|expression| {
            expression.apply(|inner| {
                let found = match inner {
                    Expr::Placeholder(Placeholder { id, field: Some(field) }) => {
                        Some((id, Arc::clone(field)))
                    }
                    Expr::Cast(cast) => open(&cast.expr).map(|id| (id, Arc::clone(&cast.field))),
                    // x = ANY ($1)
                    Expr::ScalarFunction(call) if call.func.name() == "array_has" => {
                        match call.args.as_slice() {
                            [array, element] => {
                                open(array).and_then(|id| Some((id, array_of(type_of(element)?))))
                            }
                            _ => None,
                        }
                    }
                    // x < ANY ($1)
                    Expr::BinaryExpr(BinaryExpr { left, right, .. }) => extreme(left)
                        .and_then(|id| Some((id, array_of(type_of(right)?))))
                        .or_else(|| Some((extreme(right)?, array_of(type_of(left)?)))),
                    _ => None,
                };
                if let Some((id, field)) = found {
                    told.entry(id.clone()).or_insert(field);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(told)
}

/// A parameter whose type is not known here.
fn open(expression: &Expr) -> Option<&String> {
    match expression {
        Expr::Placeholder(Placeholder { id, field: None }) => Some(id),
        _ => None,
    }
}

/// The array whose least or greatest element this is.
fn extreme(expression: &Expr) -> Option<&String> {
    match expression {
        Expr::ScalarFunction(call) if matches!(call.func.name(), "array_min" | "array_max") => {
            open(call.args.first()?)
        }
        _ => None,
    }
}
