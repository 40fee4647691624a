//! What subqueries have of the row outside: they get their types before that row does, which may be given others.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Gives them the types that the row outside has now. Tells whether one was another.
pub(super) fn of_rows_outside(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let node = node.map_subqueries(|rows| within(rows, &schema))?;
        node.transform_data(|node| match node {
            // Rows of FROM that depend on those in front of them.
            LogicalPlan::Join(mut join) => {
                let left = Arc::clone(join.left.schema());
                let right = within(Arc::unwrap_or_clone(join.right), &left)?;
                join.right = Arc::new(right.data);
                Ok(Transformed::new_transformed(LogicalPlan::Join(join), right.transformed))
            }
            other => Ok(Transformed::no(other)),
        })
    })
}

fn within(rows: LogicalPlan, outside: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    rows.transform_up_with_subqueries(|node| {
        let changed = node.map_expressions(|expression| {
            expression.transform_up(|inner| match inner {
                Expr::OuterReferenceColumn(field, column) => {
                    match outside.qualified_field_from_column(&column) {
                        Ok((_, now)) if now.data_type() != field.data_type() => {
                            let now = Arc::clone(now);
                            Ok(Transformed::yes(Expr::OuterReferenceColumn(now, column)))
                        }
                        _ => Ok(Transformed::no(Expr::OuterReferenceColumn(field, column))),
                    }
                }
                other => Ok(Transformed::no(other)),
            })
        })?;
        match changed.transformed {
            true => changed.map_data(LogicalPlan::recompute_schema),
            false => Ok(changed),
        }
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::common::Column;
    use datafusion::logical_expr::{LogicalPlanBuilder, exists, lit, table_scan};

    use super::*;

    #[test]
    fn a_type_of_the_row_outside_is_followed() -> Result<()> {
        let schema =
            datafusion::arrow::datatypes::Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let old = Arc::new(Field::new("a", DataType::Int32, true));
        let outer = Expr::OuterReferenceColumn(old, Column::new(Some("t"), "a"));
        let rows = table_scan(Some("u"), &schema, None)?.filter(outer.eq(lit(1_i64)))?.build()?;
        let plan = table_scan(Some("t"), &schema, None)?.filter(exists(Arc::new(rows)))?.build()?;
        let followed = of_rows_outside(plan)?;
        assert!(followed.transformed);
        let again = of_rows_outside(LogicalPlanBuilder::from(followed.data).build()?)?;
        assert!(!again.transformed);
        Ok(())
    }
}
