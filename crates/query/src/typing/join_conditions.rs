//! Conditions in ON that DataFusion would take for others.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, not};

/// `x = 'a'` for `'a' = x`: beside `x = y` in ON of an outer join DataFusion takes the latter for a condition that no
/// row of the other side meets. So it does with `'a' IN (x, 'b')`, once that is `'a' = x OR 'a' = 'b'`.
pub(super) fn column_first(expression: Expr) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })
            if left.column_refs().is_empty() && !right.column_refs().is_empty() =>
        {
            Transformed::yes(equal(*right, *left))
        }
        Expr::InList(InList { expr, list, negated })
            if expr.column_refs().is_empty()
                && list.iter().any(|one| !one.column_refs().is_empty()) =>
        {
            let one_of = list.into_iter().map(|one| equal(one, (*expr).clone()));
            match one_of.reduce(Expr::or) {
                Some(met) => Transformed::yes(if negated { not(met) } else { met }),
                None => Transformed::no(Expr::InList(InList { expr, list: Vec::new(), negated })),
            }
        }
        other => Transformed::no(other),
    })
}

fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: Operator::Eq, right: Box::new(right) })
}
